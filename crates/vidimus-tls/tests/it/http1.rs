//! HTTP/1.1 beside HTTP/2, with curl and with clients that are slow, idle or no longer trusted.

use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use axum::routing::get;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixListener;
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use vidimus_testkit::{Pki, wait_until_async};
use vidimus_tls::config::Protocols;
use vidimus_tls::policy::{AllowList, Policy, PolicyWatch};
use vidimus_tls::server::{Limits, LocalPeers, Security, Server};

use crate::serving::{Serving, whoami};
use crate::support::{Client, DEADLINE, Running, SERVER, Setup, World, put, soon};

const ASK: &[u8] = b"GET /whoami HTTP/1.1\r\nHost: server.test\r\n\r\n";

/// curl's output with its exit status and what it says about failures.
fn curl(arguments: &[&str]) -> String {
    let mut command = Command::new("curl");
    command.args(["--silent", "--show-error", "--max-time", "20"]);
    command.args(arguments);
    let output = vidimus_testkit::command::run(command, b"", DEADLINE);
    format!("{}{}", output.stdout_text(), output.stderr_text())
}

/// What curl is told about a client's certificate and the server's address.
fn mutual(world: &World, dir: &std::path::Path, port: u16) -> Vec<String> {
    let leaf = world.pki.leaf("client").dns("client.test").client().issue();
    leaf.write_dir(dir, &[&world.pki.root]);
    let at = |name: &str| dir.join(name).display().to_string();
    vec![
        "--cert".to_owned(),
        at("tls.crt"),
        "--key".to_owned(),
        at("tls.key"),
        "--cacert".to_owned(),
        at("ca.crt"),
        "--resolve".to_owned(),
        format!("{SERVER}:{port}:127.0.0.1"),
        format!("https://{SERVER}:{port}/whoami"),
    ]
}

/// A handler that panics, at once or after it had to wait, ends its own call and no other of the connection.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_handler_that_panics_ends_its_call_alone() {
    async fn at_once() -> String {
        std::panic::panic_any("at once")
    }
    async fn after_a_wait() -> String {
        tokio::task::yield_now().await;
        std::panic::panic_any("after a wait")
    }
    let world = World::new();
    let router = whoami()
        .route("/at-once", get(at_once))
        .route("/after-a-wait", get(after_a_wait));
    let serving = Serving::http(world.dir.path(), Limits::default(), router).await;
    let client = tempfile::tempdir().expect("a folder");
    let mut arguments = mutual(&world, client.path(), serving.address.port());
    let whoami = arguments.pop().expect("the URL");
    let other = |path| whoami.replace("/whoami", path);
    // One after the other, over one connection as long as it lasts.
    arguments.extend([
        "--http2".to_owned(),
        other("/at-once"),
        other("/after-a-wait"),
        whoami.clone(),
    ]);
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let said = curl(&arguments);
    assert!(said.contains("HTTP/2.0 client.test"), "{said}");
    assert_eq!(said.matches("curl: (92)").count(), 2, "{said}");
    assert_eq!(serving.server.stats().accepted, 1, "{said}");
    serving.stop().await;
}

/// V5. The listener says what it speaks, and the client chooses; one that uses no ALPN at all gets HTTP/1.1.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn curl_is_served_over_either_version_and_without_alpn() {
    let world = World::new();
    let serving = Serving::http(world.dir.path(), Limits::default(), whoami()).await;
    let client = tempfile::tempdir().expect("a folder");
    let mutual = mutual(&world, client.path(), serving.address.port());
    for (how, version) in [
        ("--http2", "HTTP/2.0"),
        ("--http1.1", "HTTP/1.1"),
        ("--no-alpn", "HTTP/1.1"),
    ] {
        let mut arguments = vec![how];
        arguments.extend(mutual.iter().map(String::as_str));
        assert_eq!(curl(&arguments), format!("{version} client.test"), "{how}");
    }
    serving.stop().await;
}

