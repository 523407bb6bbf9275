//! Material that changes while connections come and go: V10, V13 (one side), T1-T6, T15, T16, T18.

#![expect(clippy::string_slice, reason = "PEM is ASCII")]

use std::path::Path;
use std::time::{Duration, Instant};

use vidimus_testkit::{Authority, Credential, Pki, wait_until_async};
use vidimus_tls::material::{MaterialFiles, Usage};
use vidimus_tls::watch::{MaterialWatch, WatchOptions};

use crate::support::{
    Client, DEADLINE, LogCapture, Running, SERVER, Setup, World, call, clock, quick, soon,
};

fn put(path: &Path, content: impl AsRef<[u8]>) {
    #[expect(
        clippy::disallowed_methods,
        reason = "in place is the point of these tests"
    )]
    std::fs::write(path, content).expect("a write");
}

/// The serial number of the certificate that a new connection is shown.
async fn served(client: &Client, running: &Running) -> Vec<u8> {
    let stream = client.connect(running.address).await.expect("a handshake");
    let chain = stream.get_ref().1.peer_certificates().expect("a chain");
    chain[0].to_vec()
}

async fn wait_served(client: &Client, running: &Running, leaf: &Credential) {
    wait_until_async(DEADLINE, || async {
        if served(client, running).await == leaf.leaf_der() {
            Ok(())
        } else {
            Err("the old certificate is still served")
        }
    })
    .await;
}

/// V10, T1, T2, T3. Any number of swaps in any rhythm, and old connections stay.
#[tokio::test]
async fn a_leaf_is_replaced_through_every_swap_of_data() {
    let world = World::new();
    let dir = world.dir.path().join("secret");
    let mut volume = world.server_leaf().write_volume(&dir, &[&world.pki.root]);
    let (running, watch) = Running::follow(&dir, Setup::default()).await;
    let client = world.client();
    let mut old = client.echo(running.address).await;
    for round in 2..7 {
        let leaf = world.server_leaf();
        volume.swap(&leaf.files(&[&world.pki.root]));
        let began = Instant::now();
        soon("the generation", watch.wait_for_generation(round)).await;
        assert!(
            began.elapsed() < Duration::from_secs(1),
            "{:?}",
            began.elapsed()
        );
        assert_eq!(served(&client, &running).await, leaf.leaf_der());
        call(&mut old).await.expect("a call on the old connection");
    }
    // Two swaps at once: what counts is the last.
    let last = world.server_leaf();
    volume.swap(&world.server_leaf().files(&[&world.pki.root]));
    volume.swap(&last.files(&[&world.pki.root]));
    wait_served(&client, &running, &last).await;
    assert_eq!(running.server.stats().handshakes_failed, 0);
    running.stop().await;
}

/// V10, T3. Plain files: replaced by rename, and edited in place.
#[tokio::test]
async fn plain_files_are_followed_whichever_way_they_are_written() {
    let world = World::new();
    let (running, watch) = Running::follow(world.dir.path(), Setup::default()).await;
    let client = world.client();
    let renamed = world.server_leaf();
    renamed.write_dir(world.dir.path(), &[&world.pki.root]);
    soon("the generation", watch.wait_for_generation(2)).await;
    assert_eq!(served(&client, &running).await, renamed.leaf_der());
    let in_place = world.server_leaf();
    put(&world.dir.path().join("tls.crt"), in_place.chain_pem());
    put(&world.dir.path().join("tls.key"), in_place.key_pem());
    wait_served(&client, &running, &in_place).await;
    running.stop().await;
}

