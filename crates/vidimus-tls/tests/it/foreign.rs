//! Programs and certificates that nobody here wrote, and services that are not tonic's.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio_util::sync::CancellationToken;
use vidimus_tls::material::{MaterialFiles, Usage};
use vidimus_tls::policy::AllowList;
use vidimus_tls::server::{Security, Server};
use vidimus_tls::watch::MaterialWatch;

use crate::support::{Client, DEADLINE, Running, SERVER, Setup, World, call, put, soon};

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

/// V6, T14. A certificate that openssl made, with every form of name there is, and two common names.
#[tokio::test]
async fn a_foreign_certificate_with_every_form_of_name_is_read() {
    let world = World::new();
    let dir = tempfile::tempdir().expect("a folder");
    let at = |name: &str| dir.path().join(name).display().to_string();
    let issuing = &world.pki.issuing;
    put(at("ca.crt"), issuing.pem());
    put(at("ca.key"), issuing.key_pem());
    put(
        at("leaf.cnf"),
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
            AllowList::parse(list).expect("a list").permits(identity),
            permitted,
            "{list}"
        );
    }
    running.stop().await;
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
            .allow_list(AllowList::parse(allow).expect("a list"))
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
