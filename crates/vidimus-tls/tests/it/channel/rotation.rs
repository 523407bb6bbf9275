//! New material moves new calls to a new connection, and disturbs nobody.

use std::time::Duration;

use tonic::Code;
use vidimus_proto::testkit::v1::echo_client::EchoClient;
use vidimus_testkit::{Credential, Pki, wait_until_async};
use vidimus_tls::channel::{Channel, ChannelState, ClientTls};
use vidimus_tls::clock::Clock;
use vidimus_tls::identity::Fingerprint;
use vidimus_tls::material::{RevocationOptions, Trust, Usage};
use vidimus_tls::watch::{MaterialPublisher, MaterialWatch};

use super::server::{TestServer, rustls_config};
use super::shrink::Gate;
use super::{assert_status, build, call, client_leaf, material, server_leaf, until_disconnected};
use crate::support::{DEADLINE, SERVER, request, soon};

const QUICK: Duration = Duration::from_millis(1);
/// A wait that no test gets to the end of.
const LONG: Duration = Duration::from_secs(120);

fn channel(server: &TestServer, watch: MaterialWatch) -> Channel {
    channel_that_waits(server, watch, QUICK)
}

/// A channel that waits so long after a failed attempt.
fn channel_that_waits(server: &TestServer, watch: MaterialWatch, backoff: Duration) -> Channel {
    build(
        Channel::builder(&server.target(), SERVER, ClientTls::Watch(watch))
            .rotation_jitter(QUICK)
            .backoff(backoff, backoff),
    )
}

/// Has the channel present this from now on.
pub(super) fn present(publisher: &mut MaterialPublisher, leaf: &Credential) {
    let (chain, key) = (leaf.chain_pem(), leaf.key_pem());
    publisher
        .replace_identity(chain.as_bytes(), key.as_bytes(), Usage::Client)
        .expect("a good identity");
}

/// The generations of the live connections, the current one's first.
pub(super) fn generations(channel: &Channel) -> Vec<u64> {
    let mut connections = channel.status().connections;
    connections.sort_by_key(|connection| !connection.current);
    connections
        .iter()
        .filter_map(|connection| connection.generation)
        .collect()
}

pub(super) async fn until_failures(channel: &Channel, expected: u64) {
    wait_until_async(DEADLINE, || async {
        let failures = channel.status().counters.connect_failures;
        if failures >= expected {
            Ok(())
        } else {
            Err(format!("{failures} attempts"))
        }
    })
    .await;
}

pub(super) async fn until_generations(channel: &Channel, expected: &[u64]) {
    wait_until_async(DEADLINE, || async {
        let found = generations(channel);
        if found == expected {
            Ok(())
        } else {
            Err(format!("{found:?}, not {expected:?}"))
        }
    })
    .await;
}

/// V10, T4. The stream that runs when the certificate is renewed goes on; new calls present the new certificate; the old
/// connection ends with the stream. Nobody called in between: the channel moves by itself.
#[tokio::test]
async fn a_renewed_certificate_moves_new_calls_to_a_new_connection() {
    let pki = Pki::new("Example");
    let server = TestServer::mutual(rustls_config(&server_leaf(&pki), &pki.root)).await;
    let (old, new) = (client_leaf(&pki), client_leaf(&pki));
    let (watch, mut publisher) = MaterialWatch::from_memory(material(&old, &[&pki.root]));
    let channel = channel(&server, watch);
    let print = |leaf: &Credential| Fingerprint::of(leaf.leaf_der()).to_string();
    assert_eq!(call(&channel).await.expect("a call"), print(&old));
    let mut endless = request("stream");
    endless.delay_milliseconds = 1;
    let mut client = EchoClient::new(channel.clone());
    let mut stream = soon("a stream", client.server_stream(endless))
        .await
        .expect("a stream")
        .into_inner();
    soon("an answer", stream.message())
        .await
        .expect("no error")
        .expect("an answer");

    present(&mut publisher, &new);
    until_generations(&channel, &[2, 1]).await;
    assert_eq!(call(&channel).await.expect("a call"), print(&new));
    for _ in 0..20 {
        let answer = soon("an answer", stream.message())
            .await
            .expect("no error")
            .expect("an answer");
        assert_eq!(answer.peer, print(&old));
    }
    assert_eq!(server.open(), 2);
    drop(stream);
    until_generations(&channel, &[2]).await;
    server.until_open(1).await;
    let counters = channel.status().counters;
    assert_eq!(
        (
            counters.connects,
            counters.resends,
            counters.connect_failures
        ),
        (2, 0, 0)
    );
}

