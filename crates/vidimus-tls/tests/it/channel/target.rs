//! Targets without TLS, several addresses, and what doesn't fit together.

use tokio::net::{TcpListener, UnixListener};
use tonic::Code;
use vidimus_testkit::Pki;
use vidimus_tls::channel::{BuildError, Channel, ClientTls, TargetError};

use super::server::{TestServer, rustls_config, serve_unix};
use super::{assert_status, build, builder, call, client_leaf, server_leaf, watch};
use crate::support::SERVER;

#[tokio::test]
async fn a_unix_socket_carries_calls() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("node.sock");
    let target = format!("unix:{}", path.display());
    let channel = || build(Channel::builder(&target, "localhost", ClientTls::Local));
    assert_status(
        call(&channel()).await,
        Code::Unavailable,
        &["node.sock", "cannot open the socket"],
    );

    let _server = serve_unix(UnixListener::bind(&path).expect("a socket"));
    let channel = channel();
    call(&channel).await.expect("a call");
    let connection = &channel.status().connections[0];
    assert_eq!(
        (
            connection.generation,
            connection.anchor,
            connection.server.is_none()
        ),
        (None, None, true)
    );
}

#[tokio::test]
async fn plaintext_carries_calls_when_it_is_asked_for() {
    let server = TestServer::plaintext().await;
    let channel = build(Channel::builder(
        &server.target(),
        SERVER,
        ClientTls::Plaintext,
    ));
    call(&channel).await.expect("a call");

    // A client with TLS doesn't fall back to it.
    let pki = Pki::new("Example");
    let outcome = call(&build(builder(&pki, &server.target()))).await;
    assert_status(outcome, Code::Unavailable, &["TLS handshake failed"]);
}

/// Of several addresses the first that works is used; if none does, the one that came furthest is the reason.
#[tokio::test]
async fn addresses_are_tried_in_turn() {
    let pki = Pki::new("Example");
    let server = TestServer::mutual(rustls_config(&server_leaf(&pki), &pki.root)).await;
    let nobody = format!("127.0.0.1:{}", vidimus_testkit::free_port());
    // Accepts in the kernel and never answers.
    let mute = TcpListener::bind(("127.0.0.1", 0)).await.expect("a port");
    let mute = mute
        .local_addr()
        .map(|address| (mute, address))
        .expect("an address");

    let all = format!("{nobody},{},{}", mute.1, server.target());
    let channel = build(builder(&pki, &all).connect_timeout(std::time::Duration::from_secs(2)));
    call(&channel).await.expect("the third address answers");
    assert_eq!(channel.status().connections[0].address, server.target());

    let other = Pki::new("Other");
    let tls = ClientTls::Watch(watch(&client_leaf(&pki), &[&other.root]));
    let both = format!("{},{nobody}", server.target());
    let outcome = call(&build(Channel::builder(&both, SERVER, tls))).await;
    assert_status(
        outcome,
        Code::Unavailable,
        &["certificate of the server refused"],
    );
}

#[tokio::test]
async fn what_does_not_fit_together_is_not_built() {
    let pki = Pki::new("Example");
    let watch = watch(&client_leaf(&pki), &[&pki.root]);
    let built = |target: &str, name: &str, tls| Channel::builder(target, name, tls).build();
    let error = built("host", SERVER, ClientTls::Watch(watch.clone())).expect_err("no port");
    assert!(
        matches!(error, BuildError::Target(TargetError::HostPort { .. })),
        "{error}"
    );
    let error =
        built("host:1", "not a name", ClientTls::Watch(watch.clone())).expect_err("no name");
    assert!(matches!(error, BuildError::ServerName { .. }), "{error}");
    let error = built("host:1", SERVER, ClientTls::Local).expect_err("not local");
    assert!(matches!(error, BuildError::Protection { .. }), "{error}");
    let error = built("unix:/a", SERVER, ClientTls::Plaintext).expect_err("not remote");
    assert!(matches!(error, BuildError::Protection { .. }), "{error}");
    built("host:1", SERVER, ClientTls::Watch(watch)).expect("a channel");
}

#[test]
fn a_channel_needs_a_runtime() {
    let error = Channel::builder("host:1", SERVER, ClientTls::Plaintext)
        .build()
        .expect_err("no runtime");
    assert!(matches!(error, BuildError::NoRuntime));
}
