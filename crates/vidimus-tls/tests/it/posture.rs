//! The decision at start: V7 as a table, and the alarm for files that come too late.

use std::ffi::OsStr;
use std::path::Path;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use vidimus_tls::posture::{Posture, PostureError, PostureRule, watch_for_material};

use crate::support::{LogCapture, soon};

const FILES: [&str; 3] = ["tls.crt", "tls.key", "ca.crt"];

fn rule(dir: &Path) -> PostureRule {
    PostureRule {
        directory: dir.to_path_buf(),
        variable: "EXAMPLE_INSECURE",
        missing: |dir| {
            format!(
                "nothing in {}, set EXAMPLE_INSECURE to \"true\"",
                dir.display()
            )
        },
    }
}

fn decide(dir: &Path, value: Option<&str>) -> String {
    match Posture::resolve(&rule(dir), value.map(OsStr::new)) {
        Ok(posture) => posture.name().to_owned(),
        Err(error) => error.to_string(),
    }
}

fn touch(path: &Path) {
    std::fs::File::create(path).expect("a file");
}

/// V7. Every combination of files with every kind of value.
#[test]
fn the_files_and_the_word_decide() {
    let values = [
        None,
        Some(""),
        Some("true"),
        Some(" TRUE\n"),
        Some("tRuE"),
        Some("1"),
        Some("yes"),
        Some("t"),
        Some("true,"),
        Some("false"),
    ];
    for mask in 0..8_u8 {
        let dir = tempfile::tempdir().expect("a folder");
        let mut missing = Vec::new();
        for (bit, name) in FILES.iter().enumerate() {
            let path = dir.path().join(name);
            if mask & (1 << bit) == 0 {
                missing.push(path.display().to_string());
            } else {
                touch(&path);
            }
        }
        for value in values {
            let opted_out = matches!(value, Some("true" | " TRUE\n" | "tRuE"));
            let expected = match missing.len() {
                0 => "mutual".to_owned(),
                3 if opted_out => "plaintext".to_owned(),
                3 => format!(
                    "nothing in {}, set EXAMPLE_INSECURE to \"true\"",
                    dir.path().display()
                ),
                _ => format!(
                    "TLS material in {} is partially present, missing: {}",
                    dir.path().display(),
                    missing.join(", ")
                ),
            };
            assert_eq!(
                decide(dir.path(), value),
                expected,
                "files {mask:03b}, {value:?}"
            );
        }
    }
}

/// V7. A value that isn't UTF-8 is not the word.
#[test]
fn a_value_that_is_not_text_is_no_opt_out() {
    use std::os::unix::ffi::OsStrExt;
    let dir = tempfile::tempdir().expect("a folder");
    let value = OsStr::from_bytes(b"true\xff");
    let decided = Posture::resolve(&rule(dir.path()), Some(value));
    assert!(
        matches!(decided, Err(PostureError::Missing { .. })),
        "{decided:?}"
    );
}

/// V7. Only "not found" is absence: a start must not become plaintext because a file cannot be seen.
#[test]
fn a_file_that_cannot_be_looked_at_ends_the_start() {
    let dir = tempfile::tempdir().expect("a folder");
    // A path through a file fails with "not a directory", for root as for anybody.
    touch(&dir.path().join("mount"));
    let below = dir.path().join("mount/tls");
    let decided = Posture::resolve(&rule(&below), Some(OsStr::new("true")));
    match decided {
        Err(PostureError::Inspect { path, source }) => {
            assert_eq!(path, below.join("tls.crt"));
            assert_eq!(source.kind(), std::io::ErrorKind::NotADirectory);
        }
        other => panic!("{other:?}"),
    }
    // A link that leads round in a circle, and one that leads nowhere.
    let circle = dir.path().join("circle");
    std::fs::create_dir(&circle).expect("a folder");
    std::os::unix::fs::symlink("tls.crt", circle.join("tls.crt")).expect("a link");
    let decided = Posture::resolve(&rule(&circle), Some(OsStr::new("true")));
    assert!(
        matches!(decided, Err(PostureError::Inspect { .. })),
        "{decided:?}"
    );
    let nowhere = dir.path().join("nowhere");
    std::fs::create_dir(&nowhere).expect("a folder");
    std::os::unix::fs::symlink("..data/tls.crt", nowhere.join("tls.crt")).expect("a link");
    assert_eq!(decide(&nowhere, Some("true")), "plaintext");
}

