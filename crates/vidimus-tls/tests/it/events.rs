//! What a listener hears of a server and its material.

use vidimus_testkit::Pki;
use vidimus_tls::events::{DrainCause, Event, EventReceiver, Events, Unit};

use crate::support::{Client, Running, SERVER, Setup, call, soon};

async fn next(listener: &mut EventReceiver) -> Event {
    let record = soon("an event", listener.next()).await.expect("an event");
    assert_eq!(record.missed, 0);
    record.event
}

/// V14, V18. Each security event is heard, in order: accepted, refused, reloaded, withdrawn, drained.
#[tokio::test]
async fn a_listener_hears_what_happens_to_peers_and_material() {
    let (old, new, stranger) = (Pki::new("Old"), Pki::new("New"), Pki::new("Stranger"));
    let dir = tempfile::tempdir().expect("a folder");
    let server = new.leaf("server").dns(SERVER).server().issue();
    let mut volume = server.write_volume(&dir.path().join("tls"), &[&old.root, &new.root]);
    let events = Events::bounded(64);
    let mut heard = events.subscribe();
    let setup = Setup {
        allow: "allowed.test",
        events: events.clone(),
        ..Setup::default()
    };
    let (running, watch) = Running::follow(volume.dir(), setup).await;
    let client = |pki: &Pki, name: &str| {
        Client::new(&new.root).with(&pki.leaf(name).dns(name).client().issue())
    };

    let mut leaves = client(&old, "allowed.test").echo(running.address).await;
    call(&mut leaves).await.expect("a call");
    let accepted = next(&mut heard).await;
    assert!(
        matches!(&accepted, Event::Accepted { peer, generation: 1, anchor: Some(_), .. } if peer == "allowed.test"),
        "{accepted:?}"
    );
    let _alert = client(&stranger, "allowed.test")
        .refusal(running.address)
        .await;
    let refused = next(&mut heard).await;
    assert!(
        matches!(&refused, Event::HandshakeRefused { reason: "unknown_issuer", detail, .. } if detail.contains("Stranger")),
        "{refused:?}"
    );
    let mut other = client(&new, "other.test").echo(running.address).await;
    call(&mut other).await.expect_err("not on the list");
    assert!(matches!(next(&mut heard).await, Event::Accepted { .. }));
    let refused = next(&mut heard).await;
    assert!(
        matches!(&refused, Event::CallRefused { peer, path, .. } if peer == "other.test" && path.ends_with("/Unary")),
        "{refused:?}"
    );

    let mut broken = server.files(&[&new.root]);
    broken[2].1 = "-----BEGIN CERTIFICATE-----\nAA\n-----END CERTIFICATE-----\n".to_owned();
    volume.swap(&broken);
    let refused = next(&mut heard).await;
    assert!(
        matches!(
            refused,
            Event::ReloadRefused {
                unit: Unit::Trust,
                generation: 1,
                ..
            }
        ),
        "{refused:?}"
    );
    volume.swap(&server.files(&[&new.root]));
    soon("the removal", watch.wait_for_generation(2)).await;
    let reloaded = Event::Reloaded {
        unit: Unit::Trust,
        generation: 2,
    };
    // The server may act on the new roots before the watch has reported them.
    let (mut seen, mut withdrawn) = (false, false);
    while !(seen && withdrawn) {
        let event = next(&mut heard).await;
        seen |= event == reloaded;
        withdrawn |= matches!(&event, Event::Withdrawn { peer, .. } if peer == "allowed.test");
    }
    running.begin_shutdown();
    let drained = next(&mut heard).await;
    assert!(
        matches!(&drained, Event::Draining { peer, cause: DrainCause::Shutdown, .. } if peer == "other.test"),
        "{drained:?}"
    );
    running.stop().await;
}

/// V18. Whatever a handshake failed of, its event says all that is known of it, and not only at what step.
#[tokio::test]
async fn a_refused_handshake_says_why_to_the_last_cause() {
    use crate::support::{LogCapture, World};
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let world = World::new();
    let events = Events::bounded(64);
    let mut heard = events.subscribe();
    let setup = Setup {
        events: events.clone(),
        ..Setup::default()
    };
    let log = LogCapture::start();
    let (running, _watch) = Running::follow(world.dir.path(), setup).await;
    // A ClientHello of one byte, and a header of the PROXY protocol to somebody who expects none.
    for (sent, reason, cause) in [
        (
            &b"\x16\x03\x01\x00\x05\x01\x00\x00\x01\xff"[..],
            "tls",
            "corrupt message",
        ),
        (b"\r\n\r\n\0\r\nQUIT\n", "not_tls", "not TLS"),
    ] {
        let tcp = tokio::net::TcpStream::connect(running.address).await;
        let mut tcp = tcp.expect("a connection");
        tcp.write_all(sent).await.expect("a write");
        let mut answer = Vec::new();
        let _end = soon("the refusal", tcp.read_to_end(&mut answer)).await;
        let refused = next(&mut heard).await;
        assert!(
            matches!(&refused, Event::HandshakeRefused { reason: why, detail, .. } if *why == reason && detail.contains(cause)),
            "{refused:?}"
        );
        // In the span of the handshake, so that what is logged on the way to it is found together with it.
        let said = ["handshake{remote=", "TLS handshake failed", cause];
        assert_eq!(log.lines_with(&said).len(), 1, "{}", log.text());
    }
    running.stop().await;
}

/// What a connection's code and its calls log stands in a span that says whose connection it is.
#[tokio::test]
async fn a_connection_has_a_span_of_its_own() {
    use crate::support::{LogCapture, World};
    let world = World::new();
    let log = LogCapture::start();
    let (running, _watch) = Running::follow(world.dir.path(), Setup::default()).await;
    let mut echo = world.client().echo(running.address).await;
    call(&mut echo).await.expect("a call");
    let span = ["connection{id=", "remote=", "peer=", "generation=1}"];
    assert!(!log.lines_with(&span).is_empty(), "{}", log.text());
    running.stop().await;
}
