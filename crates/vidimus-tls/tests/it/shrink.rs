//! Trust that shrinks while connections are open: the simple form of V14.

use std::time::Duration;

use tokio_stream::StreamExt;
use tonic::Code;
use vidimus_proto::testkit::v1::EchoRequest;
use vidimus_testkit::{Pki, wait_until_async};

use vidimus_tls::server::{ExpiredPeers, Limits};

use crate::support::{Client, DEADLINE, Running, SERVER, Setup, World, call, clock, request, soon};

/// V14. A root leaves: its peers' new calls are refused at once, their connections end at a deadline, and the others never
/// notice.
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
    assert_eq!(
        running.server.stats().cut,
        0,
        "refused before anything was cut"
    );
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
    // First no new call, then the hard end of what ran.
    let stats = running.server.stats();
    assert_eq!((stats.withdrawn, stats.cut), (1, 1));
    kept.next()
        .await
        .expect("an answer")
        .expect("the other stream goes on");
    call(&mut stays).await.expect("and so do calls");
    drop(kept);
    running.stop().await;
}

/// V14. A peer that answers nothing, its PING least of all, gets no further call through once its root has left, and its
/// connection is closed: hyper would serve it for ever.
#[tokio::test]
async fn a_withdrawn_peer_that_answers_nothing_gets_no_further_call_and_is_closed() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let (old, new) = (Pki::new("Old"), Pki::new("New"));
    let dir = tempfile::tempdir().expect("a folder");
    let server = || new.leaf("server").dns(SERVER).server().issue();
    let mut volume = server().write_volume(&dir.path().join("tls"), &[&old.root, &new.root]);
    let (running, watch) = Running::follow(volume.dir(), Setup::default()).await;
    let leaf = old.leaf("client").dns("client.test").client().issue();
    let client = Client::new(&new.root).with(&leaf);
    let mut stream = mute_with_a_call(&client, &running).await;

    volume.swap(&server().files(&[&new.root]));
    soon("the removal", watch.wait_for_generation(2)).await;
    wait_until_async(DEADLINE, || async {
        match running.server.stats().withdrawn {
            1 => Ok(()),
            count => Err(count),
        }
    })
    .await;
    stream
        .write_all(&call_headers(3))
        .await
        .expect("another call");
    // Reads on, answers nothing, until the server closes.
    let mut rest = Vec::new();
    let _end = soon("the hard close", stream.read_to_end(&mut rest)).await;
    let stats = running.server.stats();
    assert_eq!((stats.calls, stats.cut), (1, 1));
    running.stop().await;
}

/// T8. A peer whose certificate has expired and that answers nothing gets no further call through either, while the one
/// that runs has its grace.
#[tokio::test]
async fn an_expired_peer_that_answers_nothing_gets_no_further_call() {
    use tokio::io::AsyncWriteExt;
    use vidimus_testkit::pki::Validity;
    const RST_STREAM: u8 = 3;
    const REFUSED_STREAM: [u8; 4] = [0, 0, 0, 7];
    let world = World::new();
    let ahead = std::sync::Arc::default();
    let setup = Setup {
        limits: Limits {
            expiry_interval: Duration::from_millis(10),
            ..Limits::default()
        },
        clock: clock(&ahead),
        ..Setup::default()
    };
    let (running, _watch) = Running::follow(world.dir.path(), setup).await;
    let leaf = world.pki.leaf("client").dns("client.test").client();
    let leaf = leaf.validity(Validity::ends_in(Duration::from_secs(3600)));
    let client = Client::new(&world.pki.root).with(&leaf.issue());
    let mut stream = mute_with_a_call(&client, &running).await;

    ahead.store(2 * 3600, std::sync::atomic::Ordering::Relaxed);
    wait_until_async(DEADLINE, || async {
        match running.server.stats().expired {
            1 => Ok(()),
            count => Err(count),
        }
    })
    .await;
    stream.write_all(&call_headers(3)).await.expect("a write");
    let refusal = soon("a refusal", frame_of(&mut stream, 3)).await;
    assert_eq!(refusal, (RST_STREAM, REFUSED_STREAM.to_vec()));
    let connection = running.server.connections().remove(0);
    assert!(connection.draining && !connection.withdrawn);
    assert_eq!(connection.streams, 1, "the first call goes on");
    let stats = running.server.stats();
    assert_eq!((stats.calls, stats.cut), (1, 0));
    drop(stream);
    running.stop().await;
}

/// A connection with a call that stays open, whose client will answer nothing.
pub(crate) async fn mute_with_a_call(
    client: &Client,
    running: &Running,
) -> tokio_rustls::client::TlsStream<tokio::net::TcpStream> {
    use tokio::io::AsyncWriteExt;
    let mut stream = client.connect(running.address).await.expect("a connection");
    let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
    stream.write_all(preface).await.expect("a preface");
    stream.write_all(&call_headers(1)).await.expect("a call");
    wait_until_async(DEADLINE, || async {
        match running.server.stats().calls {
            1 => Ok(()),
            calls => Err(calls),
        }
    })
    .await;
    stream
}

