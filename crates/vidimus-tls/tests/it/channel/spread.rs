//! A server that limits the calls on a connection: the channel opens more of them, and closes those it no longer needs.

use std::time::Duration;

use tonic::{Code, Request, Streaming};
use vidimus_proto::testkit::v1::EchoResponse;
use vidimus_proto::testkit::v1::echo_client::EchoClient;
use vidimus_testkit::{Pki, wait_until_async};
use vidimus_tls::channel::{Channel, ChannelBuilder, ClientTls};
use vidimus_tls::watch::MaterialWatch;

use super::rotation::present;
use super::server::{TestServer, rustls_config};
use super::{build, call, client_leaf, material, server_leaf};
use crate::support::{DEADLINE, SERVER, request, soon};

fn channel(server: &TestServer) -> ChannelBuilder {
    Channel::builder(&server.target(), SERVER, ClientTls::Plaintext)
}

/// A stream without an end, of which the first answer has arrived.
async fn stream(channel: &Channel) -> Streaming<EchoResponse> {
    let mut endless = request("stream");
    endless.delay_milliseconds = 1;
    let mut client = EchoClient::new(channel.clone());
    let opened = soon("a stream", client.server_stream(endless)).await;
    let mut answers = opened.expect("a stream").into_inner();
    let answer = soon("an answer", answers.message()).await;
    answer.expect("no error").expect("an answer");
    answers
}

async fn streams(channel: &Channel, count: usize) -> Vec<Streaming<EchoResponse>> {
    let mut streams = Vec::new();
    for _ in 0..count {
        streams.push(stream(channel).await);
    }
    streams
}

/// Calls in flight on each connection.
fn loads(channel: &Channel) -> Vec<u64> {
    let connections = channel.status().connections;
    connections
        .iter()
        .map(|each| each.calls_in_flight)
        .collect()
}

/// No call waits behind streams that may last for ever; what a burst needed is closed after it.
#[tokio::test]
async fn a_full_connection_is_joined_by_another_until_it_is_not_needed() {
    let server = TestServer::plaintext_with(2).await;
    let channel = build(channel(&server).surplus_idle(Duration::from_millis(200)));
    let mut running = streams(&channel, 5).await;
    call(&channel).await.expect("a call");
    assert_eq!(loads(&channel), [2, 2, 1]);
    assert_eq!(server.accepted(), 3);
    call(&channel).await.expect("a call");
    assert_eq!(server.accepted(), 3, "there is room for one more");

    running.truncate(1);
    server.until_open(1).await;
    call(&channel).await.expect("a call");
    let answer = soon("an answer", running[0].message()).await;
    answer.expect("no error").expect("an answer");
    assert_eq!(server.accepted(), 3);
}

/// A burst of calls at once is spread, too, and none is refused by the server or sent twice.
#[tokio::test]
async fn a_burst_is_spread_over_as_many_connections_as_it_may_have() {
    let server = TestServer::plaintext_with(3).await;
    let channel = build(channel(&server).max_connections(4));
    let mut calls = tokio::task::JoinSet::new();
    for id in 0..60 {
        let mut client = EchoClient::new(channel.clone());
        let mut slow = request(&format!("call {id}"));
        slow.delay_milliseconds = 5;
        calls.spawn(async move { client.unary(slow).await.map(drop) });
    }
    while let Some(outcome) = soon("the next call", calls.join_next()).await {
        outcome.expect("no panic").expect("a call");
    }
    assert!(
        (2..=4).contains(&server.accepted()),
        "{}",
        server.accepted()
    );
    assert_eq!(channel.status().counters.resends, 0);
    assert!(server.log.counts().values().all(|count| *count == 1));
}

/// Where no more connections may be opened, a call waits for the first slot that is freed, and no longer than its deadline.
#[tokio::test]
async fn beyond_the_last_connection_calls_wait_for_a_slot() {
    let server = TestServer::plaintext_with(1).await;
    let channel = build(channel(&server).max_connections(2));
    let mut running = streams(&channel, 2).await;
    let mut client = EchoClient::new(channel.clone());
    let mut hurried = Request::new(request("hurried"));
    hurried.set_timeout(Duration::from_millis(200));
    let status = soon("the end", client.unary(hurried))
        .await
        .expect_err("no slot");
    assert_eq!(status.code(), Code::DeadlineExceeded, "{status}");
    let text = "every connection carries as many calls as the server allows";
    assert!(status.message().contains(text), "{status}");

    let mut waiting = tokio::task::JoinSet::new();
    for _ in 0..3 {
        let channel = channel.clone();
        waiting.spawn(async move { call(&channel).await.map(drop) });
    }
    running.pop();
    while let Some(outcome) = soon("the next call", waiting.join_next()).await {
        outcome.expect("no panic").expect("a call");
    }
    assert_eq!((server.accepted(), server.log.count("hurried")), (2, 0));
}

/// New material replaces every connection, however many there are; what runs on them goes on.
#[tokio::test]
async fn a_renewed_certificate_replaces_all_connections() {
    let pki = Pki::new("Example");
    let config = rustls_config(&server_leaf(&pki), &pki.root);
    let server = TestServer::mutual_with(config, 1).await;
    let leaf = client_leaf(&pki);
    let (watch, mut publisher) = MaterialWatch::from_memory(material(&leaf, &[&pki.root]));
    let builder = Channel::builder(&server.target(), SERVER, ClientTls::Watch(watch));
    let channel = build(builder.rotation_jitter(Duration::from_millis(1)));
    let mut running = streams(&channel, 3).await;

    present(&mut publisher, &client_leaf(&pki));
    wait_until_async(DEADLINE, || async {
        let connections = channel.status().connections;
        let current = connections.iter().filter(|each| each.current);
        let generations: Vec<_> = current.filter_map(|each| each.generation).collect();
        if generations == [2] {
            Ok(())
        } else {
            Err(format!("{generations:?}"))
        }
    })
    .await;
    running.extend(streams(&channel, 2).await);
    for stream in &mut running {
        let answer = soon("an answer", stream.message()).await;
        answer.expect("no error").expect("an answer");
    }
    assert_eq!(loads(&channel), [1, 1, 1, 1, 1]);
    running.drain(..3);
    server.until_open(2).await;
}
