//! Listeners that somebody else has opened, and accepting under attack.

use std::io::Read;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::Command;

use hyper_util::rt::TokioIo;
use rustix::process::{Resource, Rlimit};
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpSocket, TcpStream, UnixStream};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tonic::service::Routes;
use tonic::transport::Endpoint;
use vidimus_proto::testkit::v1::echo_client::EchoClient;
use vidimus_testkit::{EchoService, Process, free_port, wait_until_async};
use vidimus_tls::material::{MaterialFiles, Usage};
use vidimus_tls::server::{
    AdoptError, Limits, Listener, LocalPeers, Security, Server, SystemdError,
};
use vidimus_tls::watch::MaterialWatch;

use crate::child;
use crate::support::{Client, DEADLINE, Running, Setup, World, call, quick, soon};

async fn follow(world: &World, limits: Limits) -> Running {
    let setup = Setup {
        limits,
        ..Setup::default()
    };
    Running::follow(world.dir.path(), setup).await.0
}

async fn mutual(dir: &Path) -> Server {
    let files = MaterialFiles::in_dir(dir);
    let started = MaterialWatch::start(files, Usage::Server, quick()).await;
    let (watch, _unchanging) = started.expect("good material");
    Server::builder(Security::mutual(watch)).build()
}

fn routes() -> Routes {
    Routes::new(EchoService::anonymous().into_server())
}

/// V5. Blocking, as the standard library makes it.
#[tokio::test]
async fn a_listener_of_the_standard_library_is_taken_over() {
    let world = World::new();
    let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).expect("a port");
    let address = listener.local_addr().expect("its address");
    let listener = Listener::try_from(listener).expect("it listens");
    assert_eq!(listener.tcp_address(), Some(address));
    let server = mutual(world.dir.path()).await;
    let stop = CancellationToken::new();
    let serving = server.serve(listener, routes(), stop.clone());
    let calling = async {
        let mut echo = world.client().echo(address).await;
        let answer = call(&mut echo).await;
        stop.cancel();
        answer
    };
    let (served, answer) = tokio::join!(serving, calling);
    served.expect("served");
    answer.expect("an answer");
}

/// V5. What cannot be listened at is told apart, before anything is served.
#[tokio::test]
async fn a_descriptor_that_is_no_listener_is_refused_by_name() {
    let dir = tempfile::tempdir().expect("a folder");
    let unix = std::os::unix::net::UnixListener::bind(dir.path().join("s")).expect("a socket");
    Listener::try_from(unix).expect("it listens");

    let datagram = std::net::UdpSocket::bind(("127.0.0.1", 0)).expect("a port");
    let (connected, _other) = std::os::unix::net::UnixStream::pair().expect("a pair");
    let file = std::fs::File::open(dir.path()).expect("a folder");
    let cases: [(OwnedFd, &str); 3] = [
        (datagram.into(), "another type than stream"),
        (connected.into(), "does not listen"),
        (file.into(), "no socket"),
    ];
    for (descriptor, expected) in cases {
        let refused = Listener::try_from(descriptor).expect_err(expected);
        assert!(matches!(refused, AdoptError::Unfit { .. }), "{refused:?}");
        assert!(refused.to_string().contains(expected), "{refused}");
    }
}

/// V5. A process that systemd didn't start this way is told so.
#[tokio::test]
async fn without_systemd_there_is_no_socket() {
    let refused = Listener::from_systemd("grpc").expect_err("none");
    assert!(matches!(refused, SystemdError::NotActivated), "{refused:?}");
}

/// The process that systemd's activator starts: it serves what it was given, by name and by index.
#[tokio::test]
async fn child_that_is_activated() {
    let Some(dir) = child::argument() else {
        return;
    };
    let refused = Listener::from_systemd("other").expect_err("there is none");
    child::say(&format!("refused {refused}"));
    let grpc = Listener::from_systemd("grpc").expect("the first");
    let again = Listener::from_systemd("grpc").expect_err("once is enough");
    assert!(matches!(again, SystemdError::Taken { .. }), "{again:?}");
    let twins = Listener::from_systemd("twin").expect_err("two");
    assert!(
        matches!(twins, SystemdError::Ambiguous { count: 2, .. }),
        "{twins:?}"
    );
    let local = Listener::from_systemd_index(1).expect("the second");
    let beyond = Listener::from_systemd_index(4).expect_err("no fifth");
    assert!(matches!(beyond, SystemdError::Unknown { .. }), "{beyond:?}");
    let (mutual, owner) = (
        mutual(Path::new(&dir)).await,
        Server::builder(Security::Local(LocalPeers::owner())).build(),
    );
    let never = CancellationToken::new();
    let (over_tls, over_unix) = tokio::join!(
        mutual.serve(grpc, routes(), never.clone()),
        owner.serve(local, routes(), never.clone())
    );
    over_tls.and(over_unix).expect("served");
}

