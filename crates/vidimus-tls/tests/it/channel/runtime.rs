//! A channel whose work the caller runs, and what becomes of calls while nobody does.

use std::time::Duration;

use tokio_util::sync::CancellationToken;
use tonic::Code;
use vidimus_testkit::{Pki, wait_until_async};
use vidimus_tls::channel::{Channel, ChannelState};
use vidimus_tls::runtime::Runtime;

use super::server::{TestServer, rustls_config};
use super::{assert_status, builder, call, server_leaf};
use crate::support::{DEADLINE, soon};

async fn start(pki: &Pki) -> TestServer {
    TestServer::mutual(rustls_config(&server_leaf(pki), &pki.root)).await
}

async fn until_called(channel: &Channel) {
    wait_until_async(DEADLINE, || async {
        if channel.status().counters.calls == 1 {
            Ok(())
        } else {
            Err("not called yet")
        }
    })
    .await;
}

/// The channel works while the runtime runs, and is closed with it.
#[tokio::test]
async fn a_channel_lives_as_long_as_its_runtime_runs() {
    let pki = Pki::new("Example");
    let server = start(&pki).await;
    let mut runtime = Runtime::new();
    let channel = runtime
        .channel(builder(&pki, &server.target()))
        .expect("a channel");
    let called = Box::pin(runtime.run_while(call(&channel)));
    soon("a call", called).await.expect("a call");
    assert_eq!(channel.status().state, ChannelState::Closed);
    assert_status(
        call(&channel).await,
        Code::Unavailable,
        &["the channel was closed"],
    );
    server.until_open(0).await;
}

/// Forgetting to run the runtime hangs no call, with or without a deadline; one that begins to run in time serves it.
#[tokio::test]
async fn a_call_waits_for_the_runtime_no_longer_than_for_a_connection() {
    let pki = Pki::new("Example");
    let server = start(&pki).await;
    let mut runtime = Runtime::new();
    let hasty = builder(&pki, &server.target())
        .connect_timeout(Duration::from_millis(50))
        .wait_for_ready();
    let hasty = runtime.channel(hasty).expect("a channel");
    assert_status(
        call(&hasty).await,
        Code::Unavailable,
        &["the channel's runtime is not running"],
    );

    let patient = runtime
        .channel(builder(&pki, &server.target()))
        .expect("a channel");
    let calling = call(&patient);
    let stop = CancellationToken::new();
    let running = async {
        until_called(&patient).await;
        runtime.run(stop.clone()).await;
    };
    let calling = async {
        let outcome = calling.await;
        stop.cancel();
        outcome
    };
    let both = Box::pin(async { tokio::join!(calling, running) });
    let (outcome, ()) = soon("a call", both).await;
    outcome.expect("the runtime has begun");
}

/// A runtime that is dropped, run or not, ends what waits for it.
#[tokio::test]
async fn a_call_ends_when_its_runtime_is_dropped() {
    let pki = Pki::new("Example");
    let server = start(&pki).await;
    let mut runtime = Runtime::new();
    let channel = runtime
        .channel(builder(&pki, &server.target()).connect_timeout(2 * DEADLINE))
        .expect("a channel");
    let dropping = async {
        until_called(&channel).await;
        drop(runtime);
    };
    let (outcome, ()) = tokio::join!(call(&channel), dropping);
    assert_status(outcome, Code::Unavailable, &["the channel was closed"]);

    let mut runtime = Runtime::new();
    let channel = runtime
        .channel(builder(&pki, &server.target()))
        .expect("a channel");
    tokio::select! {
        () = runtime.run(CancellationToken::new()) => unreachable!("it has a channel"),
        outcome = call(&channel) => drop(outcome.expect("a call")),
    }
    assert_status(
        call(&channel).await,
        Code::Unavailable,
        &["the channel was closed"],
    );
    server.until_open(0).await;
}

/// Nothing is left to run once nobody has the channel.
#[tokio::test]
async fn a_dropped_channel_leaves_its_runtime_nothing_to_do() {
    let pki = Pki::new("Example");
    let server = start(&pki).await;
    let mut runtime = Runtime::new();
    let channel = runtime
        .channel(builder(&pki, &server.target()))
        .expect("a channel");
    let calling = async move {
        call(&channel).await.expect("a call");
        drop(channel);
    };
    let running = runtime.run(CancellationToken::new());
    soon("the end", async { tokio::join!(calling, running) }).await;
    server.until_open(0).await;
}
