use std::{ffi::OsString, fs, path::Path};

use vidimus_daemon::telemetry::chain;
use vidimus_provider::{
    manager::ManagerTls,
    memory::MemoryProvider,
    server::{self, Config, StartError},
};
use vidimus_tls::posture::PostureError;

use crate::support::{Running, World, config, validate};

const FILES: [&str; 3] = ["tls.crt", "tls.key", "ca.crt"];

async fn refusal(config: Config) -> StartError {
    match server::bind(config, MemoryProvider::default()).await {
        Ok(_) => panic!("it started"),
        Err(error) => error,
    }
}

fn with_variable(dir: &Path, value: Option<&str>) -> Config {
    Config {
        insecure: value.map(OsString::from),
        ..config(dir)
    }
}

/// V7.
#[tokio::test]
async fn without_files_and_opt_out_the_start_ends_with_virtrigauds_sentence() {
    assert!(
        !Path::new("/etc/virtrigaud/tls").exists(),
        "this machine is a provider pod"
    );
    let error = refusal(Config::from_variables(|_| None).expect("no list")).await;
    assert_eq!(
        chain(&error).to_string(),
        "TLS material missing at /etc/virtrigaud/tls and VIRTRIGAUD_PROVIDER_INSECURE is not set to \"true\"; either provision /etc/virtrigaud/tls/{tls.crt,tls.key,ca.crt} or set VIRTRIGAUD_PROVIDER_INSECURE=true to opt into plaintext (audit-flagged)"
    );
}

/// V7.
#[tokio::test]
async fn only_the_word_true_opts_out() {
    let empty = tempfile::tempdir().unwrap();
    for word in ["true", "TRUE", " True\n"] {
        let mut running = Running::start(with_variable(empty.path(), Some(word))).await;
        assert_eq!(running.status.page().posture, "plaintext", "{word:?}");
        let config = running.manager_config(ManagerTls::Plaintext);
        let manager = running.start_manager(config).await;
        assert!(validate(&manager).await.unwrap().ok, "{word:?}");
        running.stop().await;
    }
    for word in [
        None,
        Some(""),
        Some("1"),
        Some("yes"),
        Some("on"),
        Some("false"),
        Some("true!"),
    ] {
        let error = refusal(with_variable(empty.path(), word)).await;
        let missing = matches!(error, StartError::Posture(PostureError::Missing { .. }));
        assert!(missing, "{word:?}: {error}");
    }
}

/// V7.
#[tokio::test]
async fn the_files_win_over_the_opt_out() {
    let world = World::new();
    for word in [None, Some("true")] {
        let mut running = Running::start(with_variable(&world.server_dir(), word)).await;
        assert_eq!(running.status.page().posture, "mutual");
        let manager = running.manager(world.manager_dir()).await;
        assert!(validate(&manager).await.unwrap().ok);
        running.stop().await;
    }
}

/// V7.
#[tokio::test]
async fn some_but_not_all_files_end_the_start_and_the_missing_ones_are_named() {
    let world = World::new();
    // every mixture, by the files that are missing
    for mixture in 1_u8..7 {
        let dir = world.path(&format!("mixture-{mixture}"));
        fs::create_dir(&dir).unwrap();
        let mut missing = Vec::new();
        for (bit, file) in FILES.iter().enumerate() {
            if mixture & (1 << bit) == 0 {
                fs::copy(world.server_dir().join(file), dir.join(file)).unwrap();
            } else {
                missing.push(dir.join(file).display().to_string());
            }
        }
        for word in [None, Some("true")] {
            let error = refusal(with_variable(&dir, word)).await.to_string();
            assert!(error.contains("partially present"), "{error}");
            assert!(error.ends_with(&missing.join(", ")), "{error}");
        }
    }
}

/// V7.
#[tokio::test]
async fn a_presence_that_cannot_be_told_ends_the_start_even_with_the_opt_out() {
    let dir = tempfile::tempdir().unwrap();
    // a path through a file: "not a directory", which is another answer than "not found"
    let file = dir.path().join("file");
    fs::File::create(&file).unwrap();
    let error = refusal(with_variable(&file, Some("true"))).await;
    assert!(
        matches!(error, StartError::Posture(PostureError::Inspect { .. })),
        "{error}"
    );
}

/// V7.
#[tokio::test]
async fn files_that_are_not_good_end_the_start_with_their_name() {
    let world = World::new();
    let other = World::new();
    fs::copy(
        other.server_dir().join("tls.key"),
        world.server_dir().join("tls.key"),
    )
    .unwrap();
    let error = refusal(world.config()).await;
    let text = chain(&error).to_string();
    assert!(
        text.contains("tls.key") && text.contains("tls.crt"),
        "{text}"
    );
}

/// V7.
#[tokio::test]
async fn files_that_appear_under_plaintext_show_on_the_page() {
    let world = World::new();
    let dir = world.path("later");
    let running = Running::start(with_variable(&dir, Some("true"))).await;
    assert!(!running.status.page().material_waiting);
    world
        .server_leaf(&world.pki)
        .write_dir(&dir, &[&world.pki.root]);
    vidimus_testkit::wait_until_async(crate::support::DEADLINE, || async {
        if running.status.page().material_waiting {
            Ok(())
        } else {
            Err("no alarm yet")
        }
    })
    .await;
    running.stop().await;
}

/// V6.
#[tokio::test]
async fn the_allow_list_comes_from_the_variable() {
    for (value, expected) in [
        (None, vec![]),
        (Some(""), vec![]),
        (Some(" ,, ,"), vec![]),
        (Some("a.example"), vec!["a.example"]),
        (
            Some(" a.example ,spiffe://td/b,, CN name "),
            vec!["a.example", "spiffe://td/b", "CN name"],
        ),
    ] {
        let config = Config::from_variables(|name| match name {
            "VIRTRIGAUD_PROVIDER_ALLOWED_SANS" => value.map(OsString::from),
            _ => None,
        });
        let list = config.expect("a list").allowed_sans;
        assert_eq!(list.entries().collect::<Vec<_>>(), expected, "{value:?}");
    }
}
