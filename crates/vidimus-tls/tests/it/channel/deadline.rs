//! Everything ends: attempts with the connect timeout, calls with their deadline.

use std::time::{Duration, Instant};

use tokio::net::TcpListener;
use tonic::{Code, Request};
use vidimus_proto::testkit::v1::EchoRequest;
use vidimus_proto::testkit::v1::echo_client::EchoClient;
use vidimus_testkit::Pki;
use vidimus_tls::channel::{Channel, ClientTls};

use super::server::{TestServer, rustls_config};
use super::{assert_status, build, builder, call, server_leaf};
use crate::support::{DEADLINE, SERVER, request, soon};

const SHORT: Duration = Duration::from_millis(200);

/// A listener that never answers.
async fn mute() -> (TcpListener, String) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a port");
    let target = listener.local_addr().expect("an address").to_string();
    (listener, target)
}

/// A peer that is dead, or not what we think, fails calls within the connect timeout and says at which step.
#[tokio::test]
async fn a_peer_that_never_answers_fails_calls_within_the_connect_timeout() {
    let pki = Pki::new("Example");
    let (_listener, target) = mute().await;
    let start = Instant::now();
    let secured = build(builder(&pki, &target).connect_timeout(SHORT));
    assert_status(
        call(&secured).await,
        Code::Unavailable,
        &["could not finish the TLS handshake within"],
    );
    let plain = Channel::builder(&target, SERVER, ClientTls::Plaintext).connect_timeout(SHORT);
    assert_status(
        call(&build(plain)).await,
        Code::Unavailable,
        &["could not hear the server's first byte within"],
    );
    assert!(
        start.elapsed() >= 2 * SHORT,
        "both waited: {:?}",
        start.elapsed()
    );
    assert!(
        start.elapsed() < DEADLINE / 2,
        "both ended soon: {:?}",
        start.elapsed()
    );
}

fn slow(milliseconds: u32, count: u32, timeout: Duration) -> Request<EchoRequest> {
    let mut request = Request::new(EchoRequest {
        count,
        delay_milliseconds: milliseconds,
        ..request("slow")
    });
    request.set_timeout(timeout);
    request
}

/// A deadline ends a call that waits for its answer, one whose answer goes on, and one that has no connection.
#[tokio::test]
async fn a_deadline_ends_a_call_wherever_it_is() {
    let pki = Pki::new("Example");
    let server = TestServer::mutual(rustls_config(&server_leaf(&pki), &pki.root)).await;
    let channel = build(builder(&pki, &server.target()));
    soon("a connection", channel.ready())
        .await
        .expect("a connection");
    let mut client = EchoClient::new(channel.clone());

    let outcome = soon("the end", client.unary(slow(60_000, 0, SHORT))).await;
    let status = outcome.expect_err("the deadline has passed");
    assert_eq!(status.code(), Code::DeadlineExceeded, "{status}");
    assert!(status.message().contains("no answer yet"), "{status}");

    // Always something ready: the stream itself never pauses.
    let answers = soon("headers", client.server_stream(slow(0, 0, SHORT)))
        .await
        .expect("a stream");
    let mut answers = answers.into_inner();
    let status = soon("the end", async {
        loop {
            match answers.message().await {
                Ok(Some(_)) => {}
                Ok(None) => panic!("the stream has no end of its own"),
                Err(status) => return status,
            }
        }
    })
    .await;
    assert_eq!(status.code(), Code::DeadlineExceeded, "{status}");

    let (_listener, target) = mute().await;
    let mut client = EchoClient::new(build(builder(&pki, &target)));
    let outcome = soon("the end", client.unary(slow(0, 0, SHORT))).await;
    let status = outcome.expect_err("the deadline has passed");
    assert_eq!(status.code(), Code::DeadlineExceeded, "{status}");
    assert!(status.message().contains("no connection yet"), "{status}");

    // The connection has survived all of that, and a deadline that is kept does no harm.
    let mut client = EchoClient::new(channel.clone());
    soon("an answer", client.unary(slow(1, 0, DEADLINE)))
        .await
        .expect("in time");
    assert_eq!(channel.status().counters.connects, 1);
    assert_eq!(channel.status().connections[0].calls_in_flight, 0);
}
