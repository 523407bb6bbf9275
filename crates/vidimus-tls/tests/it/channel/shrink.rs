//! Trust that shrinks while a channel is connected: the client's side of V14.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tonic::{Code, Status, Streaming};
use vidimus_proto::testkit::v1::EchoResponse;
use vidimus_proto::testkit::v1::echo_client::EchoClient;
use vidimus_testkit::pki::{AuthoritySpec, RevocationListSpec, Validity};
use vidimus_testkit::{Authority, Credential, Pki, wait_until_async};
use vidimus_tls::channel::{Channel, ChannelBuilder, ClientTls};
use vidimus_tls::clock::Clock;
use vidimus_tls::material::{RevocationCheck, RevocationOptions, Trust};
use vidimus_tls::server::ExpiredPeers;
use vidimus_tls::watch::MaterialWatch;

use super::server::{TestServer, rustls_config};
use super::{assert_status, build, builder, call, client_leaf, material, server_leaf};
use crate::shrink_paths::renew;
use crate::support::{DEADLINE, SERVER, clock, request, soon};

fn channel(target: &str, watch: &MaterialWatch) -> ChannelBuilder {
    Channel::builder(target, SERVER, ClientTls::Watch(watch.clone()))
        .rotation_jitter(Duration::from_millis(1))
}

fn trust(roots: &[&str]) -> Trust {
    Trust::from_pem(roots.concat().as_bytes(), Clock::system().now()).expect("good roots")
}

/// A stream without an end, of which the first answer has arrived.
async fn stream(channel: &Channel) -> Streaming<EchoResponse> {
    let mut endless = request("stream");
    endless.delay_milliseconds = 1;
    let mut client = EchoClient::new(channel.clone());
    let opened = soon("a stream", client.server_stream(endless)).await;
    let mut answers = opened.expect("a stream").into_inner();
    goes_on(&mut answers).await;
    answers
}

async fn goes_on(stream: &mut Streaming<EchoResponse>) {
    let answer = soon("an answer", stream.message()).await;
    answer.expect("no error").expect("an answer");
}

/// The status that a stream ends with.
async fn end_of(mut stream: Streaming<EchoResponse>) -> Status {
    let end = async {
        loop {
            match stream.message().await {
                Ok(Some(_)) => {}
                Ok(None) => panic!("an endless stream has ended well"),
                Err(status) => return status,
            }
        }
    };
    soon("the stream's end", end).await
}

async fn until(what: &str, holds: impl Fn() -> bool) {
    wait_until_async(DEADLINE, || async {
        if holds() { Ok(()) } else { Err(what) }
    })
    .await;
}

/// V14, T8. A root leaves: the connection to its server takes no new call at once, what runs on it has some seconds and
/// then ends with the reason; the connection to another server never notices.
#[tokio::test]
async fn connections_to_a_server_under_a_removed_root_end_and_others_do_not() {
    let (old, new) = (Pki::new("Old"), Pki::new("New"));
    let leaves = TestServer::mutual(rustls_config(&server_leaf(&old), &new.root)).await;
    let stays = TestServer::mutual(rustls_config(&server_leaf(&new), &new.root)).await;
    let both = material(&client_leaf(&new), &[&old.root, &new.root]);
    let (watch, mut publisher) = MaterialWatch::from_memory(both);
    let (cut, kept) = (
        build(channel(&leaves.target(), &watch)),
        build(channel(&stays.target(), &watch)),
    );
    let (mut cut_stream, mut kept_stream) = (stream(&cut).await, stream(&kept).await);

    publisher.replace_trust(trust(&[&new.root.pem()]));
    until("not withdrawn", || cut.status().counters.withdrawn == 1).await;
    assert_status(
        call(&cut).await,
        Code::Unavailable,
        &["certificate of the server refused", "Old issuing"],
    );
    let [connection] = cut.status().connections.try_into().expect("one connection");
    assert_eq!((connection.withdrawn, connection.current), (true, false));
    goes_on(&mut cut_stream).await;
    let status = end_of(cut_stream).await;
    assert_eq!(status.code(), Code::Unavailable, "{status}");
    let text = "the server's certificate is no longer trusted";
    assert!(status.message().contains(text), "{status}");
    until("still open", || leaves.open() == 0).await;

    call(&kept).await.expect("a call");
    goes_on(&mut kept_stream).await;
    let counters = kept.status().counters;
    assert_eq!((counters.withdrawn, counters.connect_failures), (0, 0));

    publisher.replace_trust(trust(&[&old.root.pem()]));
    until("not withdrawn", || kept.status().counters.withdrawn > 0).await;
    end_of(kept_stream).await;
}

