use std::time::Duration;

use vidimus_provider::manager::Manager;
use vidimus_testkit::{Pki, wait_until_async};
use vidimus_tls::identity::Fingerprint;

use crate::support::{DEADLINE, Running, Traffic, World, config};

const CALLERS: usize = 8;
const CALLS: usize = 40;

async fn server_generation(running: &Running, generation: u64) {
    wait_until_async(DEADLINE, || async {
        let now = running.status.material().unwrap();
        if now.generation >= generation {
            Ok(())
        } else {
            Err(format!("{now:?}"))
        }
    })
    .await;
}

async fn manager_generation(manager: &Manager, generation: u64) {
    let material = manager.material().unwrap();
    crate::support::soon(
        "the manager's material",
        material.wait_for_generation(generation),
    )
    .await;
}

/// Waits until every live connection was made with at least this generation of the manager's
/// files, and shows this leaf of the server.
async fn moved(manager: &Manager, generation: u64, server: Option<Fingerprint>) {
    wait_until_async(DEADLINE, || async {
        let connections = manager.channel_status().connections;
        let good = connections.iter().all(|one| {
            one.generation.is_some_and(|made| made >= generation)
                && server.is_none_or(|leaf| {
                    one.server
                        .as_ref()
                        .is_some_and(|shown| shown.fingerprint() == leaf)
                })
        });
        if good && !connections.is_empty() {
            Ok(())
        } else {
            Err(format!("{connections:?}"))
        }
    })
    .await;
}

/// Waits until every connection of the server has a peer with this certificate.
async fn only_peer(running: &Running, leaf: Fingerprint) {
    wait_until_async(DEADLINE, || async {
        let connections = running.status.page().connections;
        let good = connections.iter().all(|one| {
            one.peer
                .certificate()
                .is_some_and(|peer| peer.fingerprint() == leaf)
        });
        if good && !connections.is_empty() {
            Ok(())
        } else {
            Err(format!("{connections:?}"))
        }
    })
    .await;
}

/// V10.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_swapped_server_leaf_is_served_and_no_call_fails() {
    let world = World::new();
    let dir = world.path("mounted");
    let mut volume = world
        .server_leaf(&world.pki)
        .write_volume(&dir, &[&world.pki.root]);
    let mut running = Running::start(config(&dir)).await;
    let manager = running.manager(world.manager_dir()).await;
    let traffic = Traffic::start(&manager, CALLERS);
    traffic.more(CALLS).await;

    for generation in 2..=4 {
        let leaf = world.server_leaf(&world.pki);
        volume.swap(&leaf.files(&[&world.pki.root]));
        server_generation(&running, generation).await;
        // what a connection's age does after two hours: the old leaf is not shown to new ones
        running
            .status
            .server()
            .close_where(|_| true, Duration::from_secs(30));
        moved(&manager, 1, Some(Fingerprint::of(leaf.leaf_der()))).await;
        traffic.more(CALLS).await;
    }
    let calls = traffic.stop().await;
    assert!(calls > CALLS * 3);
    let status = running.status.material().unwrap();
    assert_eq!((status.reloads, status.failures), (3, 0));
    running.stop().await;
}

/// V10.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_swapped_manager_leaf_is_presented_and_no_call_fails() {
    let world = World::new();
    let dir = world.path("mounted");
    let mut volume = world
        .manager_leaf(&world.pki)
        .write_volume(&dir, &[&world.pki.root]);
    let mut running = Running::start(world.config()).await;
    let manager = running.manager(&dir).await;
    let traffic = Traffic::start(&manager, CALLERS);
    traffic.more(CALLS).await;

    for generation in 2..=4 {
        let leaf = world.manager_leaf(&world.pki);
        volume.swap(&leaf.files(&[&world.pki.root]));
        manager_generation(&manager, generation).await;
        moved(&manager, generation, None).await;
        only_peer(&running, Fingerprint::of(leaf.leaf_der())).await;
        traffic.more(CALLS).await;
    }
    traffic.stop().await;
    running.stop().await;
}

