//! Streams of a server's own protocol: handed over with their peer, and ended like any other connection.

use std::io;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use http_body_util::{BodyExt, Empty};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::mpsc;
use vidimus_testkit::Pki;
use vidimus_tls::config::{Protocol, Protocols};
use vidimus_tls::policy::AllowList;
use vidimus_tls::server::{Connection, Limits, ServeError, Server, ServerBuilder};

use crate::serving::Serving;
use crate::support::{Client, DEADLINE, SERVER, World, soon};

/// Greets the peer by name and says back what it sends, until one of them stops, it says goodbye or the server has to end.
async fn echo(mut connection: Connection) {
    let greeting = format!("hello {}\n", connection.peer.label());
    let stream = &mut connection.stream;
    if stream.write_all(greeting.as_bytes()).await.is_err() {
        return;
    }
    let mut bytes = [0; 1024];
    loop {
        let read = tokio::select! {
            read = stream.read(&mut bytes) => read,
            () = connection.ending.cancelled() => break,
        };
        match read {
            Ok(0) | Err(_) => break,
            Ok(n) => {
                if bytes.starts_with(b"bye") {
                    break;
                }
                if stream.write_all(&bytes[..n]).await.is_err() || stream.flush().await.is_err() {
                    break;
                }
            }
        }
    }
}

async fn echoing(
    dir: &std::path::Path,
    build: impl FnOnce(ServerBuilder) -> ServerBuilder,
) -> Serving {
    let build = |builder: ServerBuilder| build(builder.protocols(Protocols::None));
    Serving::start(dir, build, |server, listener, stop| async move {
        server.serve_raw(listener, echo, stop).await
    })
    .await
}

/// V5. The peer is verified before the first byte, and a client needs no ALPN for it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn openssl_is_greeted_by_name() {
    let world = World::new();
    let serving = echoing(world.dir.path(), |builder| builder).await;
    let dir = tempfile::tempdir().expect("a folder");
    let leaf = world.pki.leaf("client").dns("client.test").client().issue();
    leaf.write_dir(dir.path(), &[&world.pki.root]);
    let run = |more: &[&str]| {
        let mut command = Command::new("openssl");
        command.current_dir(dir.path());
        command.args(["s_client", "-quiet", "-verify_quiet", "-ign_eof"]);
        command.arg("-connect").arg(serving.address.to_string());
        command.args(["-servername", SERVER, "-CAfile", "ca.crt"]);
        command.args([
            "-cert",
            "tls.crt",
            "-key",
            "tls.key",
            "-cert_chain",
            "tls.crt",
        ]);
        command.args(more);
        vidimus_testkit::command::run(command, b"bye\n", DEADLINE).stdout_text()
    };
    for more in [&[][..], &["-alpn", "imap"]] {
        let said = run(more);
        assert!(said.contains("hello client.test"), "{said}");
    }
    assert_eq!(serving.server.stats().handshakes_ok, 2);
    serving.stop().await;
}

/// V6. The allow-list has no call to refuse here, so it refuses the connection.
#[tokio::test]
async fn a_peer_off_the_allow_list_gets_no_stream() {
    for (allow, greeting) in [("client.test", "hello client.test\n"), ("nobody", "")] {
        let world = World::new();
        let serving = echoing(world.dir.path(), |builder| {
            builder.allow_list(AllowList::parse(allow).expect("a list"))
        })
        .await;
        let client = world.client().alpn(&[]);
        let mut stream = client.connect(serving.address).await.expect("a handshake");
        // Nothing more will be said.
        stream.shutdown().await.expect("a goodbye");
        let mut said = String::new();
        soon("the end", stream.read_to_string(&mut said))
            .await
            .expect("a clean end");
        assert_eq!(said, greeting);
        serving.stop().await;
    }
}

/// V13. At the shutdown each handler is told, and the peer gets a `close_notify`: without one, rustls reports an error.
#[tokio::test]
async fn a_shutdown_ends_streams_cleanly() {
    let world = World::new();
    let serving = echoing(world.dir.path(), |builder| builder).await;
    let client = world.client().alpn(&[]);
    let mut stream = client.connect(serving.address).await.expect("a handshake");
    let mut greeting = [0; 18];
    stream.read_exact(&mut greeting).await.expect("a greeting");
    assert_eq!(&greeting, b"hello client.test\n");
    serving.begin_shutdown();
    let mut rest = Vec::new();
    let ended = soon("the end", stream.read_to_end(&mut rest)).await;
    ended.expect("a clean end");
    let drained = serving.stop().await;
    assert_eq!((drained.open, drained.cut), (1, 0));
}