/// V14, V18. A list revokes the server: its connection takes no new call at once and ends; another server's doesn't notice.
#[tokio::test]
async fn connections_to_a_revoked_server_end_and_others_do_not() {
    let pki = Pki::new("Example");
    let serve = async |serial: u8| {
        let leaf = pki.leaf("server").dns(SERVER).server();
        let leaf = leaf.serial(&[serial]).issue();
        TestServer::mutual(rustls_config(&leaf, &pki.root)).await
    };
    let (leaves, stays) = (serve(7).await, serve(8).await);
    let listing = |list: RevocationListSpec<'_>| {
        let roots = trust(&[&pki.root.pem()]);
        let options = RevocationOptions {
            check: Some(RevocationCheck::Leaf),
            ..RevocationOptions::default()
        };
        let trust =
            roots.with_revocation(list.pem().as_bytes(), options, &[], Clock::system().now());
        trust.expect("a good list")
    };
    let (watch, mut publisher) =
        MaterialWatch::from_memory(material(&client_leaf(&pki), &[&pki.root]));
    let list = |number| pki.issuing.revocation_list(number);
    publisher.replace_trust(listing(list(1)));
    let short = Duration::from_millis(200);
    let (cut, kept) = (
        build(channel(&leaves.target(), &watch).withdrawal_grace(short)),
        build(channel(&stays.target(), &watch).withdrawal_grace(short)),
    );
    let (cut_stream, mut kept_stream) = (stream(&cut).await, stream(&kept).await);

    publisher.replace_trust(listing(list(2).revoke(&[7])));
    until("not withdrawn", || cut.status().counters.withdrawn == 1).await;
    assert_status(call(&cut).await, Code::Unavailable, &["revoked"]);
    let status = end_of(cut_stream).await;
    assert_eq!(status.code(), Code::Unavailable, "{status}");
    assert!(status.message().contains("revoked"), "{status}");
    call(&kept).await.expect("a call");
    goes_on(&mut kept_stream).await;
    assert_eq!(kept.status().counters.withdrawn, 0);
}

/// V14. A chain that holds along another path stays: its root was renewed, with the same name and key.
#[tokio::test]
async fn a_servers_chain_that_holds_along_another_path_stays() {
    let (old, clients) = (Authority::root("root"), Pki::new("Clients"));
    let folder = tempfile::tempdir().expect("a folder");
    let renewed = renew(&old, folder.path());
    let leaf = old.leaf("server").dns(SERVER).server().issue();
    let server = TestServer::mutual(rustls_config(&leaf, &clients.root)).await;
    let (watch, mut publisher) =
        MaterialWatch::from_memory(material(&client_leaf(&clients), &[&old]));
    let channel = build(channel(&server.target(), &watch).withdrawal_grace(Duration::ZERO));
    let mut running = stream(&channel).await;
    let anchor = |id| {
        let connections = channel.status().connections;
        let found = connections.iter().find(|connection| connection.id == id);
        found.and_then(|connection| connection.anchor)
    };
    let before = anchor(1);

    publisher.replace_trust(trust(&[&renewed]));
    until("the anchor is the old one", || anchor(1) != before).await;
    // The next connection shows that the change has been dealt with.
    until("no new connection", || anchor(2).is_some()).await;
    assert_eq!(anchor(1), anchor(2));
    goes_on(&mut running).await;
    assert_eq!(channel.status().counters.withdrawn, 0);
}