/// V7. Symbolic links count as what they lead to; a folder is no file.
#[test]
fn links_are_followed_and_folders_do_not_count() {
    let dir = tempfile::tempdir().expect("a folder");
    std::fs::create_dir(dir.path().join("..v1")).expect("a folder");
    std::os::unix::fs::symlink("..v1", dir.path().join("..data")).expect("a link");
    for name in FILES {
        touch(&dir.path().join("..v1").join(name));
        std::os::unix::fs::symlink(format!("..data/{name}"), dir.path().join(name))
            .expect("a link");
    }
    assert_eq!(decide(dir.path(), None), "mutual");
    let ca = dir.path().join("ca.crt");
    std::fs::remove_file(&ca).expect("removed");
    std::fs::create_dir(&ca).expect("a folder in the file's place");
    assert!(decide(dir.path(), Some("true")).ends_with(&format!("missing: {}", ca.display())));
}

/// V7. The paths of missing files are absolute even if the folder was given relatively.
#[test]
fn missing_files_are_named_absolutely() {
    let relative = Path::new("Cargo.toml.d/../src");
    let all = decide(relative, None);
    assert!(all.starts_with("nothing in Cargo.toml.d/../src"), "{all}");
    let decided = Posture::resolve(
        &PostureRule {
            directory: "tests/it".into(),
            ..rule(relative)
        },
        None,
    );
    assert!(
        matches!(decided, Err(PostureError::Missing { .. })),
        "{decided:?}"
    );
    let here = std::env::current_dir().expect("a working directory");
    let dir = tempfile::tempdir_in(&here).expect("a folder");
    touch(&dir.path().join("tls.crt"));
    let name = dir.path().file_name().expect("a name");
    match Posture::resolve(&rule(Path::new(name)), None) {
        Err(PostureError::Partial { missing, .. }) => {
            assert_eq!(
                missing,
                ["tls.key", "ca.crt"].map(|f| here.join(name).join(f))
            );
        }
        other => panic!("{other:?}"),
    }
}

/// V7. Plaintext is said loudly and marked for the audit.
#[test]
fn plaintext_is_logged_as_a_warning_for_the_audit() {
    let dir = tempfile::tempdir().expect("a folder");
    let log = LogCapture::start();
    assert_eq!(decide(dir.path(), Some("true")), "plaintext");
    let lines = log.lines_with(&["WARN", "audit=true", "PLAINTEXT", "EXAMPLE_INSECURE"]);
    assert_eq!(lines.len(), 1, "{}", log.text());
}

/// V7. Files that appear under plaintext raise an alarm, once.
#[tokio::test]
async fn files_that_appear_under_plaintext_raise_an_alarm() {
    let dir = tempfile::tempdir().expect("a folder");
    let log = LogCapture::start();
    let posture = Posture::resolve(&rule(dir.path()), Some(OsStr::new("true")));
    let Ok(Posture::Plaintext(opt_out)) = posture else {
        panic!("{posture:?}")
    };
    let (mut alarm, driver) = watch_for_material(&opt_out);
    let stop = CancellationToken::new();
    let mut tasks = JoinSet::new();
    tasks.spawn(driver.every(Duration::from_millis(5)).run(stop.clone()));
    assert!(!alarm.is_raised());
    touch(&dir.path().join("tls.crt"));
    soon("the alarm", alarm.raised()).await;
    assert!(alarm.is_raised());
    touch(&dir.path().join("tls.key"));
    vidimus_testkit::wait_until_async(Duration::from_millis(200), || async { Ok::<_, String>(()) })
        .await;
    let lines = log.lines_with(&["WARN", "audit=true", "TLS material has appeared"]);
    assert_eq!(lines.len(), 1, "{}", log.text());
    stop.cancel();
    soon("the driver's end", tasks.join_next())
        .await
        .expect("a task")
        .expect("no panic");
}