/// V5. Sockets that systemd's own activator has bound, a TCP one by name and a UNIX one by index.
#[tokio::test]
async fn sockets_that_systemd_passes_are_served() {
    let world = World::new();
    let path = world.dir.path().join("local");
    let port = free_port();
    let mut command = Command::new("systemd-socket-activate");
    command.arg("-l").arg(format!("127.0.0.1:{port}"));
    for name in ["local", "twin1", "twin2"] {
        command.arg("-l").arg(world.dir.path().join(name));
    }
    command.arg("--fdname=grpc:local:twin:twin");
    let argument = format!("{}={}", child::ARGUMENT, world.dir.path().display());
    command.args(["-E", &argument]).arg(child::program());
    command.args(child::arguments("listen::child_that_is_activated"));
    let mut process = Process::spawn(command);
    process.wait_for_line_async("Listening on", DEADLINE).await;

    // This one starts the server, and is answered by it.
    let connector = tower::service_fn(move |_| {
        let path = path.clone();
        async move { UnixStream::connect(path).await.map(TokioIo::new) }
    });
    let channel = Endpoint::from_static("http://local").connect_with_connector_lazy(connector);
    call(&mut EchoClient::new(channel))
        .await
        .expect("an answer");
    let refused = child::word(&mut process, "refused").await;
    assert!(
        refused.ends_with(r#"no socket "other"; passed: "grpc", "local", "twin", "twin""#),
        "{refused}"
    );
    let address = SocketAddr::from(([127, 0, 0, 1], port));
    let mut echo = world.client().echo(address).await;
    call(&mut echo).await.expect("an answer over TLS");
}

/// The process that runs out of descriptors.
#[tokio::test]
async fn child_without_descriptors() {
    let Some(dir) = child::argument() else {
        return;
    };
    let server = mutual(Path::new(&dir)).await;
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0))
        .await
        .expect("a port");
    let address = listener.local_addr().expect("its address");
    let few = Rlimit {
        current: Some(64),
        maximum: Some(64),
    };
    rustix::process::setrlimit(Resource::Nofile, few).expect("fewer are always permitted");
    child::say(&format!("at {address}"));
    let watched = server.clone();
    let watching = async {
        wait_until_async(DEADLINE, || async {
            match watched.stats().accept_errors {
                0 => Err("no error yet"),
                _ => Ok(()),
            }
        })
        .await;
        child::say("exhausted");
    };
    let never = CancellationToken::new();
    let (served, ()) = tokio::join!(server.serve(listener.into(), routes(), never), watching);
    served.expect("served");
}

/// T17. A process without free descriptors neither ends nor spins, and accepts again when it has some.
#[tokio::test]
async fn accepting_goes_on_after_descriptors_ran_out() {
    let world = World::new();
    let mut process = child::start("listen::child_without_descriptors", world.dir.path());
    let address = child::word(&mut process, "at").await;
    let address: SocketAddr = address.parse().expect("an address");
    let mut silent = Vec::new();
    for _ in 0..100 {
        silent.push(TcpStream::connect(address).await.expect("a connection"));
    }
    child::word(&mut process, "exhausted").await;
    drop(silent);
    let mut echo = world.client().echo(address).await;
    call(&mut echo).await.expect("an answer");
}

/// T17. Thousands that connect and say nothing, held open: others are served between them and after them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn silent_connections_by_the_thousand_keep_nobody_out() {
    let world = World::new();
    let running = follow(&world, Limits::default()).await;
    let mut silent = Vec::new();
    for _ in 0..4 {
        for _ in 0..500 {
            silent.push(
                TcpStream::connect(running.address)
                    .await
                    .expect("a connection"),
            );
        }
        assert_eq!(world.client().refusal(running.address).await, None);
    }
    wait_displaced(&running, 1700).await;
    let mut echo = world.client().echo(running.address).await;
    call(&mut echo).await.expect("an answer");
    drop(silent);
    running.stop().await;
}

/// A connection from one of this machine's own addresses.
async fn from(source: [u8; 4], to: SocketAddr) -> TcpStream {
    let socket = TcpSocket::new_v4().expect("a socket");
    socket
        .bind((IpAddr::from(source), 0).into())
        .expect("an address of this machine");
    socket.connect(to).await.expect("a connection")
}

/// The first bytes of a client's hello: the header of its record, which promises more than comes.
const HALF_A_HELLO: &[u8] = &[22, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3];

