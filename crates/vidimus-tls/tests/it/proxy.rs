//! Behind a proxy that says whose connection it passes on, and against everybody who only pretends to.

use std::fmt::Write as _;
use std::net::{IpAddr, SocketAddr};
use std::process::Command;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use vidimus_testkit::{Process, free_port, wait_until_async};
use vidimus_tls::config::Protocols;
use vidimus_tls::server::{Limits, Listener, RemoteAddr, UnixOptions};

use crate::serving::Serving;
use crate::support::{Client, DEADLINE, LogCapture, Running, Setup, World, call, soon};

const SIGNATURE: &[u8] = b"\r\n\r\n\0\r\nQUIT\n";
/// The networks of this machine.
const HERE: &str = "127.0.0.0/8, ::1";

/// The header of a client at this address.
fn header(client: &str) -> Vec<u8> {
    let client: SocketAddr = client.parse().expect("an address");
    let (family, ip) = match client.ip() {
        IpAddr::V4(ip) => (0x11, ip.octets().to_vec()),
        IpAddr::V6(ip) => (0x21, ip.octets().to_vec()),
    };
    let addresses = [ip.as_slice(), &vec![0; ip.len()]].concat();
    let ports = [client.port().to_be_bytes(), 443_u16.to_be_bytes()].concat();
    raw(0x21, family, &[addresses, ports].concat())
}

fn raw(version_command: u8, family: u8, rest: &[u8]) -> Vec<u8> {
    let length = u16::try_from(rest.len()).expect("short").to_be_bytes();
    let fixed = [version_command, family, length[0], length[1]];
    [SIGNATURE, &fixed, rest].concat()
}

async fn behind(world: &World, proxies: &'static str, limits: Limits) -> Running {
    let setup = Setup {
        proxies,
        limits,
        ..Setup::default()
    };
    Running::follow(world.dir.path(), setup).await.0
}

/// V5. The client's address is what the proxy says, wherever it is named: in the list of connections and in the log.
#[tokio::test]
async fn a_client_behind_a_proxy_has_its_own_address() {
    let world = World::new();
    let running = behind(&world, HERE, Limits::default()).await;
    for address in ["192.0.2.7:4711", "[2001:db8::7]:4711"] {
        let client = world.client().sending_first(&header(address));
        let mut echo = client.echo(running.address).await;
        assert_eq!(call(&mut echo).await.expect("a call").peer, "client.test");
        let connections = running.server.connections();
        assert!(
            connections.iter().any(|c| c.remote == address),
            "{connections:?}"
        );
    }
    let log = LogCapture::start();
    let nobody = Client::new(&world.pki.root).sending_first(&header("192.0.2.8:4712"));
    let refusal = nobody.refusal(running.address).await;
    assert_eq!(refusal.as_deref(), Some("CertificateRequired"));
    let lines = log.lines_with(&["TLS handshake failed", "192.0.2.8:4712"]);
    assert_eq!(lines.len(), 1, "{}", log.text());
    running.stop().await;
}

/// V5. A proxy's own connections, its health checks, keep its address.
#[tokio::test]
async fn a_proxys_own_connection_keeps_its_address() {
    let world = World::new();
    let running = behind(&world, HERE, Limits::default()).await;
    let client = world.client().sending_first(&raw(0x20, 0, &[]));
    let mut echo = client.echo(running.address).await;
    call(&mut echo).await.expect("a call");
    let connections = running.server.connections();
    assert!(
        connections[0].remote.starts_with("127.0.0.1:"),
        "{connections:?}"
    );
    running.stop().await;
}

/// V5. From a proxy's network nothing passes but a header of version 2 with an address.
#[tokio::test]
async fn a_proxy_without_a_good_header_is_closed_and_named() {
    let world = World::new();
    let running = behind(&world, HERE, Limits::default()).await;
    let cases = [
        (Vec::new(), "without a PROXY header"),
        (
            b"PROXY TCP4 192.0.2.7 198.51.100.2 1 443\r\n".to_vec(),
            "of version 1",
        ),
        (b"PROXY UNKNOWN\r\n".to_vec(), "of version 1"),
        (raw(0x21, 0x00, &[]), "protocol 0x00"),
        (raw(0x21, 0x31, &[0; 216]), "protocol 0x31"),
        (raw(0x21, 0x11, &[0; 4]), "4 bytes for addresses"),
        (raw(0x21, 0x11, &[0; 5000]), "5000 bytes"),
        (raw(0x2f, 0x11, &[0; 12]), "unknown command 15"),
    ];
    for (count, (first, expected)) in (1..).zip(cases) {
        let log = LogCapture::start();
        let client = world.client().sending_first(&first);
        assert!(
            client.refusal(running.address).await.is_some(),
            "{expected}"
        );
        wait_for(&running, "proxy_header", count).await;
        let lines = log.lines_with(&["proxy_header", "127.0.0.1:", expected]);
        assert_eq!(lines.len(), 1, "{expected}: {}", log.text());
    }
    let good = world.client().sending_first(&header("192.0.2.7:1"));
    assert_eq!(good.refusal(running.address).await, None);
    running.stop().await;
}

