//! Who is believed on either side, and what a refusal says.

use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_stream::StreamExt as _;
use tonic::{Code, Request};
use vidimus_proto::testkit::v1::EchoRequest;
use vidimus_proto::testkit::v1::echo_client::EchoClient;
use vidimus_testkit::{Authority, Pki};
use vidimus_tls::channel::{Channel, ChannelState, ClientTls};
use vidimus_tls::identity::Fingerprint;

use super::server::{TestServer, rustls_config};
use super::{assert_status, build, builder, call, client_leaf, server_leaf, watch};
use crate::support::{DEADLINE, SERVER, request, soon};

/// V4, V5. Every kind of call works, and the status says who is at the other end and by which root.
#[tokio::test]
async fn a_channel_carries_every_kind_of_call_and_knows_its_server() {
    let pki = Pki::new("Example");
    let leaf = server_leaf(&pki);
    let server = TestServer::mutual(rustls_config(&leaf, &pki.root)).await;
    let credential = client_leaf(&pki);
    let tls = ClientTls::Watch(watch(&credential, &[&pki.root]));
    let channel = build(Channel::builder(&server.target(), SERVER, tls));
    assert_eq!(channel.status().state, ChannelState::Idle);
    soon("a connection", channel.ready())
        .await
        .expect("a connection");

    let mut client = EchoClient::new(channel.clone());
    let presented = Fingerprint::of(credential.leaf_der()).to_string();
    assert_eq!(call(&channel).await.expect("unary"), presented);
    let three = EchoRequest {
        count: 3,
        ..request("again")
    };
    let stream = soon("an answer", client.server_stream(three))
        .await
        .expect("server stream");
    let answers: Vec<_> = stream
        .into_inner()
        .map(|answer| answer.expect("an answer").sequence)
        .collect()
        .await;
    assert_eq!(answers, [0, 1, 2]);
    let both = || Request::new(tokio_stream::iter([request("c"), request("d")]));
    let answer = soon("an answer", client.client_stream(both()))
        .await
        .expect("client stream");
    assert_eq!(answer.into_inner().message, "cd");
    let stream = soon("an answer", client.bidi_stream(both()))
        .await
        .expect("bidi stream");
    let answers: Vec<_> = stream
        .into_inner()
        .map(|answer| answer.expect("an answer").message)
        .collect()
        .await;
    assert_eq!(answers, ["c", "d"]);

    let status = channel.status();
    assert_eq!(
        (
            status.state,
            status.counters.connects,
            status.counters.calls
        ),
        (ChannelState::Ready, 1, 4)
    );
    let [connection] = status.connections.as_slice() else {
        panic!("one connection: {status:?}")
    };
    assert_eq!((connection.generation, connection.current), (Some(1), true));
    assert_eq!((connection.calls, connection.calls_in_flight), (4, 0));
    assert_eq!(connection.anchor, Some(Fingerprint::of(pki.root.der())));
    let identity = connection.server.as_ref().expect("a certificate");
    assert_eq!(identity.dns_names(), [SERVER]);
    assert_eq!(identity.fingerprint(), Fingerprint::of(leaf.leaf_der()));
}

/// V5. A server of another CA is refused by us, with the CA it names.
#[tokio::test]
async fn a_server_of_another_ca_is_refused() {
    let (pki, other) = (Pki::new("Example"), Pki::new("Other"));
    let server = TestServer::mutual(rustls_config(&server_leaf(&other), &pki.root)).await;
    let channel = build(builder(&pki, &server.target()));
    let parts = [
        "certificate of the server refused",
        "Other issuing",
        &server.target(),
    ];
    assert_status(call(&channel).await, Code::Unavailable, &parts);
    let counters = channel.status().counters;
    assert_eq!((counters.connects, counters.connect_failures), (0, 1));
    assert!(
        counters
            .last_connect_failure
            .is_some_and(|reason| reason.contains("Other issuing"))
    );

    let tls = ClientTls::Watch(watch(&client_leaf(&pki), &[&other.root]));
    call(&build(Channel::builder(&server.target(), SERVER, tls)))
        .await
        .expect("the same server, trusted");
}

/// V5. The name counts, also if the CA is right.
#[tokio::test]
async fn a_server_with_another_name_is_refused() {
    let pki = Pki::new("Example");
    let server = TestServer::mutual(rustls_config(&server_leaf(&pki), &pki.root)).await;
    let named = |name: &str| {
        let tls = ClientTls::Watch(watch(&client_leaf(&pki), &[&pki.root]));
        build(Channel::builder(&server.target(), name, tls))
    };
    let outcome = call(&named("other.test")).await;
    assert_status(
        outcome,
        Code::Unavailable,
        &["certificate of the server refused", "other.test", SERVER],
    );
    call(&named(SERVER)).await.expect("the right name");
}