/// V5. The other way round: a listener for HTTP/2 alone refuses the others in the handshake.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn curl_without_http_2_is_refused_by_a_listener_that_speaks_nothing_else() {
    let world = World::new();
    let (running, _watch) = Running::follow(world.dir.path(), Setup::default()).await;
    let client = tempfile::tempdir().expect("a folder");
    let mutual = mutual(&world, client.path(), running.address.port());
    for how in ["--http1.1", "--no-alpn"] {
        let mut arguments = vec![how];
        arguments.extend(mutual.iter().map(String::as_str));
        let said = curl(&arguments);
        assert!(said.contains("no application protocol"), "{how}: {said}");
    }
    let failures = running.server.stats().failures;
    assert_eq!(failures.get("alpn"), Some(&2), "{failures:?}");
    running.stop().await;
}

/// K15. On a UNIX socket nothing is agreed on beforehand: the client's first bytes say which version it speaks.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn curl_is_served_over_either_version_on_a_unix_socket() {
    let dir = tempfile::tempdir().expect("a folder");
    let path = dir.path().join("socket");
    let listener = UnixListener::bind(&path).expect("a socket");
    let server = Server::builder(Security::Local(LocalPeers::owner()))
        .protocols(Protocols::H2AndHttp1)
        .build();
    let stop = CancellationToken::new();
    let mut tasks = JoinSet::new();
    let token = stop.clone();
    tasks.spawn(async move { server.serve(listener.into(), whoami(), token).await });
    let path = path.display().to_string();
    let uid = rustix::process::geteuid().as_raw();
    for (how, version) in [
        ("--http1.1", "HTTP/1.1"),
        ("--http2-prior-knowledge", "HTTP/2.0"),
    ] {
        let said = curl(&[how, "--unix-socket", &path, "http://local/whoami"]);
        assert_eq!(said, format!("{version} uid={uid}"), "{how}");
    }
    stop.cancel();
    let served = soon("the end", tasks.join_next()).await.expect("a task");
    served.expect("no panic").expect("served");
}

/// V6. The allow-list holds for HTTP/1.1 as it does for HTTP/2.
#[tokio::test]
async fn the_allow_list_holds_over_http_1_1() {
    for (allow, status) in [("client.test", "200 OK"), ("nobody", "403 Forbidden")] {
        let world = World::new();
        let serving = Serving::start(
            world.dir.path(),
            |builder| {
                builder
                    .protocols(Protocols::H2AndHttp1)
                    .allow_list(AllowList::parse(allow).expect("a list"))
            },
            |server, listener, stop| async move { server.serve(listener, whoami(), stop).await },
        )
        .await;
        let client = world.client().alpn(&[b"http/1.1"]);
        let mut stream = client.connect(serving.address).await.expect("a handshake");
        stream.write_all(ASK).await.expect("a write");
        stream.flush().await.expect("a flush");
        let answer = head(&mut stream).await;
        assert!(
            answer.starts_with(&format!("HTTP/1.1 {status}")),
            "{answer}"
        );
        drop(stream);
        serving.stop().await;
    }
}

/// V17. Rules per method hold for paths over HTTP/1.1.
#[tokio::test]
async fn rules_hold_over_http_1_1() {
    let dir = tempfile::tempdir().expect("a folder");
    let file = dir.path().join("policy.yaml");
    for (pattern, status) in [("/whoami", "200 OK"), ("/other/", "403 Forbidden")] {
        let world = World::new();
        put(
            &file,
            format!("methods: [{{match: {pattern}, allow: [client.test]}}]"),
        );
        let policy = Policy::load(&file).expect("a policy");
        let serving = Serving::start(
            world.dir.path(),
            |builder| {
                builder
                    .protocols(Protocols::H2AndHttp1)
                    .policy(PolicyWatch::fixed(policy))
            },
            |server, listener, stop| async move { server.serve(listener, whoami(), stop).await },
        )
        .await;
        let client = world.client().alpn(&[b"http/1.1"]);
        let mut stream = client.connect(serving.address).await.expect("a handshake");
        stream.write_all(ASK).await.expect("a write");
        stream.flush().await.expect("a flush");
        let answer = head(&mut stream).await;
        let expected = format!("HTTP/1.1 {status}");
        assert!(answer.starts_with(&expected), "{pattern}: {answer}");
        drop(stream);
        serving.stop().await;
    }
}

