//! A server that drains its connections under load: no call is lost, and none is executed twice.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::timeout;
use vidimus_proto::testkit::v1::echo_client::EchoClient;
use vidimus_testkit::{Pki, wait_until_async};
use vidimus_tls::channel::Channel;

use super::server::{TestServer, rustls_config};
use super::{build, builder, call, server_leaf};
use crate::support::{DEADLINE, request, soon};

const CALLERS: u64 = 32;
const DRAINS: u64 = 40;

/// Calls until told to stop; each message is used once.
async fn caller(
    channel: Channel,
    id: u64,
    done: Arc<AtomicU64>,
    stop: Arc<AtomicBool>,
) -> Vec<String> {
    let mut client = EchoClient::new(channel);
    let mut failures = Vec::new();
    let mut count = 0;
    while !stop.load(Ordering::SeqCst) {
        let message = format!("{id}-{count}");
        count += 1;
        if let Err(status) = client.unary(request(&message)).await {
            failures.push(format!("{message}: {status}"));
            stop.store(true, Ordering::SeqCst);
        }
        done.fetch_add(1, Ordering::SeqCst);
    }
    failures
}

/// Finding of the trials: tonic's own channel lost 235 of 6,596 calls in this setting.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn forty_drains_under_32_callers_lose_no_call_and_execute_each_once() {
    let pki = Pki::new("Example");
    let server = TestServer::mutual(rustls_config(&server_leaf(&pki), &pki.root)).await;
    let channel = build(builder(&pki, &server.target()));
    let (done, stop) = (
        Arc::new(AtomicU64::new(0)),
        Arc::new(AtomicBool::new(false)),
    );
    let mut callers = JoinSet::new();
    for id in 0..CALLERS {
        callers.spawn(caller(
            channel.clone(),
            id,
            Arc::clone(&done),
            Arc::clone(&stop),
        ));
    }
    let mut drained = 0;
    while drained < DRAINS && !stop.load(Ordering::SeqCst) {
        // Each drain meets a connection that is in full use.
        let before = done.load(Ordering::SeqCst);
        wait_until_async(DEADLINE, || async {
            let calls = done.load(Ordering::SeqCst);
            if calls >= before + 2 * CALLERS || stop.load(Ordering::SeqCst) {
                Ok(())
            } else {
                Err(format!("{calls} calls, {drained} drains"))
            }
        })
        .await;
        drained += server.drain();
    }
    stop.store(true, Ordering::SeqCst);
    let mut failures = Vec::new();
    while !callers.is_empty() {
        let ended = timeout(DEADLINE, callers.join_next()).await;
        let ended = ended
            .unwrap_or_else(|_| panic!("{} callers hang: {:#?}", callers.len(), channel.status()));
        let Some(ended) = ended else { break };
        failures.extend(ended.expect("no caller panics"));
    }
    let calls = done.load(Ordering::SeqCst);
    assert!(
        failures.is_empty(),
        "{} of {calls} calls failed: {failures:#?}",
        failures.len()
    );
    let counts = server.log.counts();
    let twice: Vec<_> = counts.iter().filter(|(_, count)| **count != 1).collect();
    assert!(twice.is_empty(), "executed more than once: {twice:?}");
    assert_eq!(server.log.total(), calls, "every call was executed");
    let counters = channel.status().counters;
    assert!(counters.connects >= DRAINS, "{counters:?}");
    assert!(
        counters.resends > 0,
        "the load was too low to show anything: {counters:?}"
    );
}

/// A call in flight when its connection is drained gets its answer from the old connection, new ones use a new one.
#[tokio::test]
async fn a_running_stream_outlives_the_drain_of_its_connection() {
    let pki = Pki::new("Example");
    let server = TestServer::mutual(rustls_config(&server_leaf(&pki), &pki.root)).await;
    let channel = build(builder(&pki, &server.target()));
    let mut client = EchoClient::new(channel.clone());
    let mut endless = request("stream");
    endless.delay_milliseconds = 1;
    let mut stream = client
        .server_stream(endless)
        .await
        .expect("a stream")
        .into_inner();
    soon("an answer", stream.message())
        .await
        .expect("no error")
        .expect("an answer");
    server.drain();
    wait_until_async(DEADLINE, || async {
        call(&channel).await.expect("a call");
        let connections = server.accepted();
        if connections == 2 {
            Ok(())
        } else {
            Err(format!("{connections} connections"))
        }
    })
    .await;
    for _ in 0..20 {
        soon("an answer", stream.message())
            .await
            .expect("no error")
            .expect("an answer");
    }
    assert_eq!(channel.status().connections.len(), 2);
    drop(stream);
    server.until_open(1).await;
    soon("the channel's end", channel.close(Duration::from_secs(10))).await;
}