/// The headers of a call that stays open.
pub(crate) fn call_headers(stream: u8) -> Vec<u8> {
    headers_of("/vidimus.testkit.v1.Echo/ClientStream", stream)
}

/// The headers of a call, as an HTTP/2 frame (RFC 9113 section 6.2, RFC 7541 appendix A).
pub(crate) fn headers_of(path: &str, stream: u8) -> Vec<u8> {
    let mut block = vec![0x83, 0x87];
    let fields: [(&[u8], &str); 3] = [
        (&[0x04], path),
        (&[0x01], SERVER),
        (&[0x0f, 0x10], "application/grpc"),
    ];
    for (name, value) in fields {
        block.extend_from_slice(name);
        block.push(u8::try_from(value.len()).expect("a short value"));
        block.extend_from_slice(value.as_bytes());
    }
    block.extend_from_slice(b"\x00\x02te\x08trailers");
    let length = u8::try_from(block.len()).expect("a short block");
    let mut frame = vec![0, 0, length, 1, 4, 0, 0, 0, stream];
    frame.append(&mut block);
    frame
}

/// V14. A handshake that is held open across the removal of its root is never served.
#[tokio::test]
async fn a_handshake_held_open_across_a_removal_is_not_served() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let (old, new) = (Pki::new("Old"), Pki::new("New"));
    let dir = tempfile::tempdir().expect("a folder");
    let server = || new.leaf("server").dns(SERVER).server().issue();
    let both = [&old.root, &new.root];
    let mut volume = server().write_volume(&dir.path().join("tls"), &both);
    let (running, watch) = Running::follow(volume.dir(), Setup::default()).await;
    for (roots, served) in [(&both[..], true), (&[&new.root][..], false)] {
        let gate = Gate::start(running.address).await;
        let leaf = old.leaf("client").dns("client.test").client().issue();
        let client = Client::new(&new.root).with(&leaf);
        let connecting = client.connect(gate.address);
        let changing = async {
            soon("the server's answer", gate.answered()).await;
            let generation = watch.current().generation();
            volume.swap(&server().files(roots));
            soon("the change", watch.wait_for_generation(generation + 1)).await;
            gate.open();
        };
        let (stream, ()) = tokio::join!(connecting, changing);
        let mut stream = stream.expect("a TLS 1.3 client is done early");
        let exchange = async {
            stream
                .write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0")
                .await?;
            stream.flush().await?;
            stream.read_u8().await
        };
        let outcome = soon("an answer or the end", exchange).await;
        assert_eq!(outcome.is_ok(), served, "{outcome:?}");
    }
    assert_eq!(running.server.stats().withdrawn, 1);
    running.stop().await;
}

/// T8. A connection ends when its peer's certificate does, unless that is to be ignored.
#[tokio::test]
async fn a_connection_ends_with_its_peers_certificate() {
    use vidimus_testkit::pki::Validity;
    let world = World::new();
    let leaf = |name: &str, left| {
        let leaf = world.pki.leaf(name).dns(name).client();
        leaf.validity(Validity::ends_in(Duration::from_secs(left)))
            .issue()
    };
    let client = |name: &str, left| Client::new(&world.pki.root).with(&leaf(name, left));
    for (expired_peers, ended) in [(ExpiredPeers::Drain, 1), (ExpiredPeers::Ignore, 0)] {
        let ahead = std::sync::Arc::default();
        let setup = Setup {
            limits: Limits {
                expired_peers,
                expiry_interval: Duration::from_millis(10),
                expired_peer_grace: Duration::from_millis(50),
                ..Limits::default()
            },
            clock: clock(&ahead),
            ..Setup::default()
        };
        let (running, _watch) = Running::follow(world.dir.path(), setup).await;
        let mut short = client("short.test", 3600).echo(running.address).await;
        let mut long = client("long.test", 24 * 3600).echo(running.address).await;
        call(&mut short).await.expect("a call");
        call(&mut long).await.expect("a call");
        ahead.store(2 * 3600, std::sync::atomic::Ordering::Relaxed);
        wait_until_async(DEADLINE, || async {
            let open = running.server.connections().len();
            if open == 2 - ended { Ok(()) } else { Err(open) }
        })
        .await;
        call(&mut long).await.expect("a call");
        assert_eq!(running.server.stats().expired, ended as u64);
        let refusal = client("short.test", 3600).refusal(running.address).await;
        assert_eq!(refusal.as_deref(), Some("CertificateExpired"));
        running.stop().await;
    }
}

