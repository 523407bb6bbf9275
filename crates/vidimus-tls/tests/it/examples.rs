//! The examples of the crate's documentation, run as they stand: each serves, and takes new certificates into use.

#[path = "../../examples/axum_server.rs"]
#[expect(dead_code, reason = "the test is its main program")]
mod axum_server;
#[path = "../../examples/kubernetes.rs"]
#[expect(dead_code, reason = "the test is its main program")]
mod kubernetes;
#[path = "../../examples/tonic_client.rs"]
#[expect(dead_code, reason = "the test is its main program")]
mod tonic_client;
#[path = "../../examples/tonic_server.rs"]
#[expect(dead_code, reason = "the test is its main program")]
mod tonic_server;
#[path = "../../examples/unix_socket.rs"]
#[expect(dead_code, reason = "the test is its main program")]
mod unix_socket;

use std::error::Error;
use std::future::Future;
use std::net::SocketAddr;
use std::path::Path;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UnixStream};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use vidimus_testkit::kubelet::Volume;
use vidimus_testkit::{Pki, wait_until_async};
use vidimus_tls::server::Drained;

use crate::support::{Client, DEADLINE, SERVER, soon};

type Ended = Result<Drained, Box<dyn Error + Send + Sync>>;

/// An example that serves in the background.
struct Example {
    stop: CancellationToken,
    task: JoinSet<Ended>,
}

impl Example {
    fn start<F>(serve: impl FnOnce(CancellationToken) -> F) -> Self
    where
        F: Future<Output = Ended> + Send + 'static,
    {
        let stop = CancellationToken::new();
        let mut task = JoinSet::new();
        task.spawn(serve(stop.clone()));
        Self { stop, task }
    }

    async fn stop(mut self) {
        self.stop.cancel();
        let ended = soon("the end", self.task.join_next())
            .await
            .expect("a task");
        ended.expect("no panic").expect("it served");
    }
}

async fn listener() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a port");
    let address = listener.local_addr().expect("its address");
    (listener, address)
}

/// Waits until the server shows something else than `before`, and returns what.
async fn wait_for_another(client: &Client, address: SocketAddr, before: &[u8]) -> Vec<u8> {
    wait_until_async(DEADLINE, || async {
        let leaf = shown(client, address).await;
        if leaf == before {
            Err("the same certificate")
        } else {
            Ok(leaf)
        }
    })
    .await
}

async fn shown(client: &Client, address: SocketAddr) -> Vec<u8> {
    let stream = client.connect(address).await.expect("a handshake");
    stream.get_ref().1.peer_certificates().expect("a chain")[0].to_vec()
}

fn server_leaf(pki: &Pki) -> vidimus_testkit::Credential {
    pki.leaf("server").dns(SERVER).server().issue()
}

/// The calls of the example client, on the channel that it opened.
async fn is_serving(dir: &Path, address: SocketAddr) -> bool {
    let target = address.to_string();
    let called = tonic_client::with_channel(dir, &target, SERVER, tonic_client::is_serving);
    let answered = soon("a call", called).await.expect("a channel");
    answered.expect("an answer")
}

/// V10. Server and client of the documentation, before and after the server's certificate is renewed.
#[tokio::test]
async fn the_tonic_server_and_client_talk_across_a_rotation() {
    let pki = Pki::new("Example");
    let (theirs, ours) = (
        tempfile::tempdir().expect("a folder"),
        tempfile::tempdir().expect("a folder"),
    );
    server_leaf(&pki).write_dir(theirs.path(), &[&pki.root]);
    let leaf = pki.leaf("client").dns("client.example").client().issue();
    leaf.write_dir(ours.path(), &[&pki.root]);
    let (listener, address) = listener().await;
    let dir = theirs.path().to_owned();
    let example =
        Example::start(|stop| async move { tonic_server::serve(&dir, listener, stop).await });

    assert!(is_serving(ours.path(), address).await);
    let client = Client::new(&pki.root).with(&leaf);
    let before = shown(&client, address).await;
    server_leaf(&pki).write_dir(theirs.path(), &[&pki.root]);
    wait_for_another(&client, address, &before).await;
    assert!(is_serving(ours.path(), address).await);

    let stranger = tempfile::tempdir().expect("a folder");
    let other = pki.leaf("other").dns("other.example").client().issue();
    other.write_dir(stranger.path(), &[&pki.root]);
    let target = address.to_string();
    let called =
        tonic_client::with_channel(stranger.path(), &target, SERVER, tonic_client::is_serving);
    let refused = soon("a call", called).await.expect("a channel");
    assert_eq!(
        refused.expect_err("not allowed").code(),
        tonic::Code::PermissionDenied
    );
    example.stop().await;
}