/// A connection can be renewed although nothing changed on this side: a server's new certificate is seen by new connections
/// alone. The stream that runs goes on, and a server that cannot be reached leaves everything as it was.
#[tokio::test]
async fn a_channel_reconnects_when_asked_to() {
    let pki = Pki::new("Example");
    let server = TestServer::mutual(rustls_config(&server_leaf(&pki), &pki.root)).await;
    let leaf = client_leaf(&pki);
    let (watch, mut publisher) = MaterialWatch::from_memory(material(&leaf, &[&pki.root]));
    let channel = channel(&server, watch);
    soon("a first connection", channel.reconnect())
        .await
        .expect("a first connection");
    let mut endless = request("stream");
    endless.delay_milliseconds = 1;
    let mut client = EchoClient::new(channel.clone());
    let mut stream = soon("a stream", client.server_stream(endless))
        .await
        .expect("a stream")
        .into_inner();
    soon("a renewal", channel.reconnect())
        .await
        .expect("another connection");
    let current = || {
        channel
            .status()
            .connections
            .into_iter()
            .find(|connection| connection.current)
    };
    let connection = current().expect("a current connection");
    assert_eq!((connection.id, connection.generation), (2, Some(1)));
    assert_eq!(connection.presented, Some(Fingerprint::of(leaf.leaf_der())));
    soon("an answer", stream.message())
        .await
        .expect("no error")
        .expect("an answer");
    assert_eq!(server.open(), 2);

    present(&mut publisher, &client_leaf(&Pki::new("Other")));
    let status = soon("a refusal", channel.reconnect())
        .await
        .expect_err("the server doesn't know this client");
    assert!(status.message().contains("UnknownCA"), "{status}");
    call(&channel)
        .await
        .expect("the connection before serves on");
    assert_eq!(current().map(|connection| connection.id), Some(2));
}

/// Whoever knows that the channel has connected anew gets no old connection: a stream would hold it for ever.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_after_a_renewal_uses_the_new_connection() {
    let pki = Pki::new("Example");
    let server = TestServer::mutual(rustls_config(&server_leaf(&pki), &pki.root)).await;
    let leaf = client_leaf(&pki);
    let watch = MaterialWatch::fixed(material(&leaf, &[&pki.root]));
    let channel = channel(&server, watch);
    for renewal in 1..=50 {
        soon("a renewal", channel.reconnect())
            .await
            .expect("a connection");
        call(&channel).await.expect("a call");
        let connections = channel.status().connections;
        let newest = connections.iter().find(|each| each.id == renewal);
        let calls = newest.map(|newest| newest.calls);
        assert_eq!(calls, Some(1), "{connections:?}");
    }
}

/// New material that the server refuses leaves the old connection in use, and the status says why. Better material is
/// tried as soon as it is there, however long the next attempt would have waited.
#[tokio::test]
async fn material_that_does_not_connect_leaves_the_old_connection_in_use() {
    let pki = Pki::new("Example");
    let server = TestServer::mutual(rustls_config(&server_leaf(&pki), &pki.root)).await;
    let leaf = client_leaf(&pki);
    for (backoff, attempts) in [(QUICK, 2), (LONG, 1)] {
        let (watch, mut publisher) = MaterialWatch::from_memory(material(&leaf, &[&pki.root]));
        let channel = channel_that_waits(&server, watch, backoff);
        call(&channel).await.expect("a call");
        present(&mut publisher, &client_leaf(&Pki::new("Other")));
        until_failures(&channel, attempts).await;
        call(&channel).await.expect("the old connection serves on");
        let status = channel.status();
        assert_eq!(
            (status.state, status.generation),
            (ChannelState::Ready, Some(2))
        );
        assert_eq!(generations(&channel), [1]);
        let reason = status.counters.last_connect_failure.expect("a reason");
        assert!(reason.contains("UnknownCA"), "{reason}");

        present(&mut publisher, &leaf);
        until_generations(&channel, &[3]).await;
    }
}