/// A server under a root that stays, and a client under one that leaves.
struct Leaving {
    dir: tempfile::TempDir,
    stays: Pki,
    leaves: Pki,
}

impl Leaving {
    fn new() -> Self {
        let leaving = Self {
            dir: tempfile::tempdir().expect("a folder"),
            stays: Pki::new("Stays"),
            leaves: Pki::new("Leaves"),
        };
        leaving.write(true);
        leaving
    }

    fn write(&self, both: bool) {
        let leaf = self.stays.leaf("server").dns(SERVER).server().issue();
        let roots = [&self.stays.root, &self.leaves.root];
        leaf.write_dir(self.dir.path(), &roots[..if both { 2 } else { 1 }]);
    }

    fn client(&self) -> Client {
        Client::new(&self.stays.root)
            .with(
                &self
                    .leaves
                    .leaf("client")
                    .dns("leaves.test")
                    .client()
                    .issue(),
            )
            .alpn(&[b"http/1.1"])
    }
}

/// V14. A kept-alive connection whose peer is no longer trusted is closed, and one in the middle of a request is told to
/// close with its answer.
#[tokio::test]
async fn a_withdrawn_connection_is_closed_after_the_answer_under_way() {
    let leaving = Leaving::new();
    let answer = Arc::new(Notify::new());
    let waiting = Arc::clone(&answer);
    let router = whoami().route(
        "/slow",
        get(move || async move {
            waiting.notified().await;
            "late"
        }),
    );
    let limits = Limits {
        withdrawal_grace: DEADLINE,
        ..Limits::default()
    };
    let serving = Serving::http(leaving.dir.path(), limits, router).await;
    let connect = || async {
        let stream = leaving.client().connect(serving.address).await;
        stream.expect("a handshake")
    };
    let (mut idle, mut busy) = (connect().await, connect().await);
    idle.write_all(ASK).await.expect("a write");
    let kept = head(&mut idle).await;
    assert!(!kept.to_lowercase().contains("connection: close"), "{kept}");
    busy.write_all(b"GET /slow HTTP/1.1\r\nHost: server.test\r\n\r\n")
        .await
        .expect("a write");
    wait_until_async(DEADLINE, || async {
        let calls = serving.server.stats().calls;
        if calls == 2 { Ok(()) } else { Err(calls) }
    })
    .await;

    leaving.write(false);
    let mut rest = Vec::new();
    soon("the idle one's end", idle.read_to_end(&mut rest))
        .await
        .expect("a clean end");
    wait_until_async(DEADLINE, || async {
        let connections = serving.server.connections();
        if connections.iter().all(|connection| connection.draining) {
            Ok(())
        } else {
            Err(format!("{connections:?}"))
        }
    })
    .await;
    answer.notify_one();
    let mut text = String::new();
    soon("the busy one's end", busy.read_to_string(&mut text))
        .await
        .expect("a clean end");
    assert!(text.to_lowercase().contains("connection: close"), "{text}");
    assert!(text.ends_with("late"), "{text}");
    assert_eq!(serving.server.stats().withdrawn, 2);
    serving.stop().await;
}

