//! Files that go bad while a process runs, and certificates whose time runs out: T5, T6, T15, T18.

#![expect(clippy::string_slice, reason = "PEM is ASCII")]

use std::time::Duration;

use vidimus_testkit::{Authority, Pki, wait_until_async};
use vidimus_tls::material::{MaterialFiles, Usage};
use vidimus_tls::watch::{MaterialWatch, WatchOptions};

use crate::support::{
    DEADLINE, LogCapture, Running, SERVER, Setup, World, clock, put, quick, served, soon,
    wait_served,
};

/// One way in which the files can go bad.
struct Bad {
    what: &'static str,
    files: Vec<(&'static str, String)>,
    error: &'static str,
    unit: &'static str,
}

fn bad_files(world: &World) -> Vec<Bad> {
    let (leaf, other) = (world.server_leaf(), world.server_leaf());
    let root = &world.pki.root;
    let bundle = format!("{}{}", root.pem(), Authority::root("second").pem());
    let cut = |text: &str, at: usize| text[..at].to_owned();
    let identity = |what, files, error| Bad {
        what,
        files,
        error,
        unit: "certificate and key",
    };
    let trust = |what, ca: String, error| Bad {
        what,
        files: vec![("ca.crt", ca)],
        error,
        unit: "roots",
    };
    vec![
        identity(
            "another key",
            vec![("tls.key", other.key_pem().to_owned())],
            "does not match",
        ),
        identity(
            "another certificate",
            vec![("tls.crt", other.chain_pem())],
            "does not match",
        ),
        identity(
            "half a certificate",
            vec![("tls.crt", cut(&leaf.chain_pem(), 500))],
            "cannot be read as PEM",
        ),
        identity(
            "half a key",
            vec![("tls.key", cut(leaf.key_pem(), 100))],
            "cannot be read as PEM",
        ),
        identity(
            "an empty certificate",
            vec![("tls.crt", String::new())],
            "tls.crt",
        ),
        identity("an empty key", vec![("tls.key", String::new())], "tls.key"),
        {
            let expired = world
                .pki
                .leaf("server")
                .dns(SERVER)
                .server()
                .expired()
                .issue();
            let files = vec![
                ("tls.crt", expired.chain_pem()),
                ("tls.key", expired.key_pem().to_owned()),
            ];
            identity("an expired certificate", files, "has expired")
        },
        {
            let client = world.pki.leaf("server").dns(SERVER).client().issue();
            let files = vec![
                ("tls.crt", client.chain_pem()),
                ("tls.key", client.key_pem().to_owned()),
            ];
            identity(
                "a client's certificate",
                files,
                "lacks the extended key usage serverAuth",
            )
        },
        trust(
            "a cut bundle",
            cut(&bundle, bundle.len() - 60),
            "cannot be read as PEM",
        ),
        trust("an empty bundle", String::new(), "ca.crt"),
        trust("a bundle with junk", bundle.replace("MII", "!!!"), "ca.crt"),
        trust(
            "a leaf for a bundle",
            leaf.chain_pem()
                .split_inclusive("-----END CERTIFICATE-----\n")
                .next()
                .expect("a leaf")
                .to_owned(),
            "CA certificate",
        ),
    ]
}

/// T5, T6, T15, T18. Whatever goes bad, the last good set stays, is served, and the reason is said once and counted.
#[tokio::test]
async fn bad_files_leave_the_last_good_set_in_use() {
    for bad in bad_files(&World::new())
        .iter()
        .enumerate()
        .map(|(index, _)| index)
    {
        let world = World::new();
        let good = world.server_leaf();
        good.write_dir(world.dir.path(), &[&world.pki.root]);
        let case = &bad_files(&world)[bad];
        let log = LogCapture::start();
        let (running, watch) = Running::follow(world.dir.path(), Setup::default()).await;
        for (name, content) in &case.files {
            put(world.dir.path().join(name), content);
        }
        let status = wait_until_async(DEADLINE, || async {
            let status = watch.status();
            match status.last_error() {
                Some(error) if error.contains(case.error) => Ok(status),
                other => Err(format!("{}: {other:?}", case.what)),
            }
        })
        .await;
        assert_eq!(status.generation, 1, "{}", case.what);
        assert!(status.failures >= 1, "{}", case.what);
        assert_eq!(
            served(&world.client(), &running).await,
            good.leaf_der(),
            "{}",
            case.what
        );
        assert_eq!(
            world.client().refusal(running.address).await,
            None,
            "{}",
            case.what
        );

        // Several polls later it has still been said once for each distinct reason.
        let lines = log.lines_with(&["WARN", "not usable", case.unit, case.error]);
        assert_eq!(lines.len(), 1, "{}: {}", case.what, log.text());

        // And good files end it.
        let next = world.server_leaf();
        next.write_dir(world.dir.path(), &[&world.pki.root]);
        wait_served(&world.client(), &running, &next).await;
        wait_until_async(DEADLINE, || async {
            match watch.status().last_error() {
                None => Ok(()),
                Some(error) => Err(error.to_owned()),
            }
        })
        .await;
        running.stop().await;
    }
}

/// T6. A fault of the certificate doesn't delay the roots, nor the other way round.
#[tokio::test]
async fn each_unit_has_its_own_fate() {
    let world = World::new();
    let second = Pki::new("Second");
    let (running, watch) = Running::follow(world.dir.path(), Setup::default()).await;
    put(world.dir.path().join("tls.key"), "junk");
    put(
        world.dir.path().join("ca.crt"),
        format!("{}{}", world.pki.root.pem(), second.root.pem()),
    );
    let material = soon("the roots", watch.wait_for_generation(2)).await;
    assert_eq!(material.trust().roots().len(), 2);
    let status = watch.status();
    assert!(status.identity.last_error.is_some() && status.trust.last_error.is_none());

    put(world.dir.path().join("ca.crt"), "junk");
    let leaf = world.server_leaf();
    put(world.dir.path().join("tls.crt"), leaf.chain_pem());
    put(world.dir.path().join("tls.key"), leaf.key_pem());
    wait_served(&world.client(), &running, &leaf).await;
    wait_until_async(DEADLINE, || async {
        let status = watch.status();
        if status.identity.last_error.is_none() && status.trust.last_error.is_some() {
            Ok(())
        } else {
            Err(format!("{status:?}"))
        }
    })
    .await;
    assert_eq!(watch.current().trust().roots().len(), 2);
    running.stop().await;
}

/// A process starts with good material or not at all, and says what is wrong.
#[tokio::test]
async fn a_start_with_bad_material_fails() {
    let world = World::new();
    let files = MaterialFiles::in_dir(world.dir.path());
    for name in ["tls.crt", "tls.key", "ca.crt"] {
        let path = world.dir.path().join(name);
        let good = std::fs::read(&path).expect("a file");
        std::fs::remove_file(&path).expect("removed");
        let started = MaterialWatch::start(files.clone(), Usage::Server, quick()).await;
        let error = started.expect_err("refused").to_string();
        assert_eq!(error, format!("read {}", path.display()));
        put(&path, good);
    }
    MaterialWatch::start(files, Usage::Server, quick())
        .await
        .expect("good again");
}

/// The same refusal at another time is no other reason, and is said once.
#[tokio::test]
async fn a_refusal_for_dates_is_said_once_however_late_it_gets() {
    use std::sync::atomic::Ordering;
    let world = World::new();
    let log = LogCapture::start();
    let ahead = std::sync::Arc::default();
    let options = WatchOptions {
        poll: Duration::from_millis(10),
        settle: Duration::from_millis(1),
        clock: clock(&ahead),
        ..WatchOptions::default()
    };
    let dir = world.dir.path().join("secret");
    let mut volume = world.server_leaf().write_volume(&dir, &[&world.pki.root]);
    let files = MaterialFiles::in_dir(&dir);
    let (watch, driver) = MaterialWatch::start(files, Usage::Server, options)
        .await
        .expect("good material");
    let stop = tokio_util::sync::CancellationToken::new();
    let follow = async {
        let early = world
            .pki
            .leaf("server")
            .dns(SERVER)
            .server()
            .not_yet_valid()
            .issue();
        volume.swap(&early.files(&[&world.pki.root]));
        let looks = || watch.status().looks;
        wait_until_async(DEADLINE, || async {
            watch.status().last_error().map(|_| ()).ok_or("no error")
        })
        .await;
        let before = looks();
        wait_until_async(DEADLINE, || async {
            ahead.fetch_add(60, Ordering::Relaxed);
            if looks() > before + 5 {
                Ok(())
            } else {
                Err(looks())
            }
        })
        .await;
        assert_eq!(watch.status().failures, 1);
        assert_eq!(
            log.lines_with(&["WARN", "is not valid yet"]).len(),
            1,
            "{}",
            log.text()
        );
        // And when its time has come, the certificate is taken without another event.
        ahead.store(2 * 24 * 3600, Ordering::Relaxed);
        let material = soon("its time", watch.wait_for_generation(2)).await;
        assert_eq!(material.identity().chain()[0].as_ref(), early.leaf_der());
        assert_eq!(watch.status().last_error(), None);
        stop.cancel();
    };
    tokio::join!(driver.run(stop.clone()), follow);
}

/// The certificate in use expires: it is still served, and there is an alarm.
#[tokio::test]
async fn an_expired_certificate_in_use_is_an_alarm() {
    use std::sync::atomic::Ordering;
    let world = World::new();
    let log = LogCapture::start();
    let ahead = std::sync::Arc::default();
    let options = WatchOptions {
        poll: Duration::from_millis(10),
        clock: clock(&ahead),
        ..quick()
    };
    let files = MaterialFiles::in_dir(world.dir.path());
    let (watch, driver) = MaterialWatch::start(files, Usage::Server, options)
        .await
        .expect("good material");
    let stop = tokio_util::sync::CancellationToken::new();
    let expire = async {
        assert!(log.lines_with(&["ERROR", "EXPIRED"]).is_empty());
        ahead.store(20 * 24 * 3600, Ordering::Relaxed);
        wait_until_async(DEADLINE, || async {
            let lines = log.lines_with(&["ERROR", "EXPIRED"]).len();
            if lines == 1 { Ok(()) } else { Err(lines) }
        })
        .await;
        assert_eq!(watch.status().generation, 1);
        let late = clock(&ahead).now();
        assert!(watch.status().is_expired_at(late));
        stop.cancel();
    };
    tokio::join!(driver.run(stop.clone()), expire);
    assert_eq!(
        log.lines_with(&["ERROR", "EXPIRED"]).len(),
        1,
        "{}",
        log.text()
    );
}