/// V14. A connection that is made while its server's root leaves is never used.
#[tokio::test]
async fn a_handshake_held_open_across_a_removal_is_not_used() {
    let (old, new) = (Pki::new("Old"), Pki::new("New"));
    let server = TestServer::mutual(rustls_config(&server_leaf(&old), &new.root)).await;
    for (left, used) in [(&[&old.root, &new.root][..], true), (&[&new.root], false)] {
        let both = material(&client_leaf(&new), &[&old.root, &new.root]);
        let (watch, mut publisher) = MaterialWatch::from_memory(both);
        let gate = Gate::start(server.address).await;
        let channel = build(channel(&gate.address.to_string(), &watch));
        let removing = async {
            soon("the client's first message", gate.asked()).await;
            let left: Vec<String> = left.iter().map(|root| root.pem()).collect();
            let left: Vec<&str> = left.iter().map(String::as_str).collect();
            publisher.replace_trust(trust(&left));
            gate.open();
        };
        let (outcome, ()) = tokio::join!(call(&channel), removing);
        let counters = channel.status().counters;
        if used {
            outcome.expect("a call");
            assert_eq!(counters.connect_failures, 0);
        } else {
            assert_status(
                outcome,
                Code::Unavailable,
                &["certificate of the server refused"],
            );
            // The handshake that was held open passed and was judged again; the one after it did not even pass.
            assert_eq!((counters.connects, counters.connect_failures), (0, 2));
        }
    }
}

/// T8. A connection gets no more calls when its server's certificate expires, unless that is to be ignored; what runs on
/// it has a grace of its own.
#[tokio::test]
async fn a_connection_ends_with_its_servers_certificate() {
    let pki = Pki::new("Example");
    let leaf = |left| {
        let leaf = pki.leaf("server").dns(SERVER).server();
        leaf.validity(Validity::ends_in(Duration::from_secs(left)))
            .issue()
    };
    let serve = async |leaf: Credential| TestServer::mutual(rustls_config(&leaf, &pki.root)).await;
    for (rule, ended) in [(ExpiredPeers::Drain, 1), (ExpiredPeers::Ignore, 0)] {
        let (short, long) = (serve(leaf(3600)).await, serve(leaf(24 * 3600)).await);
        let ahead = Arc::default();
        let channel = |server: &TestServer| {
            let builder = builder(&pki, &server.target())
                .clock(clock(&ahead))
                .expired_servers(rule)
                .expiry_interval(Duration::from_millis(10))
                .expiry_grace(Duration::from_millis(300));
            build(builder)
        };
        let (expiring, lasting) = (channel(&short), channel(&long));
        let (mut running, mut other) = (stream(&expiring).await, stream(&lasting).await);
        ahead.store(2 * 3600, Ordering::Relaxed);
        if rule == ExpiredPeers::Drain {
            until("not expired", || expiring.status().counters.expired == 1).await;
            assert_status(call(&expiring).await, Code::Unavailable, &["expired"]);
            let status = end_of(running).await;
            assert_eq!(status.code(), Code::Unavailable, "{status}");
            let text = "the server's certificate has expired";
            assert!(status.message().contains(text), "{status}");
        } else {
            call(&expiring).await.expect("a call");
            goes_on(&mut running).await;
        }
        call(&lasting).await.expect("a call");
        goes_on(&mut other).await;
        let counters = |channel: &Channel| channel.status().counters;
        assert_eq!(
            (counters(&expiring).expired, counters(&lasting).expired),
            (ended, 0)
        );
    }
}

