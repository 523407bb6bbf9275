//! Who gets through the handshake and who doesn't, and what both sides learn of it.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_util::sync::CancellationToken;
use vidimus_testkit::{Authority, Pki, wait_until_async};
use vidimus_tls::material::{MaterialFiles, Usage};
use vidimus_tls::policy::AllowList;
use vidimus_tls::server::{Limits, Security, Server};
use vidimus_tls::watch::MaterialWatch;

use crate::support::{Client, DEADLINE, LogCapture, Running, SERVER, Setup, World, call, soon};

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

/// V5. A peer that says nothing after its handshake doesn't stay.
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
    let mut stream = world
        .client()
        .connect(running.address)
        .await
        .expect("a handshake");
    let mut rest = Vec::new();
    // The server's settings come first, then the end.
    let _end = soon("the end", stream.read_to_end(&mut rest)).await;
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

/// T7. A client that wants to resume gets a full handshake each time, so that its certificate is looked at each time.
#[tokio::test]
async fn nothing_is_resumed() {
    let world = World::new();
    let (running, _watch) = Running::follow(world.dir.path(), Setup::default()).await;
    let client = world.client().resuming();
    for _ in 0..3 {
        let mut stream = client.connect(running.address).await.expect("a handshake");
        stream
            .write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0")
            .await
            .expect("a write");
        stream.flush().await.expect("a flush");
        let mut bytes = [0; 64];
        // Tickets would come with the server's first data.
        soon("settings", stream.read(&mut bytes))
            .await
            .expect("settings");
        assert_eq!(
            stream.get_ref().1.handshake_kind(),
            Some(rustls::HandshakeKind::Full)
        );
        assert_eq!(stream.get_ref().1.tls13_tickets_received(), 0);
    }
    running.stop().await;
}

/// V5. What openssl sees: TLS 1.3 alone, with the hybrid key exchange left to those who know it, and no tickets.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn openssl_gets_tls_1_3_and_no_ticket() {
    let world = World::new();
    let (running, _watch) = Running::follow(world.dir.path(), Setup::default()).await;
    let client = tempfile::tempdir().expect("a folder");
    let leaf = world.pki.leaf("client").dns("client.test").client().issue();
    leaf.write_dir(client.path(), &[&world.pki.root]);
    let run = |more: &[&str]| {
        let mut command = std::process::Command::new("openssl");
        command
            .current_dir(client.path())
            .args(["s_client", "-connect"]);
        command.arg(running.address.to_string());
        command.args([
            "-servername",
            SERVER,
            "-CAfile",
            "ca.crt",
            "-verify_return_error",
        ]);
        command.args(more);
        // The HTTP/2 preface and an empty SETTINGS frame; reading ends the program with the server's next frames.
        let input = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
        let output = vidimus_testkit::command::run(command, input, DEADLINE);
        format!("{}{}", output.stdout_text(), output.stderr_text())
    };
    let mutual = [
        "-cert",
        "tls.crt",
        "-key",
        "tls.key",
        "-cert_chain",
        "tls.crt",
        "-alpn",
        "h2",
    ];
    let text = run(&[&mutual[..], &["-sess_out", "session"]].concat());
    assert!(text.contains("TLSv1.3"), "{text}");
    assert!(text.contains("ALPN protocol: h2"), "{text}");
    assert!(text.contains("Verify return code: 0 (ok)"), "{text}");
    assert!(!text.contains("New Session Ticket"), "{text}");
    assert!(
        !client.path().join("session").exists(),
        "a session was kept"
    );

    let old = run(&[&mutual[..], &["-tls1_2"]].concat());
    assert!(old.contains("alert protocol version"), "{old}");
    let failures = running.server.stats().failures;
    assert_eq!(failures.get("incompatible"), Some(&1), "{failures:?}");

    // A TLS 1.3 client is done before the server has judged it: it has to go on reading to learn the verdict.
    let anonymous = run(&["-alpn", "h2", "-ign_eof"]);
    assert!(
        anonymous.contains("alert certificate required"),
        "{anonymous}"
    );
    running.stop().await;
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