async fn wait_for(running: &Running, reason: &str, count: u64) {
    wait_until_async(DEADLINE, || async {
        match running.server.stats().failures.get(reason) {
            Some(found) if *found >= count => Ok(()),
            other => Err(format!("{reason}: {other:?}")),
        }
    })
    .await;
}

/// V5. Whoever isn't a proxy cannot claim to be somebody else, and needs no header.
#[tokio::test]
async fn a_header_from_elsewhere_is_not_believed() {
    let world = World::new();
    let running = behind(&world, "192.0.2.0/24", Limits::default()).await;
    let client = world.client().sending_first(&header("192.0.2.7:1"));
    assert!(client.refusal(running.address).await.is_some());
    wait_for(&running, "not_tls", 1).await;
    let mut echo = world.client().echo(running.address).await;
    call(&mut echo).await.expect("a call");
    let connections = running.server.connections();
    assert!(
        connections[0].remote.starts_with("127.0.0.1:"),
        "{connections:?}"
    );
    running.stop().await;
}

/// T17. Half a header, and then nothing: the handshake's time is the header's too.
#[tokio::test]
async fn a_proxy_that_falls_silent_is_dropped_at_the_handshake_timeout() {
    let world = World::new();
    let limits = Limits {
        handshake_timeout: Duration::from_millis(200),
        ..Limits::default()
    };
    let running = behind(&world, HERE, limits).await;
    let mut silent = TcpStream::connect(running.address)
        .await
        .expect("a connection");
    silent
        .write_all(&header("192.0.2.7:1")[..20])
        .await
        .expect("a write");
    let read = soon("the end", silent.read(&mut [0; 1])).await;
    assert!(matches!(read, Ok(0) | Err(_)), "{read:?}");
    wait_for(&running, "timeout", 1).await;
    running.stop().await;
}

/// T17. The share of a source is that of the client, not that of the proxy through which all of them come.
#[tokio::test]
async fn a_flood_through_a_proxy_displaces_only_itself() {
    let world = World::new();
    let limits = Limits {
        max_handshakes_per_source: 2,
        ..Limits::default()
    };
    let running = behind(&world, HERE, limits).await;
    let waiting = async |client: &str| {
        let mut tcp = TcpStream::connect(running.address)
            .await
            .expect("a connection");
        tcp.write_all(&header(client)).await.expect("a write");
        tcp
    };
    let patient = waiting("192.0.2.1:1").await;
    let mut flood = Vec::new();
    for port in 1..=8 {
        flood.push(waiting(&format!("192.0.2.2:{port}")).await);
    }
    wait_for(&running, "displaced", 6).await;
    soon("the handshake", world.client().shake_hands(patient))
        .await
        .expect("it kept its place");
    running.stop().await;
}

/// The protocol belongs to TCP.
#[tokio::test]
async fn a_unix_socket_has_no_proxy_protocol() {
    let dir = tempfile::tempdir().expect("a folder");
    let path = dir.path().join("socket");
    let listener = Listener::bind_unix(path, UnixOptions::default()).expect("a socket");
    let refused = listener.with_proxy_protocol("::1".parse().expect("a network"));
    assert!(refused.is_err());
}

/// A server that tells each client its address.
async fn telling(world: &World, proxies: &'static str) -> Serving {
    async fn remote(remote: axum::Extension<RemoteAddr>) -> String {
        remote.0.0.to_string()
    }
    let build =
        |builder: vidimus_tls::server::ServerBuilder| builder.protocols(Protocols::H2AndHttp1);
    Serving::start(
        world.dir.path(),
        build,
        |server, listener, stop| async move {
            let networks = proxies.parse().expect("networks");
            let listener = listener.with_proxy_protocol(networks).expect("it is TCP");
            let router = axum::Router::new().route("/", axum::routing::get(remote));
            server.serve(listener, router, stop).await
        },
    )
    .await
}