/// T1. The folder itself is replaced: the watch is armed anew, and the poll bridges the gap.
#[tokio::test]
async fn a_folder_that_is_replaced_is_watched_again() {
    let world = World::new();
    let dir = world.dir.path().join("tls");
    world.server_leaf().write_dir(&dir, &[&world.pki.root]);
    let (running, watch) = Running::follow(&dir, Setup::default()).await;
    for round in 2..5 {
        let leaf = world.server_leaf();
        let beside = world.dir.path().join(format!("new-{round}"));
        leaf.write_dir(&beside, &[&world.pki.root]);
        std::fs::rename(&dir, world.dir.path().join(format!("old-{round}"))).expect("moved away");
        std::fs::rename(&beside, &dir).expect("moved in place");
        wait_served(&world.client(), &running, &leaf).await;
        wait_until_async(DEADLINE, || async {
            if watch.status().events {
                Ok(())
            } else {
                Err("not watched")
            }
        })
        .await;
        let again = world.server_leaf();
        again.write_dir(&dir, &[&world.pki.root]);
        wait_served(&world.client(), &running, &again).await;
    }
    running.stop().await;
}

/// V10. Without events the poll alone finds a change.
#[tokio::test]
async fn the_poll_is_enough() {
    let world = World::new();
    let options = WatchOptions {
        events: false,
        ..quick()
    };
    let files = MaterialFiles::in_dir(world.dir.path());
    let (watch, driver) = MaterialWatch::start(files, Usage::Server, options)
        .await
        .expect("good material");
    assert!(!watch.status().events);
    let leaf = world.server_leaf();
    let stop = tokio_util::sync::CancellationToken::new();
    let rotate = async {
        leaf.write_dir(world.dir.path(), &[&world.pki.root]);
        let material = soon("the generation", watch.wait_for_generation(2)).await;
        assert_eq!(material.identity().chain()[0].as_ref(), leaf.leaf_der());
        stop.cancel();
    };
    tokio::join!(driver.run(stop.clone()), rotate);
}

/// V13, T5. The roots change with the leaf: old and new overlap, then the old one goes, and no call fails on the way.
#[tokio::test]
async fn roots_are_replaced_with_an_overlap() {
    let world = World::new();
    let (old, new) = (&world.pki, Pki::new("Next"));
    let dir = world.dir.path().join("secret");
    let mut volume = world.server_leaf().write_volume(&dir, &[&old.root]);
    let (running, watch) = Running::follow(&dir, Setup::default()).await;
    let leaf = |pki: &Pki| pki.leaf("client").dns("client.test").client().issue();
    let trusting_both = Client::new(&old.root).trusting(&new.root);
    let (before, after) = (
        trusting_both.clone().with(&leaf(old)),
        trusting_both.with(&leaf(&new)),
    );
    assert_eq!(before.refusal(running.address).await, None);
    assert_eq!(
        after.refusal(running.address).await.as_deref(),
        Some("UnknownCA")
    );

    volume.swap(&world.server_leaf().files(&[&old.root, &new.root]));
    soon("both roots", watch.wait_for_generation(2)).await;
    let mut kept = after.echo(running.address).await;
    call(&mut kept).await.expect("the new root's client");
    assert_eq!(before.refusal(running.address).await, None);

    let next = new.leaf("server").dns(SERVER).server().issue();
    volume.swap(&next.files(&[&new.root]));
    soon("the new root alone", watch.wait_for_generation(3)).await;
    assert_eq!(
        before.refusal(running.address).await.as_deref(),
        Some("UnknownCA")
    );
    call(&mut kept)
        .await
        .expect("the connection made in the overlap");
    assert_eq!(served(&after, &running).await, next.leaf_der());
    running.stop().await;
}

/// T16. A change above the leaf alone is a change.
#[tokio::test]
async fn a_change_of_the_chain_alone_is_noticed() {
    let root = Authority::root("root");
    let one = root.intermediate("issuing");
    let leaf = one.leaf("server").dns(SERVER).issue();
    let dir = tempfile::tempdir().expect("a folder");
    leaf.write_dir(dir.path(), &[&root]);
    let (running, watch) = Running::follow(dir.path(), Setup::default()).await;
    let longer = format!("{}{}", leaf.chain_pem(), root.pem());
    put(&dir.path().join("tls.crt"), longer);
    let material = soon("the generation", watch.wait_for_generation(2)).await;
    assert_eq!(material.identity().chain().len(), 3);
    running.stop().await;
}