/// V14. A call that meets the end of its connection is refused as never processed (RFC 9113 §8.7), whatever the client has
/// heard of that end: one with newer material sends it again elsewhere, and no call is lost to a rotation.
#[tokio::test]
async fn a_call_on_a_withdrawn_connection_is_refused_as_never_processed() {
    use tokio::io::AsyncWriteExt;
    const RST_STREAM: u8 = 3;
    const REFUSED_STREAM: [u8; 4] = [0, 0, 0, 7];
    const HEADERS: u8 = 1;
    let (old, new) = (Pki::new("Old"), Pki::new("New"));
    let dir = tempfile::tempdir().expect("a folder");
    let server = || new.leaf("server").dns(SERVER).server().issue();
    let mut volume = server().write_volume(&dir.path().join("tls"), &[&old.root, &new.root]);
    let (running, _watch) = Running::follow(volume.dir(), Setup::default()).await;
    let leaf = old.leaf("client").dns("client.test").client().issue();
    let client = Client::new(&new.root).with(&leaf);
    let mut stream = client.connect(running.address).await.expect("a handshake");
    let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
    stream.write_all(preface).await.expect("a write");
    // POST / over https, out of HPACK's static table, with END_STREAM and END_HEADERS.
    let request = |id: u8| [0, 0, 3, HEADERS, 5, 0, 0, 0, id, 0x83, 0x87, 0x84];

    stream.write_all(&request(1)).await.expect("a write");
    let (kind, _) = soon("an answer", frame_of(&mut stream, 1)).await;
    assert_eq!(kind, HEADERS, "the connection serves");

    volume.swap(&server().files(&[&new.root]));
    wait_until_async(DEADLINE, || async {
        match running.server.stats().withdrawn {
            1 => Ok(()),
            _ => Err("not withdrawn"),
        }
    })
    .await;
    stream.write_all(&request(3)).await.expect("a write");
    let refusal = soon("a refusal", frame_of(&mut stream, 3)).await;
    assert_eq!(refusal, (RST_STREAM, REFUSED_STREAM.to_vec()));
    assert_eq!(running.server.stats().refused_by_policy, 1);
    running.stop().await;
}

/// Type and content of the next frame of a stream.
pub(crate) async fn frame_of(
    stream: &mut (impl tokio::io::AsyncRead + Unpin),
    id: u8,
) -> (u8, Vec<u8>) {
    use tokio::io::AsyncReadExt;
    loop {
        let mut head = [0; 9];
        stream.read_exact(&mut head).await.expect("a frame");
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
        let mut content = vec![0; length as usize];
        stream.read_exact(&mut content).await.expect("its content");
        if head[8] == id {
            return (head[3], content);
        }
    }
}

/// A relay that holds back what the client sends after its first message.
struct Gate {
    address: std::net::SocketAddr,
    opened: tokio_util::sync::CancellationToken,
    answered: tokio_util::sync::CancellationToken,
    _relay: tokio::task::JoinSet<std::io::Result<()>>,
}

impl Gate {
    async fn start(server: std::net::SocketAddr) -> Self {
        use tokio::io::{AsyncReadExt, AsyncWriteExt};
        let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0))
            .await
            .expect("a port");
        let address = listener.local_addr().expect("an address");
        let (opened, answered) = Default::default();
        let mut relay = tokio::task::JoinSet::new();
        let (wait, tell): (tokio_util::sync::CancellationToken, _) =
            (Clone::clone(&opened), Clone::clone(&answered));
        relay.spawn(async move {
            let (client, _) = listener.accept().await?;
            let server = tokio::net::TcpStream::connect(server).await?;
            let (mut from_client, mut to_client) = client.into_split();
            let (mut from_server, mut to_server) = server.into_split();
            let upwards = async {
                let mut buffer = vec![0; 64 * 1024];
                let first = from_client.read(&mut buffer).await?;
                to_server.write_all(&buffer[..first]).await?;
                wait.cancelled().await;
                tokio::io::copy(&mut from_client, &mut to_server).await?;
                to_server.shutdown().await
            };
            let downwards = async {
                let mut buffer = vec![0; 64 * 1024];
                loop {
                    match from_server.read(&mut buffer).await? {
                        0 => return to_client.shutdown().await,
                        n => to_client.write_all(&buffer[..n]).await?,
                    }
                    let tell: &tokio_util::sync::CancellationToken = &tell;
                    tell.cancel();
                }
            };
            let (up, down) = tokio::join!(upwards, downwards);
            up.and(down)
        });
        Self {
            address,
            opened,
            answered,
            _relay: relay,
        }
    }

    /// Waits until the server has answered the first message, and so has taken its material.
    async fn answered(&self) {
        self.answered.cancelled().await;
    }

    fn open(&self) {
        self.opened.cancel();
    }
}