/// V10. The mounted Secret of the documentation is swapped as the kubelet does it, and the probe answers.
#[tokio::test]
async fn the_kubernetes_server_follows_its_mounted_secret() {
    let pki = Pki::new("Example");
    let (mount, ours) = (
        tempfile::tempdir().expect("a folder"),
        tempfile::tempdir().expect("a folder"),
    );
    let mut volume = Volume::create(
        &mount.path().join("tls"),
        &server_leaf(&pki).files(&[&pki.root]),
    );
    let leaf = pki
        .leaf("client")
        .dns("client.default.svc")
        .client()
        .issue();
    leaf.write_dir(ours.path(), &[&pki.root]);
    let ((listener, address), (probes, probe)) = (listener().await, listener().await);
    let dir = volume.dir().to_owned();
    let example =
        Example::start(|stop| async move { kubernetes::serve(&dir, listener, probes, stop).await });

    assert!(is_serving(ours.path(), address).await);
    let ready = get(
        TcpStream::connect(probe).await.expect("the probe"),
        "/ready",
    )
    .await;
    assert!(
        ready.starts_with("HTTP/1.1 200") && ready.contains("generation 1"),
        "{ready}"
    );
    let client = Client::new(&pki.root).with(&leaf);
    let before = shown(&client, address).await;
    volume.swap(&server_leaf(&pki).files(&[&pki.root]));
    wait_for_another(&client, address, &before).await;
    let ready = get(
        TcpStream::connect(probe).await.expect("the probe"),
        "/ready",
    )
    .await;
    assert!(
        ready.starts_with("HTTP/1.1 200") && ready.contains("generation 2"),
        "{ready}"
    );
    assert!(is_serving(ours.path(), address).await);
    example.stop().await;
}

/// V10. The axum server of the documentation, over HTTP/1.1.
#[tokio::test]
async fn the_axum_server_knows_its_caller_across_a_rotation() {
    let pki = Pki::new("Example");
    let dir = tempfile::tempdir().expect("a folder");
    server_leaf(&pki).write_dir(dir.path(), &[&pki.root]);
    let (listener, address) = listener().await;
    let path = dir.path().to_owned();
    let example =
        Example::start(|stop| async move { axum_server::serve(&path, listener, stop).await });
    let leaf = pki.leaf("client").dns("client.example").client().issue();
    let client = Client::new(&pki.root).with(&leaf).alpn(&[b"http/1.1"]);
    let hello = || async { get(client.connect(address).await.expect("TLS"), "/hello").await };

    assert!(hello().await.ends_with("hello client.example\n"));
    let before = shown(&client, address).await;
    server_leaf(&pki).write_dir(dir.path(), &[&pki.root]);
    wait_for_another(&client, address, &before).await;
    assert!(hello().await.ends_with("hello client.example\n"));
    example.stop().await;
}

/// K15. The UNIX socket of the documentation.
#[tokio::test]
async fn the_server_on_a_unix_socket_knows_its_caller() {
    let dir = tempfile::tempdir().expect("a folder");
    let path = dir.path().join("socket");
    let served = path.clone();
    let example = Example::start(|stop| async move { unix_socket::serve(&served, stop).await });
    let stream = wait_until_async(DEADLINE, || UnixStream::connect(&path)).await;
    let uid = rustix::process::geteuid().as_raw();
    let hello = get(stream, "/hello").await;
    assert!(hello.ends_with(&format!("hello uid={uid}\n")), "{hello}");
    example.stop().await;
}

/// One HTTP/1.1 request and everything that comes back.
async fn get(mut stream: impl AsyncReadExt + AsyncWriteExt + Unpin, path: &str) -> String {
    let request = format!("GET {path} HTTP/1.1\r\nHost: {SERVER}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.expect("a write");
    stream.flush().await.expect("a flush");
    let mut text = String::new();
    soon("an answer", stream.read_to_string(&mut text))
        .await
        .expect("text");
    text
}