/// An address can be a name, too.
#[tokio::test]
async fn a_server_is_verified_by_its_address() {
    let pki = Pki::new("Example");
    let leaf = pki
        .leaf("server")
        .ip(Ipv4Addr::LOCALHOST.into())
        .server()
        .issue();
    let server = TestServer::mutual(rustls_config(&leaf, &pki.root)).await;
    let tls = || ClientTls::Watch(watch(&client_leaf(&pki), &[&pki.root]));
    call(&build(Channel::builder(
        &server.target(),
        "127.0.0.1",
        tls(),
    )))
    .await
    .expect("its own address");
    let outcome = call(&build(Channel::builder(
        &server.target(),
        "127.0.0.2",
        tls(),
    )))
    .await;
    assert_status(outcome, Code::Unavailable, &["127.0.0.2"]);
}

/// T12. The client has long written when its certificate is refused: every time it hears the alert by name, and soon.
///
/// The server drops its socket at once, without reading what the client sent.
#[tokio::test]
async fn a_refused_certificate_is_heard_by_the_alerts_name() {
    let (pki, other) = (Pki::new("Example"), Authority::root("Other"));
    let server = TestServer::mutual(rustls_config(&server_leaf(&pki), &other)).await;
    let start = Instant::now();
    for _ in 0..50 {
        let channel = build(builder(&pki, &server.target()));
        let outcome = call(&channel).await;
        let parts = [
            "server refused the connection",
            "received fatal alert",
            "UnknownCA",
        ];
        assert_status(outcome, Code::Unavailable, &parts);
    }
    assert!(
        start.elapsed() < DEADLINE,
        "fifty refusals took {:?}",
        start.elapsed()
    );
    assert_eq!(server.log.total(), 0);
}

/// T12. HAProxy says nothing before it has heard the client's preface; waiting for its first byte must not mean silence.
#[tokio::test]
async fn a_server_that_waits_for_the_preface_is_heard() {
    let (pki, other) = (Pki::new("Example"), Pki::new("Other"));
    let config = rustls_config(&server_leaf(&pki), &pki.root);
    let server = TestServer::mutual_waiting(config).await;
    call(&build(builder(&pki, &server.target())))
        .await
        .expect("a call");
    let tls = ClientTls::Watch(watch(&client_leaf(&other), &[&pki.root]));
    let outcome = call(&build(Channel::builder(&server.target(), SERVER, tls))).await;
    assert_status(
        outcome,
        Code::Unavailable,
        &["received fatal alert", "UnknownCA"],
    );
}

/// A server that speaks something else is refused by that name, and not tried again.
#[tokio::test]
async fn a_server_that_does_not_speak_http2_is_refused() {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a port");
    let target = listener.local_addr().expect("an address").to_string();
    let channel = build(Channel::builder(&target, SERVER, ClientTls::Plaintext));
    let answering = async {
        let (mut socket, _) = soon("a connection", listener.accept()).await.expect("one");
        let answer = b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n";
        socket.write_all(answer).await.expect("a write");
        let mut rest = Vec::new();
        // The client hangs up when it has seen enough.
        let _ended = socket.read_to_end(&mut rest).await;
    };
    let (outcome, ()) = tokio::join!(call(&channel), answering);
    assert_status(
        outcome,
        Code::Unavailable,
        &["server does not speak HTTP/2"],
    );
    assert_eq!(channel.status().counters.connect_failures, 1);
}

/// V5. A client that withholds its certificate hears that one is required.
#[tokio::test]
async fn a_client_without_a_certificate_hears_that_one_is_required() {
    let pki = Pki::new("Example");
    let server = TestServer::mutual(rustls_config(&server_leaf(&pki), &pki.root)).await;
    let watch = watch(&client_leaf(&pki), &[&pki.root]);
    let withheld = ClientTls::WithoutCertificate(watch.clone());
    let outcome = call(&build(Channel::builder(&server.target(), SERVER, withheld))).await;
    assert_status(
        outcome,
        Code::Unavailable,
        &["received fatal alert", "CertificateRequired"],
    );
    call(&build(Channel::builder(
        &server.target(),
        SERVER,
        ClientTls::Watch(watch),
    )))
    .await
    .expect("presented");
}

