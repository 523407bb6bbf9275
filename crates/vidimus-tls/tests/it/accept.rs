//! Who gets through the handshake and who doesn't, and what both sides learn of it.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use vidimus_testkit::{Authority, Pki, wait_until_async};
use vidimus_tls::server::Limits;

use crate::support::{Client, DEADLINE, LogCapture, Running, Setup, World, call, soon};

/// V5. The positive case of everything below.
#[tokio::test]
async fn a_client_with_a_certificate_of_the_ca_is_served_and_known() {
    let world = World::new();
    let (running, watch) = Running::follow(world.dir.path(), Setup::default()).await;
    let mut client = world.client().echo(running.address).await;
    assert_eq!(call(&mut client).await.expect("a call").peer, "client.test");

    let connections = running.server.connections();
    let [connection] = connections.as_slice() else {
        panic!("one connection: {connections:?}")
    };
    assert_eq!(connection.generation, watch.current().generation());
    let root = watch.current().trust().roots()[0].fingerprint();
    assert_eq!(connection.anchor, Some(root));
    let identity = connection.peer.certificate().expect("a certificate");
    assert_eq!(identity.common_name(), Some("client"));
    let stats = running.server.stats();
    assert_eq!((stats.handshakes_ok, stats.handshakes_failed), (1, 0));
    assert_eq!((stats.calls, stats.active), (1, 1));
    drop(client);
    running.stop().await;
}

/// One kind of client that must not get through.
struct Refused {
    what: &'static str,
    client: Client,
    /// What the client sees, although it has written already.
    alert: &'static str,
    /// What our log says.
    reason: &'static str,
    logged: &'static str,
}

fn refused(world: &World) -> Vec<Refused> {
    let pki = &world.pki;
    let plain = Client::new(&pki.root);
    let other = Pki::new("Other");
    let leaf = || pki.leaf("client").dns("client.test").client();
    let with = |credential| plain.clone().with(&credential);
    vec![
        Refused {
            what: "no certificate",
            client: plain.clone(),
            alert: "CertificateRequired",
            reason: "no_certificate",
            logged: "presented no certificate",
        },
        Refused {
            what: "a certificate of another CA",
            client: with(other.leaf("client").dns("client.test").client().issue()),
            alert: "UnknownCA",
            reason: "unknown_issuer",
            logged: "Other issuing",
        },
        Refused {
            what: "an expired certificate",
            client: with(leaf().expired().issue()),
            alert: "CertificateExpired",
            reason: "expired",
            logged: "notAfter",
        },
        Refused {
            what: "a certificate of tomorrow",
            client: with(leaf().not_yet_valid().issue()),
            alert: "CertificateExpired",
            reason: "not_yet_valid",
            logged: "notBefore",
        },
        Refused {
            what: "a server's certificate",
            client: with(pki.leaf("client").dns("client.test").server().issue()),
            alert: "UnsupportedCertificate",
            reason: "wrong_purpose",
            logged: "lacks the extended key usage clientAuth",
        },
        Refused {
            what: "a CA's certificate",
            client: with(leaf().ca().issue()),
            alert: "UnsupportedCertificate",
            reason: "ca_certificate",
            logged: "is a CA certificate",
        },
    ]
}

/// V5, T10, T11, T13. The client has written before it is refused, and sees the alert all the same.
#[tokio::test]
async fn each_bad_certificate_is_refused_by_name_on_both_sides() {
    let world = World::new();
    let (running, _watch) = Running::follow(world.dir.path(), Setup::default()).await;
    for case in refused(&world) {
        let log = LogCapture::start();
        let before = running.server.stats().failures.get(case.reason).copied();
        assert_eq!(
            case.client.refusal(running.address).await.as_deref(),
            Some(case.alert),
            "{}",
            case.what
        );
        let lines = log.lines_with(&["TLS handshake failed", "127.0.0.1:"]);
        assert_eq!(lines.len(), 1, "{}: {}", case.what, log.text());
        assert!(
            lines[0].contains(case.logged),
            "{}: {}",
            case.what,
            lines[0]
        );
        let after = running.server.stats().failures.get(case.reason).copied();
        assert_eq!(after, Some(before.unwrap_or(0) + 1), "{}", case.what);
    }
    assert_eq!(world.client().refusal(running.address).await, None);
    running.stop().await;
}

