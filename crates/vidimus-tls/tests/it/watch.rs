//! Material that changes while connections come and go: V10, V13 (one side), T1-T6, T15, T16, T18.

use std::future::Future;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use vidimus_testkit::{Authority, Pki, wait_until_async};
use vidimus_tls::material::{Material, MaterialFiles, Usage};
use vidimus_tls::watch::{MaterialWatch, WatchOptions};

use crate::support::{
    Client, DEADLINE, Running, SERVER, Setup, World, by_events, call, put, quick, served, soon,
    wait_served,
};

/// A server whose files are followed without the poll.
fn noticing() -> Setup {
    Setup {
        watch: Some(by_events()),
        ..Setup::default()
    }
}

/// V10, T1, T2, T3. Any number of swaps in any rhythm, and old connections stay.
#[tokio::test]
async fn a_leaf_is_replaced_through_every_swap_of_data() {
    let world = World::new();
    let dir = world.dir.path().join("secret");
    let mut volume = world.server_leaf().write_volume(&dir, &[&world.pki.root]);
    let (running, watch) = Running::follow(&dir, noticing()).await;
    let client = world.client();
    let mut old = client.echo(running.address).await;
    for round in 2..7 {
        let leaf = world.server_leaf();
        volume.swap(&leaf.files(&[&world.pki.root]));
        soon("the generation", watch.wait_for_generation(round)).await;
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
    let (running, watch) = Running::follow(world.dir.path(), noticing()).await;
    let client = world.client();
    let renamed = world.server_leaf();
    renamed.write_dir(world.dir.path(), &[&world.pki.root]);
    soon("the generation", watch.wait_for_generation(2)).await;
    assert_eq!(served(&client, &running).await, renamed.leaf_der());
    let in_place = world.server_leaf();
    put(world.dir.path().join("tls.crt"), in_place.chain_pem());
    put(world.dir.path().join("tls.key"), in_place.key_pem());
    wait_served(&client, &running, &in_place).await;
    running.stop().await;
}

/// T1. The folder itself is replaced, and events go on telling what happens in it.
#[tokio::test]
async fn a_folder_that_is_replaced_is_watched_again() {
    let world = World::new();
    let dir = world.dir.path().join("tls");
    let aside = |round: u64| world.dir.path().join(format!("old-{round}"));
    follow_through(&world, &dir, |round, write| {
        let beside = world.dir.path().join("new");
        write(&beside);
        std::fs::rename(&dir, aside(round)).expect("moved away");
        std::fs::rename(&beside, &dir).expect("moved in place");
    })
    .await;
}

/// T1. The same where the new folder has the number of the old one, as on ext4.
#[tokio::test]
async fn a_folder_that_is_removed_and_made_again_is_watched_again() {
    let world = World::new();
    // On a disk: other file systems number each folder anew.
    let disk = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
    let dir = disk.path().join("tls");
    follow_through(&world, &dir, |_, write| {
        std::fs::remove_dir_all(&dir).expect("removed");
        write(&dir);
    })
    .await;
}

/// Replaces the folder several times, and what is in it after each time.
async fn follow_through(world: &World, dir: &Path, mut replace: impl FnMut(u64, &dyn Fn(&Path))) {
    world.server_leaf().write_dir(dir, &[&world.pki.root]);
    let files = MaterialFiles::in_dir(dir);
    let started = MaterialWatch::start(files, Usage::Server, by_events()).await;
    let (watch, driver) = started.expect("good material");
    let stop = CancellationToken::new();
    let rotate = async {
        for round in 0..4 {
            for is_replaced in [true, false] {
                let leaf = world.server_leaf();
                let write = |dir: &Path| leaf.write_dir(dir, &[&world.pki.root]);
                if is_replaced {
                    replace(round, &write);
                } else {
                    write(dir);
                }
                let mut seen = watch.subscribe();
                let is_new = |material: &Arc<Material>| {
                    material.identity().chain()[0] == leaf.leaf_der().into()
                };
                let waited = soon("the leaf", seen.wait_for(is_new)).await;
                drop(waited.expect("a watch"));
                // A look between removal and making finds no folder to watch, and is followed by another one.
                wait_until_async(DEADLINE, || async {
                    match watch.status().events {
                        Some(true) => Ok(()),
                        other => Err(format!("round {round}: events {other:?}")),
                    }
                })
                .await;
            }
        }
        stop.cancel();
    };
    tokio::join!(driver.run(stop.clone()), rotate);
}

/// V10. Who writes one unit slowly, in place, doesn't hold up the other.
#[tokio::test]
async fn a_unit_that_is_being_written_does_not_delay_the_other() {
    let world = World::new();
    let second = Pki::new("Second");
    let at = |name: &str| world.dir.path().join(name);
    let both = format!("{}{}", world.pki.root.pem(), second.root.pem());
    put(at("ca.crt"), &both);
    let files = MaterialFiles::in_dir(world.dir.path());
    let options = WatchOptions {
        settle: Duration::from_millis(100),
        ..quick()
    };
    let started = MaterialWatch::start(files, Usage::Server, options).await;
    let (watch, driver) = started.expect("good material");
    let stop = CancellationToken::new();
    let change = async {
        // A root leaves while the certificate is never the same for two looks.
        put(at("ca.crt"), world.pki.root.pem());
        let generation = watch.wait_for_generation(2);
        let material = soon("the roots", busy(&at("tls.crt"), generation)).await;
        assert_eq!(material.trust().roots().len(), 1);
        // And the other way round.
        let leaf = world.server_leaf();
        leaf.write_dir(world.dir.path(), &[&world.pki.root]);
        let generation = watch.wait_for_generation(3);
        let material = soon("the certificate", busy(&at("ca.crt"), generation)).await;
        assert_eq!(material.identity().chain()[0], leaf.leaf_der().into());
        assert_eq!(watch.status().failures, 0, "{:?}", watch.status());
        // What stands still in the end counts.
        put(at("ca.crt"), &both);
        let material = soon("the roots", watch.wait_for_generation(4)).await;
        assert_eq!(material.trust().roots().len(), 2);
        stop.cancel();
    };
    tokio::join!(driver.run(stop.clone()), change);
}

/// Replaces a file again and again until `done`; it is never the same for two looks.
async fn busy<F: Future>(path: &Path, done: F) -> F::Output {
    let writing = async {
        for number in 0_u64.. {
            let beside = path.with_extension("next");
            put(&beside, format!("not yet, {number}"));
            std::fs::rename(beside, path).expect("renamed");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        unreachable!("numbers don't end");
    };
    tokio::select! {
        done = done => done,
        () = writing => unreachable!("it writes until it is dropped"),
    }
}

/// V10. Without events the poll alone finds a change.
#[tokio::test]
async fn the_poll_is_enough() {
    let world = World::new();
    let options = WatchOptions {
        notices: false,
        ..quick()
    };
    let files = MaterialFiles::in_dir(world.dir.path());
    let (watch, driver) = MaterialWatch::start(files, Usage::Server, options)
        .await
        .expect("good material");
    assert_eq!(watch.status().events, Some(false));
    let leaf = world.server_leaf();
    let stop = CancellationToken::new();
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
    put(dir.path().join("tls.crt"), longer);
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

/// T15, T18. A bundle that is still being written is not taken for a shorter one. The clock is driven, so that no pause is
/// longer than it says.
#[tokio::test(start_paused = true)]
async fn a_bundle_cut_between_two_certificates_waits_for_its_end() {
    let world = World::new();
    let second = Pki::new("Second");
    let options = WatchOptions {
        poll: Duration::from_millis(200),
        ..by_events()
    };
    let ca = world.dir.path().join("ca.crt");
    let whole = format!("{}{}", world.pki.root.pem(), second.root.pem());
    put(&ca, &whole);
    let files = MaterialFiles::in_dir(world.dir.path());
    let (watch, driver) = MaterialWatch::start(files, Usage::Server, options)
        .await
        .expect("good material");
    let stop = CancellationToken::new();
    let write = async {
        let third = Authority::root("third");
        let longer = format!("{whole}{}", third.pem());
        // Cut after each certificate and inside of them, with pauses under the time that content must stand still.
        for at in [
            0,
            whole.len() / 2,
            whole.len() / 2 + 1,
            whole.len() - 3,
            whole.len(),
            longer.len(),
        ] {
            put(&ca, &longer.as_bytes()[..at]);
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
    let stop = CancellationToken::new();
    let rotate = async {
        for generation in 2..6 {
            let leaf = world.server_leaf();
            leaf.write_dir(world.dir.path(), &[&world.pki.root]);
            soon("the generation", watch.wait_for_generation(generation)).await;
        }
        // Quiet has to come: a watch that heard its own reads would look again for ever.
        let (mut last, mut quiet) = (0, 0);
        wait_until_async(DEADLINE, || {
            let looks = watch.status().looks;
            quiet = if looks == last { quiet + 1 } else { 0 };
            last = looks;
            std::future::ready(if quiet > 20 { Ok(()) } else { Err(looks) })
        })
        .await;
        stop.cancel();
    };
    tokio::join!(driver.run(stop.clone()), rotate);
}