/// A connection that ends after its renewal has failed is replaced when a call needs it, and the call hears at once how that
/// went: the wait after the failed renewal was for something else.
#[tokio::test]
async fn a_connection_that_ends_after_a_failed_renewal_is_replaced_at_once() {
    let pki = Pki::new("Example");
    let server = TestServer::mutual(rustls_config(&server_leaf(&pki), &pki.root)).await;
    let leaf = client_leaf(&pki);
    let (watch, mut publisher) = MaterialWatch::from_memory(material(&leaf, &[&pki.root]));
    let channel = channel_that_waits(&server, watch, LONG);
    call(&channel).await.expect("a call");
    present(&mut publisher, &client_leaf(&Pki::new("Other")));
    until_failures(&channel, 1).await;

    assert_eq!(server.drain(), 1);
    until_disconnected(&channel).await;
    assert_status(call(&channel).await, Code::Unavailable, &["UnknownCA"]);
    assert_eq!(channel.status().counters.connect_failures, 2);
    assert_eq!(channel.status().state, ChannelState::Failing);
}

/// A connection that ends while its renewal is under way: calls wait for that, and hear how it went.
#[tokio::test]
async fn a_connection_that_ends_during_its_renewal_leaves_calls_to_the_new_one() {
    let pki = Pki::new("Example");
    let server = TestServer::mutual(rustls_config(&server_leaf(&pki), &pki.root)).await;
    let leaf = client_leaf(&pki);
    for (next, served) in [
        (client_leaf(&pki), true),
        (client_leaf(&Pki::new("Other")), false),
    ] {
        let gate = Gate::start(server.address).await;
        gate.open();
        let (watch, mut publisher) = MaterialWatch::from_memory(material(&leaf, &[&pki.root]));
        let target = gate.address.to_string();
        let builder = Channel::builder(&target, SERVER, ClientTls::Watch(watch));
        let channel = build(builder.rotation_jitter(QUICK).backoff(LONG, LONG));
        call(&channel).await.expect("a call");
        gate.shut();
        present(&mut publisher, &next);
        soon("the renewal's begin", gate.asked()).await;

        server.drain();
        let serving = async {
            wait_until_async(DEADLINE, || async {
                let calls = channel.status().counters.calls;
                let current = channel.status().connections.iter().any(|each| each.current);
                if calls == 2 && !current {
                    Ok(())
                } else {
                    Err(format!("{calls} calls, connected: {current}"))
                }
            })
            .await;
            gate.open();
        };
        let calling = async {
            // Not before the connection has ended: it would be served there.
            wait_until_async(DEADLINE, || async {
                let connections = channel.status().connections;
                if connections.iter().any(|each| each.current) {
                    Err("still connected")
                } else {
                    Ok(())
                }
            })
            .await;
            call(&channel).await
        };
        let (outcome, ()) = tokio::join!(calling, serving);
        if served {
            outcome.expect("served by the new connection");
            assert_eq!(generations(&channel), [2]);
        } else {
            assert_status(outcome, Code::Unavailable, &["UnknownCA"]);
        }
    }
}