/// V14. A handler that never ends doesn't keep the connection of a peer that is no longer trusted.
#[tokio::test]
async fn a_withdrawn_connection_is_cut_at_its_deadline() {
    let leaving = Leaving::new();
    let router = axum::Router::new().route("/never", get(std::future::pending::<()>));
    let limits = Limits {
        withdrawal_grace: Duration::from_millis(100),
        ..Limits::default()
    };
    let serving = Serving::http(leaving.dir.path(), limits, router).await;
    let stream = leaving.client().connect(serving.address).await;
    let mut stream = stream.expect("a handshake");
    stream
        .write_all(b"GET /never HTTP/1.1\r\nHost: server.test\r\n\r\n")
        .await
        .expect("a write");
    wait_until_async(DEADLINE, || async {
        let calls = serving.server.stats().calls;
        if calls == 1 { Ok(()) } else { Err(calls) }
    })
    .await;
    leaving.write(false);
    let mut rest = Vec::new();
    // Cut, not closed: there is no answer to end well with.
    let _ended = soon("the end", stream.read_to_end(&mut rest)).await;
    assert!(rest.is_empty(), "{rest:?}");
    let stats = serving.server.stats();
    assert_eq!((stats.withdrawn, stats.cut), (1, 1));
    serving.stop().await;
}

/// T17. A client that dribbles its request, or keeps its connection without one, is closed; one that asks is not.
#[tokio::test]
async fn a_slow_request_and_an_idle_connection_are_closed() {
    let world = World::new();
    let limits = Limits {
        http1_header_timeout: Duration::from_millis(200),
        ..Limits::default()
    };
    let serving = Serving::http(world.dir.path(), limits, whoami()).await;
    let client = world.client().alpn(&[b"http/1.1"]);
    for begin in [&b"GET /whoami HTTP/1.1\r\nHost:"[..], ASK] {
        let mut stream = client.connect(serving.address).await.expect("a handshake");
        stream.write_all(begin).await.expect("a write");
        if begin == ASK {
            let answer = head(&mut stream).await;
            assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        }
        let mut rest = Vec::new();
        soon("the end", stream.read_to_end(&mut rest)).await.ok();
    }
    serving.stop().await;
}

/// T17. An HTTP/2 connection without calls is asked to end after its idle time; one with a call in flight isn't.
#[tokio::test]
async fn an_idle_connection_is_asked_to_end() {
    let world = World::new();
    let limits = Limits {
        idle_timeout: Some(Duration::from_millis(100)),
        ..Limits::default()
    };
    let setup = Setup {
        limits,
        ..Setup::default()
    };
    let (running, _watch) = Running::follow(world.dir.path(), setup).await;
    let mut busy = world.client().echo(running.address).await;
    let stream = vidimus_proto::testkit::v1::EchoRequest {
        count: 0,
        delay_milliseconds: 1000,
        ..crate::support::request("stream")
    };
    let answers = busy.server_stream(stream).await.expect("a stream");
    let mut idle = world.client().connect(running.address).await.expect("TLS");
    idle.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0\0\0\0\x04\x01\0\0\0\0")
        .await
        .expect("a preface");
    soon("a GOAWAY", async {
        // A frame begins with its length in three bytes and its type (RFC 9113 §4.1); 7 is GOAWAY.
        loop {
            let mut frame = [0; 9];
            idle.read_exact(&mut frame).await.expect("a frame");
            let length = u32::from_be_bytes([0, frame[0], frame[1], frame[2]]);
            let mut payload = vec![0; length as usize];
            idle.read_exact(&mut payload).await.expect("its payload");
            if frame[3] == 7 {
                break;
            }
        }
    })
    .await;
    let connections = running.server.connections();
    let ending: Vec<bool> = connections.iter().map(|one| one.draining).collect();
    assert_eq!(ending, [false, true]);
    drop((answers, idle, busy));
    running.stop().await;
}

/// The head of one answer.
async fn head(stream: &mut (impl AsyncRead + Unpin)) -> String {
    let mut read = Vec::new();
    while !read.windows(4).any(|end| end == b"\r\n\r\n") {
        let byte = soon("an answer", stream.read_u8()).await.expect("a byte");
        read.push(byte);
    }
    String::from_utf8(read).expect("text")
}