/// A call that comes while the channel waits to try again fails at once, with the reason, unless it is told to wait.
#[tokio::test]
async fn calls_fail_fast_or_wait_for_a_server_that_comes_later() {
    let pki = Pki::new("Example");
    let port = vidimus_testkit::free_port();
    let target = format!("127.0.0.1:{port}");
    let fast = build(builder(&pki, &target));
    assert_status(
        call(&fast).await,
        Code::Unavailable,
        &["cannot open the socket", "refused"],
    );
    assert_status(
        call(&fast).await,
        Code::Unavailable,
        &["cannot open the socket", "refused"],
    );
    assert_eq!(
        fast.status().counters.connect_failures,
        1,
        "the second call made no attempt of its own"
    );
    assert_eq!(fast.status().state, ChannelState::Failing);

    let short = Duration::from_millis(20);
    let patient = build(
        builder(&pki, &target)
            .wait_for_ready()
            .backoff(short, short),
    );
    let waiting = async {
        call(&patient)
            .await
            .expect("the call waits until the server is there");
    };
    let coming = async {
        vidimus_testkit::wait_until_async(DEADLINE, || async {
            let failures = patient.status().counters.connect_failures;
            if failures >= 3 {
                Ok(())
            } else {
                Err(format!("{failures} attempts"))
            }
        })
        .await;
        TestServer::mutual_on(rustls_config(&server_leaf(&pki), &pki.root), port).await
    };
    let ((), _server) = tokio::join!(waiting, coming);
}

/// A server that is replaced at the moment a channel connects hangs up without a word; the call doesn't fail for that. If
/// it happens again and again, the call does.
#[tokio::test]
async fn a_server_that_hangs_up_is_tried_again_twice() {
    for (hang_ups, served) in [(2, true), (3, false)] {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let channel = build(Channel::builder(
            &format!("127.0.0.1:{port}"),
            SERVER,
            ClientTls::Plaintext,
        ));
        let serving = async {
            for _ in 0..hang_ups {
                drop(
                    soon("a connection", listener.accept())
                        .await
                        .expect("a connection"),
                );
            }
            TestServer::plaintext_at(listener)
        };
        let (outcome, _server) = tokio::join!(call(&channel), serving);
        assert_eq!(outcome.is_ok(), served, "{hang_ups} times: {outcome:?}");
        assert_eq!(channel.status().counters.connect_failures, hang_ups);
    }
}

/// However often a server hangs up, all attempts together have the time that one has. The call hears that the server hung
/// up, rather than what the rest of that time was too short for.
#[tokio::test]
async fn attempts_after_hang_ups_end_with_the_first_ones_deadline() {
    let whole = DEADLINE * 2;
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a port");
    let target = listener.local_addr().expect("an address").to_string();
    let builder = Channel::builder(&target, SERVER, ClientTls::Plaintext);
    let channel = build(builder.connect_timeout(whole));
    let mut client = EchoClient::new(channel.clone());
    let mut calls = JoinSet::new();
    calls.spawn(async move { client.unary(request("hello")).await.map(drop) });
    // Long, but not too long for an attempt with the whole time.
    let most = whole * 2 / 3;
    let hung_up = soon("an attempt", listener.accept()).await;
    pass(most).await;
    drop(hung_up);
    let _silent = soon("another attempt", listener.accept()).await;
    pass(most).await;
    let outcome = soon("the end", calls.join_next()).await.expect("a call");
    let status = outcome.expect("no panic").expect_err("no server");
    assert_eq!(status.code(), Code::Unavailable, "{status}");
    let text = status.message();
    assert!(text.contains("server refused the connection"), "{text}");
    assert_eq!(channel.status().counters.connect_failures, 2);
}

/// Lets time pass at once.
async fn pass(time: Duration) {
    tokio::time::pause();
    tokio::time::advance(time).await;
    tokio::time::resume();
}

/// A server that speaks TLS but does not choose h2 is refused, and the error says so.
#[tokio::test]
async fn a_server_that_does_not_choose_h2_is_refused() {
    let pki = Pki::new("Example");
    let mut config = rustls_config(&server_leaf(&pki), &pki.root);
    config.alpn_protocols.clear();
    let server = TestServer::mutual(config).await;
    let outcome = call(&build(builder(&pki, &server.target()))).await;
    assert_status(
        outcome,
        Code::Unavailable,
        &["server did not choose ALPN h2"],
    );
    assert_eq!(server.log.total(), 0);

    let mut config = rustls_config(&server_leaf(&pki), &pki.root);
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    let server = TestServer::mutual(config).await;
    let outcome = call(&build(builder(&pki, &server.target()))).await;
    assert_status(outcome, Code::Unavailable, &["NoApplicationProtocol"]);
}
