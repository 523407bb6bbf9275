//! Who rests on which root, and what would become of them without it.

use vidimus_testkit::{Authority, Pki, kubelet::Volume};
use vidimus_tls::{identity::Fingerprint, peers::Summary};

use crate::{
    shrink_paths::renew,
    support::{Client, Running, SERVER, Setup, call, soon},
};

/// Root, generation, current, connections.
fn rows(summary: &[Summary]) -> Vec<(&str, u64, bool, usize)> {
    summary
        .iter()
        .map(|group| {
            let subject = group.subject.as_deref().unwrap_or_default();
            (subject, group.generation, group.current, group.connections)
        })
        .collect()
}

/// T9. Connections are counted by the root and the generation that they came by; those that need the old root are named.
#[tokio::test]
async fn connections_are_counted_by_root_and_generation_and_a_root_that_is_needed_is_known() {
    let (old, new) = (Pki::new("Old"), Pki::new("New"));
    let dir = tempfile::tempdir().expect("a folder");
    let server = || new.leaf("server").dns(SERVER).server().issue();
    let both = [&old.root, &new.root];
    let mut volume = server().write_volume(&dir.path().join("tls"), &both);
    let (running, watch) = Running::follow(volume.dir(), Setup::default()).await;
    let open = async |pki: &Pki| {
        let leaf = pki.leaf("client").dns("client.test").client().issue();
        let client = Client::new(&new.root).with(&leaf);
        let mut echo = client.echo(running.address).await;
        call(&mut echo).await.expect("a call");
        echo
    };
    let _open = (open(&old).await, open(&old).await, open(&new).await);
    volume.swap(&server().files(&both));
    soon("the new leaf", watch.wait_for_generation(2)).await;
    let _later = open(&new).await;

    let print = |authority: &Authority| Fingerprint::of(authority.der());
    let peers = running.server.peers(Some(print(&old.root)));
    assert_eq!(
        rows(&peers.summary),
        [
            ("CN=New root", 1, false, 1),
            ("CN=New root", 2, true, 1),
            ("CN=Old root", 1, false, 2)
        ]
    );
    let uses: Vec<_> = peers.roots.iter().map(|root| root.connections).collect();
    assert_eq!((peers.generation, uses), (2, vec![2, 2]));
    for connection in &peers.connections {
        assert!(connection.not_after.is_some_and(|end| end > peers.at));
        assert!(!connection.draining && !connection.withdrawn);
    }
    let without = peers.without.expect("it was asked for");
    assert!(without.known);
    let ids: Vec<_> = peers.connections.iter().take(2).map(|one| one.id).collect();
    assert_eq!(without.needed_by, ids);

    let stranger = Pki::new("Stranger");
    let peers = running.server.peers(Some(print(&stranger.root)));
    let without = peers.without.expect("it was asked for");
    assert!(!without.known && without.needed_by.is_empty());
    running.stop().await;
}

/// T9. A root is not needed by a chain that holds along another path.
#[tokio::test]
async fn a_root_with_a_second_certificate_for_its_key_is_not_needed() {
    let (old, new) = (Authority::root("root"), Pki::new("New"));
    let dir = tempfile::tempdir().expect("a folder");
    let renewed = renew(&old, dir.path());
    let server = new.leaf("server").dns(SERVER).server().issue();
    let mut files = server.files(&[]);
    files[2].1 = old.pem() + &renewed;
    let tls = dir.path().join("tls");
    let _volume = Volume::create(&tls, &files);
    let (running, _watch) = Running::follow(&tls, Setup::default()).await;
    let leaf = old.leaf("client").dns("client.test").client().issue();
    let client = Client::new(&new.root).with(&leaf);
    let mut echo = client.echo(running.address).await;
    call(&mut echo).await.expect("a call");
    for root in running.server.peers(None).roots {
        let without = running.server.peers(Some(root.root.fingerprint())).without;
        let without = without.expect("it was asked for");
        assert!(without.known && without.needed_by.is_empty());
    }
    running.stop().await;
}