/// V10. Identical bytes do nothing, however they are written.
#[tokio::test]
async fn identical_content_does_nothing() {
    let world = World::new();
    let leaf = world.server_leaf();
    leaf.write_dir(world.dir.path(), &[&world.pki.root]);
    let (running, watch) = Running::follow(world.dir.path(), Setup::default()).await;
    for _ in 0..3 {
        leaf.write_dir(world.dir.path(), &[&world.pki.root]);
    }
    // Something that does count, to see that the writes before it were looked at.
    world
        .server_leaf()
        .write_dir(world.dir.path(), &[&world.pki.root]);
    soon("the generation", watch.wait_for_generation(2)).await;
    assert_eq!(watch.status().reloads, 1);
    assert_eq!(watch.status().failures, 0);
    running.stop().await;
}

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
            put(&world.dir.path().join(name), content);
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
    put(&world.dir.path().join("tls.key"), "junk");
    put(
        &world.dir.path().join("ca.crt"),
        format!("{}{}", world.pki.root.pem(), second.root.pem()),
    );
    let material = soon("the roots", watch.wait_for_generation(2)).await;
    assert_eq!(material.trust().roots().len(), 2);
    let status = watch.status();
    assert!(status.identity.last_error.is_some() && status.trust.last_error.is_none());

    put(&world.dir.path().join("ca.crt"), "junk");
    let leaf = world.server_leaf();
    put(&world.dir.path().join("tls.crt"), leaf.chain_pem());
    put(&world.dir.path().join("tls.key"), leaf.key_pem());
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

/// T15, T18. A bundle that is still being written is not taken for a shorter one.
#[tokio::test]
async fn a_bundle_cut_between_two_certificates_waits_for_its_end() {
    let world = World::new();
    let second = Pki::new("Second");
    let options = WatchOptions {
        settle: Duration::from_millis(250),
        ..quick()
    };
    let ca = world.dir.path().join("ca.crt");
    let whole = format!("{}{}", world.pki.root.pem(), second.root.pem());
    put(&ca, &whole);
    let files = MaterialFiles::in_dir(world.dir.path());
    let (watch, driver) = MaterialWatch::start(files, Usage::Server, options)
        .await
        .expect("good material");
    let stop = tokio_util::sync::CancellationToken::new();
    let write = async {
        let third = Authority::root("third");
        let longer = format!("{whole}{}", third.pem());
        // Cut after each certificate and inside of them, with pauses under 250 ms.
        for at in [
            0,
            whole.len() / 2,
            whole.len() / 2 + 1,
            whole.len() - 3,
            whole.len(),
            longer.len(),
        ] {
            put(&ca, &longer[..at]);
            tokio::time::sleep(Duration::from_millis(80)).await;
        }
        let mut seen = watch.subscribe();
        let material = soon("the whole", seen.wait_for(|m| m.generation() == 2)).await;
        assert_eq!(material.expect("a watch").trust().roots().len(), 3);
        stop.cancel();
    };
    tokio::join!(driver.run(stop.clone()), write);
    assert_eq!(watch.status().failures, 0, "{:?}", watch.status());
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

/// V10. Looking at the files is no event: the watch doesn't wake itself.
#[tokio::test]
async fn reading_the_files_wakes_nobody() {
    let world = World::new();
    let options = WatchOptions {
        poll: Duration::from_secs(3600),
        ..quick()
    };
    let files = MaterialFiles::in_dir(world.dir.path());
    let (watch, driver) = MaterialWatch::start(files, Usage::Server, options)
        .await
        .expect("good material");
    let stop = tokio_util::sync::CancellationToken::new();
    let rotate = async {
        for generation in 2..6 {
            world
                .server_leaf()
                .write_dir(world.dir.path(), &[&world.pki.root]);
            soon("the generation", watch.wait_for_generation(generation)).await;
        }
        stop.cancel();
    };
    tokio::join!(driver.run(stop.clone()), rotate);
    // Each replacement is a handful of events; a watch that heard its own reads would have looked without end.
    let looks = watch.status().looks;
    assert!((4..200).contains(&looks), "{looks}");
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