/// T17. Half a hello from one source, over and over, drip by drip: it only pushes itself out, and one who came before it
/// and takes its time has its place all along.
#[tokio::test]
async fn half_hellos_of_one_source_push_out_only_themselves() {
    let world = World::new();
    let limits = Limits {
        max_handshakes: 16,
        max_handshakes_per_source: 4,
        ..Limits::default()
    };
    let running = follow(&world, limits).await;
    let patient = from([127, 0, 0, 2], running.address).await;
    let mut loris = Vec::new();
    for _ in 0..64 {
        let mut stream = from([127, 0, 0, 3], running.address).await;
        stream.write_all(HALF_A_HELLO).await.expect("a write");
        loris.push(stream);
    }
    wait_displaced(&running, 60).await;
    for stream in &mut loris[60..] {
        stream
            .write_all(&[0])
            .await
            .expect("the last ones are still there");
    }
    soon("the handshake", world.client().shake_hands(patient))
        .await
        .expect("it kept its place");
    assert_eq!(world.client().refusal(running.address).await, None);
    running.stop().await;
}

/// T17. From more sources than there are places the oldest goes first, whosever it is, and the newest is always let in.
#[tokio::test]
async fn half_hellos_of_many_sources_push_out_the_oldest() {
    let world = World::new();
    let limits = Limits {
        max_handshakes: 16,
        max_handshakes_per_source: 4,
        ..Limits::default()
    };
    let running = follow(&world, limits).await;
    let oldest = from([127, 0, 0, 2], running.address).await;
    let mut loris = Vec::new();
    for source in 10..60 {
        let mut stream = from([127, 0, 0, source], running.address).await;
        stream.write_all(HALF_A_HELLO).await.expect("a write");
        loris.push(stream);
        if source % 10 == 0 {
            assert_eq!(world.client().refusal(running.address).await, None);
        }
    }
    wait_displaced(&running, 35).await;
    let refused = soon("the end", world.client().shake_hands(oldest)).await;
    assert!(refused.is_err(), "the oldest made room");
    running.stop().await;
}

/// T17. A client whose hello has been answered isn't pushed out by half hellos, however old it is and however many they are.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn half_hellos_do_not_push_out_handshakes_under_way() {
    let world = World::new();
    let limits = Limits {
        max_handshakes: 16,
        ..Limits::default()
    };
    let running = follow(&world, limits).await;
    let mut tcp = from([127, 0, 0, 2], running.address).await;
    let mut client = world.client().connection();
    let mut hello = Vec::new();
    client.write_tls(&mut hello).expect("memory");
    tcp.write_all(&hello).await.expect("a write");
    let answered = soon("the answer", tcp.peek(&mut [0; 1])).await;
    assert_eq!(answered.expect("the server's hello"), 1);
    let mut loris = Vec::new();
    for source in 10..60 {
        let mut stream = from([127, 0, 0, source], running.address).await;
        stream.write_all(HALF_A_HELLO).await.expect("a write");
        loris.push(stream);
    }
    wait_displaced(&running, 30).await;
    let mut tcp = tcp.into_std().expect("its descriptor");
    tcp.set_nonblocking(false).expect("its mode");
    let read = tokio::task::spawn_blocking(move || {
        rustls::Stream::new(&mut client, &mut tcp).read(&mut [0; 1])
    });
    let read = soon("the server's settings", read).await.expect("no panic");
    assert_eq!(read.expect("it kept its place"), 1);
    running.stop().await;
}

async fn wait_displaced(running: &Running, count: u64) {
    wait_until_async(DEADLINE, || async {
        match running.server.stats().failures.get("displaced") {
            Some(found) if *found >= count => Ok(()),
            other => Err(format!("{other:?}")),
        }
    })
    .await;
}

/// T17. Handshakes that were under way when the last place was taken count as well.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_at_the_same_time_do_not_exceed_the_limit() {
    let world = World::new();
    let limits = Limits {
        max_connections: 4,
        ..Limits::default()
    };
    let running = follow(&world, limits).await;
    let client: Client = world.client();
    let mut waiting = Vec::new();
    for _ in 0..16 {
        waiting.push(
            TcpStream::connect(running.address)
                .await
                .expect("a connection"),
        );
    }
    let mut handshakes = JoinSet::new();
    for tcp in waiting {
        let client = client.clone();
        handshakes.spawn(async move { client.shake_hands(tcp).await });
    }
    let streams = soon("the handshakes", handshakes.join_all()).await;
    wait_until_async(DEADLINE, || async {
        match running.server.stats().turned_away {
            12.. => Ok(()),
            count => Err(count),
        }
    })
    .await;
    assert!(running.server.connections().len() <= 4);
    drop(streams);
    running.stop().await;
}