/// Without a connection, too: a refused certificate is replaced, and the next call goes through although the next attempt
/// is minutes away.
#[tokio::test]
async fn new_material_ends_the_wait_after_a_refusal() {
    let pki = Pki::new("Example");
    let server = TestServer::mutual(rustls_config(&server_leaf(&pki), &pki.root)).await;
    let refused = client_leaf(&Pki::new("Other"));
    let (watch, mut publisher) = MaterialWatch::from_memory(material(&refused, &[&pki.root]));
    let channel = channel_that_waits(&server, watch, LONG);
    for _ in 0..2 {
        assert_status(call(&channel).await, Code::Unavailable, &["UnknownCA"]);
    }
    assert_eq!(channel.status().counters.connect_failures, 1);

    present(&mut publisher, &client_leaf(&pki));
    wait_until_async(DEADLINE, || async { call(&channel).await.map(drop) }).await;
    assert_eq!(generations(&channel), [2]);
}

/// Revocation lists change every day, and what a handshake shows and asks for doesn't: the connection stays. Other roots
/// replace it.
#[tokio::test]
async fn a_new_revocation_list_alone_opens_no_connection() {
    let (pki, other) = (Pki::new("Example"), Pki::new("Other"));
    let server = TestServer::mutual(rustls_config(&server_leaf(&pki), &pki.root)).await;
    let (watch, mut publisher) =
        MaterialWatch::from_memory(material(&client_leaf(&pki), &[&pki.root]));
    let channel = channel(&server, watch.clone());
    call(&channel).await.expect("a call");

    let clock = Clock::system();
    let trust = |roots: String| Trust::from_pem(roots.as_bytes(), clock.now()).expect("roots");
    let list = pki.issuing.revocation_list(1).pem();
    let listed = trust(pki.root.pem())
        .with_revocation(
            list.as_bytes(),
            RevocationOptions::default(),
            &[],
            clock.now(),
        )
        .expect("a good list");
    publisher.replace_trust(listed);
    for _ in 0..50 {
        call(&channel).await.expect("a call");
    }
    assert_eq!(watch.status().revocation_lists.len(), 1);
    assert_eq!(generations(&channel), [1]);
    assert_eq!(channel.status().counters.connects, 1);

    publisher.replace_trust(trust(pki.root.pem() + &other.root.pem()));
    until_generations(&channel, &[3]).await;
    assert_eq!(channel.status().counters.connects, 2);
}

/// A closed channel lets what runs finish, takes nothing new, and says goodbye to the server.
#[tokio::test]
async fn a_closed_channel_finishes_its_calls_and_takes_no_more() {
    let pki = Pki::new("Example");
    let server = TestServer::mutual(rustls_config(&server_leaf(&pki), &pki.root)).await;
    let channel = channel(
        &server,
        MaterialWatch::fixed(material(&client_leaf(&pki), &[&pki.root])),
    );
    let mut slow = request("slow");
    slow.delay_milliseconds = 300;
    let mut client = EchoClient::new(channel.clone());
    let running = async {
        soon("the running call", client.unary(slow))
            .await
            .expect("the running call finishes");
    };
    let closing = async {
        wait_until_async(DEADLINE, || async {
            if server.log.count("slow") == 1 {
                Ok(())
            } else {
                Err("not called yet")
            }
        })
        .await;
        soon("the end", channel.close(DEADLINE)).await;
    };
    tokio::join!(running, closing);
    assert_status(
        call(&channel).await,
        Code::Unavailable,
        &["the channel was closed"],
    );
    assert_eq!(channel.status().state, ChannelState::Closed);
    server.until_open(0).await;
}

/// A channel that is dropped takes its connections with it, but not before its last stream has ended.
#[tokio::test]
async fn a_dropped_channel_leaves_nothing_behind() {
    let pki = Pki::new("Example");
    let server = TestServer::mutual(rustls_config(&server_leaf(&pki), &pki.root)).await;
    let channel = channel(
        &server,
        MaterialWatch::fixed(material(&client_leaf(&pki), &[&pki.root])),
    );
    let mut endless = request("stream");
    endless.delay_milliseconds = 1;
    let mut client = EchoClient::new(channel);
    let mut stream = soon("a stream", client.server_stream(endless))
        .await
        .expect("a stream")
        .into_inner();
    drop(client);
    for _ in 0..20 {
        soon("an answer", stream.message())
            .await
            .expect("no error")
            .expect("an answer");
    }
    drop(stream);
    server.until_open(0).await;
}