/// T10. A refusal for dates names all three.
#[tokio::test]
async fn a_refusal_for_dates_says_now_and_both_ends() {
    let world = World::new();
    let (running, _watch) = Running::follow(world.dir.path(), Setup::default()).await;
    let log = LogCapture::start();
    let expired = world.pki.leaf("client").client().expired().issue();
    Client::new(&world.pki.root)
        .with(&expired)
        .refusal(running.address)
        .await;
    let lines = log.lines_with(&["has expired: now 20", "notBefore 20", "notAfter 20"]);
    assert_eq!(lines.len(), 1, "{}", log.text());
    running.stop().await;
}

/// V5. A client without h2, with nothing, and the one that offers it among others.
#[tokio::test]
async fn alpn_has_to_be_h2() {
    let world = World::new();
    let (running, _watch) = Running::follow(world.dir.path(), Setup::default()).await;
    for offered in [&[][..], &[b"http/1.1".as_slice()]] {
        let client = world.client().alpn(offered);
        assert_eq!(
            client.refusal(running.address).await.as_deref(),
            Some("NoApplicationProtocol"),
            "{offered:?}"
        );
    }
    assert_eq!(running.server.stats().failures.get("alpn"), Some(&2));
    let both = world.client().alpn(&[b"http/1.1", b"h2"]);
    assert_eq!(both.refusal(running.address).await, None);
    running.stop().await;
}

/// V5. Something that isn't TLS gets an answer and a name in the log.
#[tokio::test]
async fn a_plaintext_client_is_refused_and_named() {
    let world = World::new();
    let (running, _watch) = Running::follow(world.dir.path(), Setup::default()).await;
    let log = LogCapture::start();
    let mut tcp = TcpStream::connect(running.address)
        .await
        .expect("a connection");
    tcp.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
        .await
        .expect("a write");
    let mut answer = Vec::new();
    soon("the refusal", tcp.read_to_end(&mut answer))
        .await
        .expect("a clean end");
    assert_eq!(answer.first(), Some(&21), "a TLS alert record: {answer:?}");
    let lines = log.lines_with(&["TLS handshake failed", "not TLS"]);
    assert_eq!(lines.len(), 1, "{}", log.text());
    running.stop().await;
}

/// T17.
#[tokio::test]
async fn a_silent_client_is_dropped_at_the_handshake_timeout() {
    let world = World::new();
    let limits = Limits {
        handshake_timeout: Duration::from_millis(100),
        ..Limits::default()
    };
    let setup = Setup {
        limits,
        ..Setup::default()
    };
    let (running, _watch) = Running::follow(world.dir.path(), setup).await;
    let mut silent = TcpStream::connect(running.address)
        .await
        .expect("a connection");
    let mut byte = [0; 1];
    let read = soon("the end", silent.read(&mut byte)).await;
    assert!(matches!(read, Ok(0) | Err(_)), "{read:?}");
    assert_eq!(running.server.stats().failures.get("timeout"), Some(&1));
    assert_eq!(world.client().refusal(running.address).await, None);
    running.stop().await;
}

/// T17. Silent peers cannot keep others out.
#[tokio::test]
async fn the_oldest_silent_peers_make_room_for_newer_ones() {
    let world = World::new();
    let limits = Limits {
        max_handshakes: 4,
        ..Limits::default()
    };
    let setup = Setup {
        limits,
        ..Setup::default()
    };
    let (running, _watch) = Running::follow(world.dir.path(), setup).await;
    let mut silent = Vec::new();
    for _ in 0..8 {
        silent.push(
            TcpStream::connect(running.address)
                .await
                .expect("a connection"),
        );
    }
    assert_eq!(world.client().refusal(running.address).await, None);
    wait_until_async(DEADLINE, || async {
        match running.server.stats().failures.get("displaced") {
            Some(count) if *count >= 4 => Ok(()),
            other => Err(format!("{other:?}")),
        }
    })
    .await;
    running.stop().await;
}