/// V14. A peer whose root leaves loses its stream at the deadline, wherever the handler has put it; others keep theirs.
#[tokio::test]
async fn a_withdrawn_stream_is_taken_away_wherever_it_is() {
    let (stays, leaves) = (Pki::new("Stays"), Pki::new("Leaves"));
    let dir = tempfile::tempdir().expect("a folder");
    let server = stays.leaf("server").dns(SERVER).server().issue();
    server.write_dir(dir.path(), &[&stays.root, &leaves.root]);
    let (hand_on, mut handed) = mpsc::unbounded_channel();
    let limits = Limits {
        withdrawal_grace: Duration::from_millis(100),
        ..Limits::default()
    };
    let serving = Serving::start(
        dir.path(),
        |builder| builder.protocols(Protocols::None).limits(limits),
        |server, listener, stop| async move {
            let handler = move |connection: Connection| {
                let hand_on = hand_on.clone();
                async move { hand_on.send(connection).expect("the test waits for it") }
            };
            server.serve_raw(listener, handler, stop).await
        },
    )
    .await;
    let connect = |pki: &Pki, name: &str| {
        let credential = pki.leaf(name).dns(name).client().issue();
        let client = Client::new(&stays.root).with(&credential).alpn(&[]);
        let address = serving.address;
        async move { client.connect(address).await.expect("a handshake") }
    };
    let mut doomed = connect(&leaves, "leaves.test").await;
    let mut theirs: Connection = soon("a connection", handed.recv()).await.expect("one");
    assert_eq!(theirs.peer.label(), "leaves.test");
    let mut safe = connect(&stays, "stays.test").await;
    let mut kept: Connection = soon("a connection", handed.recv()).await.expect("one");

    let again = stays.leaf("server").dns(SERVER).server().issue();
    again.write_dir(dir.path(), &[&stays.root]);
    let mut byte = [0];
    // The handler reads on, whatever it has been told.
    let read = soon("the end", theirs.stream.read(&mut byte)).await;
    assert!(theirs.ending.is_cancelled());
    let error = read.expect_err("an ended connection");
    assert_eq!(error.kind(), io::ErrorKind::ConnectionAborted);
    let wrote = theirs
        .stream
        .write(b"x")
        .await
        .expect_err("and for writing");
    assert_eq!(wrote.kind(), io::ErrorKind::ConnectionAborted);
    let n = soon("a goodbye", doomed.read(&mut byte)).await;
    assert_eq!(n.expect("a close_notify"), 0);

    assert!(!kept.ending.is_cancelled());
    kept.stream.write_all(b"!").await.expect("a write");
    kept.stream.flush().await.expect("a flush");
    soon("a byte", safe.read_exact(&mut byte))
        .await
        .expect("a byte");
    assert_eq!(serving.server.connections().len(), 1);
    drop((kept, theirs));
    serving.stop().await;
}

/// T17. A stream on which nothing happens is ended after its idle time.
#[tokio::test]
async fn an_idle_stream_is_asked_to_end() {
    let world = World::new();
    let limits = Limits {
        idle_timeout: Some(Duration::from_millis(100)),
        ..Limits::default()
    };
    let serving = echoing(world.dir.path(), |builder| builder.limits(limits)).await;
    let client = world.client().alpn(&[]);
    let mut stream = client.connect(serving.address).await.expect("a handshake");
    let mut said = String::new();
    soon("the end", stream.read_to_string(&mut said))
        .await
        .expect("a clean end");
    assert_eq!(said, "hello client.test\n");
    let drained = serving.stop().await;
    assert_eq!(drained.open, 0);
}

/// V5. hyper on the stream, as a server does that configures it itself.
#[tokio::test]
async fn plain_hyper_serves_on_the_stream() {
    let world = World::new();
    let build = |builder: ServerBuilder| builder.protocols(Protocols::H2AndHttp1);
    let serving = Serving::start(
        world.dir.path(),
        build,
        |server, listener, stop| async move {
            let handler = |connection: Connection| async move {
                assert_eq!(connection.protocol, Some(Protocol::Http1));
                let label: Arc<str> = connection.peer.label().into();
                let service = hyper::service::service_fn(move |_request| {
                    let body = label.to_string();
                    async move { Ok::<_, io::Error>(http::Response::new(body)) }
                });
                hyper::server::conn::http1::Builder::new()
                    .serve_connection(TokioIo::new(connection.stream), service)
                    .await
                    .expect("HTTP/1.1");
            };
            server.serve_raw(listener, handler, stop).await
        },
    )
    .await;
    let client = world.client().alpn(&[b"http/1.1"]);
    let stream = client.connect(serving.address).await.expect("a handshake");
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream))
        .await
        .expect("HTTP/1.1");
    let asking = async {
        let request = http::Request::get("/").header("host", SERVER);
        let request = request
            .body(Empty::<bytes::Bytes>::new())
            .expect("a request");
        let response = sender.send_request(request).await.expect("a response");
        let body = response.into_body().collect().await.expect("a body");
        drop(sender);
        body.to_bytes()
    };
    let (body, _) = soon("both", async { tokio::join!(asking, connection) }).await;
    assert_eq!(&body[..], b"client.test");
    serving.stop().await;
}

/// HTTP needs a protocol to be agreed on, so a server without one says so at once.
#[tokio::test]
async fn http_is_not_served_without_a_protocol() {
    let world = World::new();
    let files = vidimus_tls::material::MaterialFiles::in_dir(world.dir.path());
    let usage = vidimus_tls::material::Usage::Server;
    let options = crate::support::quick();
    let (watch, _driver) = vidimus_tls::watch::MaterialWatch::start(files, usage, options)
        .await
        .expect("good material");
    let server = Server::builder(vidimus_tls::server::Security::mutual(watch))
        .protocols(Protocols::None)
        .build();
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0))
        .await
        .expect("a port");
    let served = server
        .serve(
            listener.into(),
            crate::serving::whoami(),
            Default::default(),
        )
        .await;
    assert!(matches!(served, Err(ServeError::NoProtocol)), "{served:?}");
}