/// V14. The path by which a server was accepted expires; along another one its chain holds, and the connection stays.
#[tokio::test]
async fn a_servers_chain_that_expires_along_one_path_and_holds_along_another_stays() {
    let soon_over = Validity::ends_in(Duration::from_secs(3600));
    let old = AuthoritySpec::new("root").validity(soon_over).root();
    let clients = Pki::new("Clients");
    let folder = tempfile::tempdir().expect("a folder");
    let renewed = renew(&old, folder.path());
    let leaf = old.leaf("server").dns(SERVER).server().issue();
    let server = TestServer::mutual(rustls_config(&leaf, &clients.root)).await;
    for (roots, stays) in [
        (&[&*old.pem(), &renewed][..], true),
        (&[&*old.pem()], false),
    ] {
        let ahead = Arc::default();
        let (watch, mut publisher) =
            MaterialWatch::from_memory(material(&client_leaf(&clients), &[&old]));
        publisher.replace_trust(trust(roots));
        let channel = build(
            channel(&server.target(), &watch)
                .clock(clock(&ahead))
                .expiry_interval(Duration::from_millis(10))
                .expiry_grace(Duration::from_millis(50)),
        );
        let mut running = stream(&channel).await;
        let first = || channel.status().connections.into_iter().next();
        let before = first().and_then(|first| first.anchor);
        ahead.store(2 * 3600, Ordering::Relaxed);
        if stays {
            until("the old path", || {
                first().and_then(|first| first.anchor) != before
            })
            .await;
            call(&channel).await.expect("the connection goes on");
            goes_on(&mut running).await;
            let counters = channel.status().counters;
            assert_eq!((counters.expired, counters.connects), (0, 1));
        } else {
            let status = end_of(running).await;
            let text = "the server's certificate has expired";
            assert!(status.message().contains(text), "{status}");
        }
    }
}

/// A relay that holds back what the server sends until it is opened.
pub(super) struct Gate {
    pub(super) address: SocketAddr,
    opened: watch::Sender<bool>,
    asked: watch::Sender<bool>,
    _relay: JoinSet<()>,
}

impl Gate {
    pub(super) async fn start(server: SocketAddr) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let (opened, asked) = (watch::Sender::new(false), watch::Sender::new(false));
        let (wait, tell) = (opened.clone(), asked.clone());
        let mut relay = JoinSet::new();
        relay.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((client, _)) = listener.accept().await {
                connections.spawn(relay_one(client, server, wait.subscribe(), tell.clone()));
            }
        });
        Self {
            address,
            opened,
            asked,
            _relay: relay,
        }
    }

    /// Waits until a client has sent something, and so has taken its material.
    pub(super) async fn asked(&self) {
        let mut asked = self.asked.subscribe();
        asked.wait_for(|asked| *asked).await.expect("a relay");
    }

    pub(super) fn open(&self) {
        self.opened.send_replace(true);
    }

    /// Holds back what the server sends to later clients.
    pub(super) fn shut(&self) {
        self.opened.send_replace(false);
        self.asked.send_replace(false);
    }
}

async fn relay_one(
    client: TcpStream,
    server: SocketAddr,
    mut opened: watch::Receiver<bool>,
    asked: watch::Sender<bool>,
) {
    let Ok(server) = TcpStream::connect(server).await else {
        return;
    };
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_server, mut to_server) = server.into_split();
    let upwards = async {
        let mut buffer = vec![0; 64 * 1024];
        let first = from_client.read(&mut buffer).await?;
        to_server.write_all(&buffer[..first]).await?;
        asked.send_replace(true);
        tokio::io::copy(&mut from_client, &mut to_server).await?;
        to_server.shutdown().await
    };
    let downwards = async {
        let held = opened.wait_for(|opened| *opened).await.map(drop);
        held.map_err(std::io::Error::other)?;
        tokio::io::copy(&mut from_server, &mut to_client).await?;
        to_client.shutdown().await
    };
    // Either side hangs up when it likes.
    let _ends = tokio::join!(upwards, downwards);
}