/// V5. A peer that says nothing after its handshake, or only begins to, doesn't stay.
#[tokio::test]
async fn a_peer_that_never_speaks_http_is_dropped() {
    let world = World::new();
    let limits = Limits {
        preface_timeout: Duration::from_millis(100),
        ..Limits::default()
    };
    let setup = Setup {
        limits,
        ..Setup::default()
    };
    let (running, _watch) = Running::follow(world.dir.path(), setup).await;
    // Nothing, and the beginning of something.
    for said in [&b""[..], b"P", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r"] {
        let client = world.client();
        let mut stream = client.connect(running.address).await.expect("a handshake");
        stream.write_all(said).await.expect("a write");
        let mut rest = Vec::new();
        // The server's settings come first, then the end.
        let _end = soon("the end", stream.read_to_end(&mut rest)).await;
    }
    let mut talking = world.client().echo(running.address).await;
    call(&mut talking).await.expect("a call");
    running.stop().await;
}

/// V5. Roots that could never verify anybody verify nobody.
#[tokio::test]
async fn a_path_is_checked_where_webpki_does_not_look() {
    use vidimus_testkit::pki::{AuthoritySpec, Validity};
    type Chain = (Authority, Option<Authority>, &'static str);
    let good = Authority::root("good root");
    let cases: Vec<Chain> = vec![
        {
            let root = AuthoritySpec::new("expired root")
                .validity(Validity::Expired)
                .root();
            (root, None, "expired")
        },
        (
            AuthoritySpec::new("not a CA").not_a_ca().root(),
            None,
            "not_an_issuer",
        ),
        {
            let root = AuthoritySpec::new("short root").path_len(0).root();
            let below = root.intermediate("one too many");
            (root, Some(below), "not_an_issuer")
        },
        {
            let root = Authority::root("root of a mute CA");
            let below = AuthoritySpec::new("mute CA")
                .without_cert_sign()
                .under(&root);
            (root, Some(below), "not_an_issuer")
        },
    ];
    for (root, below, reason) in cases {
        let world = World::new();
        let roots = [&world.pki.root, &good, &root];
        world.server_leaf().write_dir(world.dir.path(), &roots);
        let (running, _watch) = Running::follow(world.dir.path(), Setup::default()).await;
        let issuing = below.as_ref().unwrap_or(&root);
        let leaf = issuing.leaf("client").dns("client.test").client().issue();
        let client = Client::new(&world.pki.root).with(&leaf);
        assert!(client.refusal(running.address).await.is_some(), "{reason}");
        let stats = running.server.stats();
        assert_eq!(stats.failures.get(reason), Some(&1), "{:?}", stats.failures);

        let twin = good.leaf("client").dns("client.test").client().issue();
        let twin = Client::new(&world.pki.root).with(&twin);
        assert_eq!(twin.refusal(running.address).await, None, "{reason}");
        running.stop().await;
    }
}

/// T11. A client that doesn't trust the server says so in an alert, and our log names it.
#[tokio::test]
async fn a_client_that_refuses_the_server_is_named_in_the_log() {
    let world = World::new();
    let (running, _watch) = Running::follow(world.dir.path(), Setup::default()).await;
    let log = LogCapture::start();
    let stranger = Authority::root("stranger");
    let leaf = world.pki.leaf("client").dns("client.test").client().issue();
    let client = Client::new(&stranger).with(&leaf);
    assert!(client.refusal(running.address).await.is_some());
    wait_until_async(DEADLINE, || async {
        match running.server.stats().failures.get("client_alert") {
            Some(1) => Ok(()),
            other => Err(format!("{other:?}")),
        }
    })
    .await;
    let lines = log.lines_with(&["TLS handshake failed", "UnknownCA"]);
    assert_eq!(lines.len(), 1, "{}", log.text());
    running.stop().await;
}
