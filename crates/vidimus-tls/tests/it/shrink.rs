//! Trust that shrinks while connections are open: the simple form of V14.

use std::time::{Duration, Instant};

use tokio_stream::StreamExt;
use tonic::Code;
use vidimus_proto::testkit::v1::EchoRequest;
use vidimus_testkit::{Authority, Pki, wait_until_async};

use crate::support::{Client, DEADLINE, Running, SERVER, Setup, call, request, soon};

/// V14. A root leaves: its peers' connections end within five seconds, new calls at once, and the others never notice.
#[tokio::test]
async fn connections_under_a_removed_root_end_and_others_do_not() {
    let (old, new) = (Pki::new("Old"), Pki::new("New"));
    let dir = tempfile::tempdir().expect("a folder");
    let server = new.leaf("server").dns(SERVER).server().issue();
    let mut volume = server.write_volume(&dir.path().join("tls"), &[&old.root, &new.root]);
    let (running, watch) = Running::follow(volume.dir(), Setup::default()).await;
    let client = |pki: &Pki, name: &str| {
        Client::new(&new.root).with(&pki.leaf(name).dns(name).client().issue())
    };
    let mut leaves = client(&old, "leaves.test").echo(running.address).await;
    let mut stays = client(&new, "stays.test").echo(running.address).await;
    let stream = EchoRequest {
        count: 0,
        delay_milliseconds: 5,
        ..request("stream")
    };
    let mut cut = leaves
        .server_stream(stream.clone())
        .await
        .expect("a stream")
        .into_inner();
    let mut kept = stays
        .server_stream(stream)
        .await
        .expect("a stream")
        .into_inner();
    cut.next().await.expect("an answer").expect("no error");

    let again = new.leaf("server").dns(SERVER).server().issue();
    volume.swap(&again.files(&[&new.root]));
    let began = Instant::now();
    soon("the removal", watch.wait_for_generation(2)).await;
    let refused = wait_until_async(DEADLINE, || {
        let mut leaves = leaves.clone();
        async move {
            match call(&mut leaves).await {
                Ok(_) => Err("still served"),
                Err(status) => Ok(status),
            }
        }
    })
    .await;
    // On the old connection while it drains, or from the handshake of a new one.
    assert!(
        [
            Code::Unauthenticated,
            Code::Unavailable,
            Code::Unknown,
            Code::Cancelled
        ]
        .contains(&refused.code()),
        "{refused:?}"
    );
    soon("the stream's end", async {
        while let Some(Ok(_)) = cut.next().await {}
    })
    .await;
    assert!(
        began.elapsed() < Duration::from_secs(5),
        "{:?}",
        began.elapsed()
    );
    assert_eq!(running.server.stats().withdrawn, 1);
    kept.next()
        .await
        .expect("an answer")
        .expect("the other stream goes on");
    call(&mut stays).await.expect("and so do calls");
    drop(kept);
    running.stop().await;
}

/// V14. A chain that holds along another path stays: the intermediate is cross-signed by the root that remains.
#[tokio::test]
async fn a_chain_that_holds_along_another_path_stays() {
    let (old, new) = (Authority::root("root"), Pki::new("New"));
    // The same root's certificate, renewed: name and key stay, so a chain under the one holds under the other.
    let dir = tempfile::tempdir().expect("a folder");
    let renewed = renew(&old, dir.path());
    let server = new.leaf("server").dns(SERVER).server().issue();
    let files = |roots: &str| {
        let mut files = server.files(&[]);
        files[2].1 = roots.to_owned();
        files
    };
    let tls = dir.path().join("tls");
    let mut volume = vidimus_testkit::kubelet::Volume::create(&tls, &files(&old.pem()));
    let (running, watch) = Running::follow(&tls, Setup::default()).await;
    let leaf = old.leaf("client").dns("client.test").client().issue();
    let mut client = Client::new(&new.root)
        .with(&leaf)
        .echo(running.address)
        .await;
    call(&mut client).await.expect("a call");
    let before = running.server.connections()[0].anchor;

    volume.swap(&files(&renewed));
    soon("the renewed root", watch.wait_for_generation(2)).await;
    wait_until_async(DEADLINE, || async {
        let now = running.server.connections()[0].anchor;
        if now != before && now.is_some() {
            Ok(())
        } else {
            Err(format!("{now:?}"))
        }
    })
    .await;
    call(&mut client).await.expect("the connection goes on");
    let stats = running.server.stats();
    assert_eq!((stats.withdrawn, stats.accepted), (0, 1));
    running.stop().await;
}

/// Another certificate for the root's name and key, made by openssl.
fn renew(root: &Authority, dir: &std::path::Path) -> String {
    let (key, certificate) = (dir.join("root.key"), dir.join("root.crt"));
    #[expect(
        clippy::disallowed_methods,
        reason = "a test's files need not survive a crash"
    )]
    std::fs::write(&key, root.key_pem()).expect("a key");
    let (key, certificate) = (key.display().to_string(), certificate.display().to_string());
    vidimus_testkit::openssl([
        "req",
        "-x509",
        "-new",
        "-key",
        &key,
        "-utf8",
        "-subj",
        "/CN=root",
        "-days",
        "30",
        "-addext",
        "keyUsage=critical,keyCertSign",
        "-out",
        &certificate,
    ])
    .success();
    std::fs::read_to_string(certificate).expect("a certificate")
}
