//! What a listener hears of a channel.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use vidimus_testkit::Pki;
use vidimus_testkit::pki::Validity;
use vidimus_tls::channel::{Channel, ClientTls};
use vidimus_tls::clock::Clock;
use vidimus_tls::events::{Event, Events};
use vidimus_tls::identity::Fingerprint;
use vidimus_tls::material::Trust;
use vidimus_tls::watch::MaterialWatch;

use super::server::{TestServer, rustls_config};
use super::{build, builder, call, client_leaf, material, server_leaf};
use crate::support::{LogCapture, SERVER, clock, next_event};

/// V18. A new connection, one whose server lost its trust, and why the next one failed.
#[tokio::test]
async fn a_listener_hears_of_connections_and_why_there_is_none() {
    let (old, new) = (Pki::new("Old"), Pki::new("New"));
    let leaf = server_leaf(&old);
    let server = TestServer::mutual(rustls_config(&leaf, &old.root)).await;
    let (watch, mut publisher) =
        MaterialWatch::from_memory(material(&client_leaf(&old), &[&old.root]));
    let events = Events::bounded(16);
    let mut heard = events.subscribe();
    let tls = ClientTls::Watch(watch);
    let channel = build(Channel::builder(&server.target(), SERVER, tls).events(events));
    call(&channel).await.expect("a call");
    let expected = Event::ChannelConnected {
        target: server.target(),
        connection: 1,
        remote: server.target(),
        peer: SERVER.to_owned(),
        fingerprint: Some(Fingerprint::of(leaf.leaf_der())),
        anchor: Some(Fingerprint::of(old.root.der())),
        generation: 1,
    };
    assert_eq!(next_event(&mut heard).await, expected);

    let clock = Clock::system();
    let trust = Trust::from_pem(new.root.pem().as_bytes(), clock.now()).expect("a root");
    publisher.replace_trust(trust);
    let withdrawn = next_event(&mut heard).await;
    assert!(
        matches!(&withdrawn, Event::ChannelWithdrawn { connection: 1, reason, .. } if reason.contains("Old issuing")),
        "{withdrawn:?}"
    );
    let refused = next_event(&mut heard).await;
    assert!(
        matches!(&refused, Event::ChannelRefused { target, reason } if *target == server.target() && reason.contains("Old issuing")),
        "{refused:?}"
    );
}

#[tokio::test]
async fn a_listener_hears_of_an_expired_server() {
    let pki = Pki::new("Example");
    let leaf = pki.leaf("server").dns(SERVER).server();
    let leaf = leaf.validity(Validity::ends_in(Duration::from_secs(3600)));
    let server = TestServer::mutual(rustls_config(&leaf.issue(), &pki.root)).await;
    let (ahead, events) = (Arc::default(), Events::bounded(16));
    let mut heard = events.subscribe();
    let channel = build(
        builder(&pki, &server.target())
            .clock(clock(&ahead))
            .expiry_interval(Duration::from_millis(10))
            .events(events),
    );
    call(&channel).await.expect("a call");
    assert!(matches!(
        next_event(&mut heard).await,
        Event::ChannelConnected { .. }
    ));
    ahead.store(2 * 3600, Ordering::Relaxed);
    let expired = next_event(&mut heard).await;
    assert!(
        matches!(&expired, Event::ChannelExpired { connection: 1, remote, .. } if *remote == server.target()),
        "{expired:?}"
    );
}

/// What a connection's code logs stands in a span that says whose connection it is.
#[tokio::test]
async fn a_connection_has_a_span_of_its_own() {
    let pki = Pki::new("Example");
    let server = TestServer::mutual(rustls_config(&server_leaf(&pki), &pki.root)).await;
    let log = LogCapture::start();
    let channel = build(builder(&pki, &server.target()));
    call(&channel).await.expect("a call");
    let address = format!("address=\"{}\"", server.target());
    let span = ["channel_connection{id=1 ", "target=", &address, "connected"];
    assert!(!log.lines_with(&span).is_empty(), "{}", log.text());
}