/// V10.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bad_new_files_leave_the_good_ones_in_use() {
    let world = World::new();
    let dir = world.path("mounted");
    let leaf = world.server_leaf(&world.pki);
    let mut volume = leaf.write_volume(&dir, &[&world.pki.root]);
    let mut running = Running::start(config(&dir)).await;
    let manager = running.manager(world.manager_dir()).await;
    let traffic = Traffic::start(&manager, 2);

    let [crt, _, ca] = world.server_leaf(&world.pki).files(&[&world.pki.root]);
    let [_, key, _] = leaf.files(&[&world.pki.root]);
    volume.swap(&[crt, key, ca]);
    wait_until_async(DEADLINE, || async {
        let now = running.status.material().unwrap();
        if now.failures > 0 {
            Ok(())
        } else {
            Err(format!("{now:?}"))
        }
    })
    .await;
    let status = running.status.material().unwrap();
    assert_eq!(status.generation, 1);
    assert_eq!(status.fingerprint, Fingerprint::of(leaf.leaf_der()));
    assert!(status.last_error().is_some());
    traffic.more(CALLS).await;

    let next = world.server_leaf(&world.pki);
    volume.swap(&next.files(&[&world.pki.root]));
    server_generation(&running, 2).await;
    assert_eq!(running.status.material().unwrap().last_error(), None);
    traffic.stop().await;
    running.stop().await;
}

/// V13.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_ca_is_replaced_on_both_sides_while_calls_flow() {
    let world = World::new();
    let (old, new) = (&world.pki, Pki::new("Next"));
    let (server_dir, manager_dir) = (world.path("server-mount"), world.path("manager-mount"));
    let old_server = world.server_leaf(old);
    let old_manager = world.manager_leaf(old);
    let mut server = old_server.write_volume(&server_dir, &[&old.root]);
    let mut client = old_manager.write_volume(&manager_dir, &[&old.root]);
    let mut running = Running::start(config(&server_dir)).await;
    let manager = running.manager(&manager_dir).await;
    let traffic = Traffic::start(&manager, CALLERS);
    traffic.more(CALLS).await;

    // both roots everywhere, before anything is signed by the new one
    server.swap(&old_server.files(&[&old.root, &new.root]));
    client.swap(&old_manager.files(&[&old.root, &new.root]));
    server_generation(&running, 2).await;
    manager_generation(&manager, 2).await;
    traffic.more(CALLS).await;

    // then leaves of the new one, the server's first
    let new_server = world.server_leaf(&new);
    let new_manager = world.manager_leaf(&new);
    server.swap(&new_server.files(&[&old.root, &new.root]));
    server_generation(&running, 3).await;
    client.swap(&new_manager.files(&[&old.root, &new.root]));
    manager_generation(&manager, 3).await;
    moved(&manager, 3, Some(Fingerprint::of(new_server.leaf_der()))).await;
    only_peer(&running, Fingerprint::of(new_manager.leaf_der())).await;
    let anchor = Fingerprint::of(new.root.der());
    for connection in running.status.page().connections {
        assert_eq!(
            connection.anchor,
            Some(anchor),
            "no connection rests on the old root"
        );
    }
    for connection in manager.channel_status().connections {
        assert_eq!(
            connection.anchor,
            Some(anchor),
            "no connection rests on the old root"
        );
    }

    // and only then the old root goes
    server.swap(&new_server.files(&[&new.root]));
    client.swap(&new_manager.files(&[&new.root]));
    server_generation(&running, 4).await;
    manager_generation(&manager, 4).await;
    traffic.more(CALLS).await;
    moved(&manager, 4, Some(Fingerprint::of(new_server.leaf_der()))).await;
    traffic.stop().await;

    // the old CA's leaves are strangers now
    let dir = world.folder("late", &old_manager, &[&old.root, &new.root]);
    let late = running.manager(dir).await;
    let error = crate::support::validate(&late).await.unwrap_err();
    assert!(error.status().message().contains("UnknownCA"), "{error}");
    running.stop().await;
}
