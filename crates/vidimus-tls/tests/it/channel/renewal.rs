//! When a connection is renewed, and what a renewal that fails does not hold up.

use std::time::Duration;

use vidimus_testkit::{Authority, Pki};
use vidimus_tls::channel::{Channel, ChannelBuilder, ClientTls};
use vidimus_tls::clock::Clock;
use vidimus_tls::material::{RevocationOptions, Trust};
use vidimus_tls::watch::MaterialWatch;

use super::rotation::{generations, present, until_failures, until_generations};
use super::server::{TestServer, rustls_config};
use super::shrink::Gate;
use super::{build, call, client_leaf, material, server_leaf, until_disconnected};
use crate::support::{SERVER, soon};

const QUICK: Duration = Duration::from_millis(1);
/// A wait that no test gets to the end of.
const LONG: Duration = Duration::from_secs(120);

fn builder(target: &str, watch: MaterialWatch) -> ChannelBuilder {
    Channel::builder(target, SERVER, ClientTls::Watch(watch)).rotation_jitter(QUICK)
}

fn trust(roots: &[&Authority]) -> Trust {
    let pem: String = roots.iter().map(|root| root.pem()).collect();
    Trust::from_pem(pem.as_bytes(), Clock::system().now()).expect("good roots")
}

/// A renewal that fails for long waits longer and longer. When the last connection ends then, the attempts to connect
/// follow one another as those of a channel that has just lost its server.
#[tokio::test]
async fn renewals_that_fail_do_not_delay_the_attempts_after_the_last_connection() {
    let pki = Pki::new("Example");
    let server = TestServer::mutual(rustls_config(&server_leaf(&pki), &pki.root)).await;
    let leaf = client_leaf(&pki);
    let (watch, mut publisher) = MaterialWatch::from_memory(material(&leaf, &[&pki.root]));
    let channel = build(builder(&server.target(), watch).backoff(QUICK, LONG));
    call(&channel).await.expect("a call");
    present(&mut publisher, &client_leaf(&Pki::new("Other")));
    // Being asked skips the wait, and the next one is longer all the same: after this, as long as it gets.
    while channel.status().counters.connect_failures < 25 {
        soon("a refusal", channel.reconnect())
            .await
            .expect_err("the server doesn't know this client");
    }

    assert_eq!(server.drain(), 1);
    until_disconnected(&channel).await;
    let failures = channel.status().counters.connect_failures;
    let calling = async {
        loop {
            call(&channel).await.expect_err("no connection");
            tokio::task::yield_now().await;
        }
    };
    tokio::select! {
        () = until_failures(&channel, failures + 3) => {}
        never = calling => never,
    }
}

/// Revocation lists that change while a connection is made are no reason to replace it, although the identity has changed
/// since the connection before.
#[tokio::test]
async fn revocation_lists_that_come_during_an_attempt_open_no_second_connection() {
    let pki = Pki::new("Example");
    let server = TestServer::mutual(rustls_config(&server_leaf(&pki), &pki.root)).await;
    let gate = Gate::start(server.address).await;
    gate.open();
    let (watch, mut publisher) =
        MaterialWatch::from_memory(material(&client_leaf(&pki), &[&pki.root]));
    let channel = build(builder(&gate.address.to_string(), watch));
    call(&channel).await.expect("a call");
    server.drain();
    until_disconnected(&channel).await;

    gate.shut();
    present(&mut publisher, &client_leaf(&pki));
    let clock = Clock::system();
    let list = pki.issuing.revocation_list(1).pem();
    let options = RevocationOptions::default();
    let listed = trust(&[&pki.root])
        .with_revocation(list.as_bytes(), options, &[], clock.now())
        .expect("a good list");
    let listing = async {
        soon("the attempt", gate.asked()).await;
        publisher.replace_trust(listed);
        gate.open();
    };
    let (outcome, ()) = tokio::join!(call(&channel), listing);
    outcome.expect("a call");
    for _ in 0..50 {
        call(&channel).await.expect("a call");
    }
    assert_eq!(generations(&channel), [2]);
    assert_eq!(channel.status().counters.connects, 2);
}

/// The same roots in another order are the same roots. One that is missing is a reason to connect anew.
#[tokio::test]
async fn the_order_of_the_roots_opens_no_connection() {
    let (pki, other) = (Pki::new("Example"), Pki::new("Other"));
    let server = TestServer::mutual(rustls_config(&server_leaf(&pki), &pki.root)).await;
    let leaf = client_leaf(&pki);
    let (watch, mut publisher) =
        MaterialWatch::from_memory(material(&leaf, &[&pki.root, &other.root]));
    let channel = build(builder(&server.target(), watch.clone()));
    call(&channel).await.expect("a call");

    publisher.replace_trust(trust(&[&other.root, &pki.root]));
    for _ in 0..50 {
        call(&channel).await.expect("a call");
    }
    assert_eq!(watch.current().generation(), 2);
    assert_eq!(generations(&channel), [1]);

    publisher.replace_trust(trust(&[&pki.root]));
    until_generations(&channel, &[3]).await;
    assert_eq!(channel.status().counters.connects, 2);
}