/// What curl, at one of the machine's own addresses, is told by the server at the other end; empty if it isn't served.
async fn curl(world: &World, port: u16, from: &str, more: &[&str]) -> String {
    let dir = tempfile::tempdir().expect("a folder");
    let leaf = world.pki.leaf("client").dns("client.test").client().issue();
    leaf.write_dir(dir.path(), &[&world.pki.root]);
    let mut command = Command::new("curl");
    command
        .current_dir(dir.path())
        .args(["--silent", "--max-time", "20"]);
    command.args([
        "--cacert", "ca.crt", "--cert", "tls.crt", "--key", "tls.key",
    ]);
    command.args(["--interface", from, "--resolve"]);
    command.arg(format!("server.test:{port}:127.0.0.1"));
    command
        .args(more)
        .arg(format!("https://server.test:{port}/"));
    let run = tokio::task::spawn_blocking(move || command.output().expect("curl runs"));
    let output = soon("curl", run).await.expect("no panic");
    drop(dir);
    String::from_utf8(output.stdout).expect("text")
}

/// V5. HAProxy passes connections on as they come, with a header of its own making; its checks are LOCAL connections.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn haproxy_says_whose_connection_it_passes_on() {
    let world = World::new();
    let serving = telling(&world, "127.0.0.1").await;
    let (mut haproxy, port) = start_haproxy(&world, serving.address).await;
    for client in ["127.0.0.9", "127.0.0.10"] {
        let told = curl(&world, port, client, &[]).await;
        assert!(
            told.starts_with(&format!("{client}:")),
            "{told:?}: {haproxy}"
        );
    }
    // The client of the first one writes a header of its own inside: for HAProxy it is content, for us it isn't TLS.
    let told = curl(&world, port, "127.0.0.9", &["--haproxy-protocol"]).await;
    assert_eq!(told, "");
    wait_until_async(DEADLINE, || async {
        let stats = serving.server.stats();
        match (
            stats.failures.get("closed"),
            stats.failures.get("proxy_header"),
        ) {
            (Some(_checked), None) => Ok(()),
            other => Err(format!("no check, or a refused one: {other:?}")),
        }
    })
    .await;
    haproxy.kill();

    // Past the proxy: a plain client from another address, and one from the proxy's that has no header or version 1.
    let port = serving.address.port();
    let told = curl(&world, port, "127.0.0.9", &[]).await;
    assert!(told.starts_with("127.0.0.9:"), "{told:?}");
    assert_eq!(curl(&world, port, "127.0.0.1", &[]).await, "");
    assert_eq!(
        curl(&world, port, "127.0.0.1", &["--haproxy-protocol"]).await,
        ""
    );
    let failures = serving.server.stats().failures;
    assert_eq!(failures.get("proxy_header"), Some(&2), "{failures:?}");
    serving.stop().await;
}

async fn start_haproxy(world: &World, behind: SocketAddr) -> (Process, u16) {
    for _ in 0..5 {
        let port = free_port();
        let mut config =
            "global\n  log stdout format raw local0\ndefaults\n  mode tcp\n  log global\n"
                .to_owned();
        config.push_str("  timeout connect 10s\n  timeout client 20s\n  timeout server 20s\n");
        write!(config, "listen front\n  bind 127.0.0.1:{port}\n").expect("text");
        writeln!(config, "  server ours {behind} source 127.0.0.1 send-proxy-v2 check check-send-proxy inter 200ms").expect("text");
        let path = world.dir.path().join("haproxy.cfg");
        crate::support::put(&path, config);
        let mut command = Command::new("/usr/sbin/haproxy");
        command.args(["-db", "-f"]).arg(path);
        let mut process = Process::spawn(command);
        let listens = wait_until_async(DEADLINE, || {
            let ended = process.poll_exit();
            async move {
                match (ended, TcpStream::connect(("127.0.0.1", port)).await) {
                    (Some(_), _) => Ok(false),
                    (None, Ok(_)) => Ok(true),
                    (None, Err(error)) => Err(error.to_string()),
                }
            }
        });
        if listens.await {
            return (process, port);
        }
    }
    panic!("haproxy found no free port, or is not installed");
}