/// V6, T14. A certificate that openssl made, with every form of name there is, and two common names.
#[tokio::test]
async fn a_foreign_certificate_with_every_form_of_name_is_read() {
    let world = World::new();
    let dir = tempfile::tempdir().expect("a folder");
    let at = |name: &str| dir.path().join(name).display().to_string();
    let issuing = &world.pki.issuing;
    put(&at("ca.crt"), &issuing.pem());
    put(&at("ca.key"), &issuing.key_pem());
    put(
        &at("leaf.cnf"),
        "[req]\ndistinguished_name=dn\nprompt=no\n[dn]\n0.CN=first\n1.CN=second\nO=Exämple\n[leaf]\n\
         basicConstraints=critical,CA:FALSE\nextendedKeyUsage=clientAuth\nsubjectAltName=@names\n\
         authorityKeyIdentifier=keyid\n[names]\nDNS.1=one.test\nDNS.2=*.two.test\nIP.1=192.0.2.1\n\
         IP.2=2001:db8::1\nURI.1=spiffe://example/a\nemail.1=ops@example.test\nRID.1=1.2.3.4\n\
         dirName.1=dn\notherName.1=1.3.6.1.4.1.311.20.2.3;UTF8:user@example.test\n",
    );
    let (key, csr, cert) = (at("leaf.key"), at("leaf.csr"), at("leaf.crt"));
    vidimus_testkit::openssl([
        "req",
        "-new",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:P-256",
        "-nodes",
        "-utf8",
        "-config",
        &at("leaf.cnf"),
        "-keyout",
        &key,
        "-out",
        &csr,
    ])
    .success();
    vidimus_testkit::openssl([
        "x509",
        "-req",
        "-in",
        &csr,
        "-CA",
        &at("ca.crt"),
        "-CAkey",
        &at("ca.key"),
        "-days",
        "3",
        "-extfile",
        &at("leaf.cnf"),
        "-extensions",
        "leaf",
        "-out",
        &cert,
    ])
    .success();
    let read = |path: &str| std::fs::read_to_string(path).expect("a file");
    let chain = format!("{}{}", read(&cert), issuing.pem());
    let (running, _watch) = Running::follow(world.dir.path(), Setup::default()).await;
    let client = Client::new(&world.pki.root).with_pem(&chain, &read(&key));
    let mut echo = client.echo(running.address).await;
    call(&mut echo).await.expect("a call");
    let connection = running.server.connections().remove(0);
    let identity = connection.peer.certificate().expect("a certificate");
    assert_eq!(identity.dns_names(), ["one.test", "*.two.test"]);
    assert_eq!(identity.uri_names(), ["spiffe://example/a"]);
    assert_eq!(identity.email_names(), ["ops@example.test"]);
    let addresses: Vec<String> = identity
        .ip_addresses()
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(addresses, ["192.0.2.1", "2001:db8::1"]);
    assert_eq!(identity.common_name(), None, "two common names name nobody");
    for (list, permitted) in [
        ("ONE.test", true),
        ("*.two.test", true),
        ("a.two.test", false),
        ("first", false),
        ("second", false),
    ] {
        assert_eq!(
            AllowList::parse(list).permits(identity),
            permitted,
            "{list}"
        );
    }
    running.stop().await;
}

fn put(path: &str, content: &str) {
    #[expect(
        clippy::disallowed_methods,
        reason = "a test's files need not survive a crash"
    )]
    std::fs::write(path, content).expect("a file");
}

/// V5, V6. An axum router is served like a tonic one, and refused in its own words.
#[tokio::test]
async fn an_axum_router_is_served_too() {
    use http_body_util::{BodyExt, Empty};
    use hyper_util::rt::{TokioExecutor, TokioIo};
    use vidimus_tls::identity::PeerIdentity;

    async fn whoami(axum::Extension(peer): axum::Extension<PeerIdentity>) -> String {
        peer.label()
    }
    for (allow, status, body) in [
        ("client.test", http::StatusCode::OK, "client.test"),
        ("nobody", http::StatusCode::FORBIDDEN, ""),
    ] {
        let world = World::new();
        let router = axum::Router::new().route("/whoami", axum::routing::get(whoami));
        let files = MaterialFiles::in_dir(world.dir.path());
        let (watch, _driver) = MaterialWatch::start(files, Usage::Server, crate::support::quick())
            .await
            .expect("good material");
        let server = Server::builder(Security::mutual(watch))
            .allow_list(AllowList::parse(allow))
            .build();
        let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0))
            .await
            .expect("a port");
        let address = listener.local_addr().expect("an address");
        let stop = CancellationToken::new();
        let serving = Box::pin(server.serve(listener.into(), router, stop.clone()));
        let asking = async {
            let stream = world.client().connect(address).await.expect("a handshake");
            let (mut sender, connection) =
                hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream))
                    .await
                    .expect("HTTP/2");
            let asked = async {
                let request = http::Request::get("https://server.test/whoami")
                    .body(Empty::<bytes::Bytes>::new());
                let response = sender
                    .send_request(request.expect("a request"))
                    .await
                    .expect("a response");
                let answered = response.status();
                let text = response
                    .into_body()
                    .collect()
                    .await
                    .expect("a body")
                    .to_bytes();
                drop(sender);
                (answered, text)
            };
            let ((answered, text), _) = tokio::join!(asked, connection);
            assert_eq!((answered, &text[..]), (status, body.as_bytes()));
            stop.cancel();
        };
        let asking = Box::pin(asking);
        let (served, ()) = soon("both", async { tokio::join!(serving, asking) }).await;
        served.expect("it serves");
    }
}
