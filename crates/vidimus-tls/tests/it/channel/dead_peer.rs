//! A peer that vanishes without a word, as a machine does whose power or network fails.

use std::process::Command;

use tonic::Code;
use vidimus_proto::testkit::v1::echo_client::EchoClient;
use vidimus_testkit::wait_until_async;
use vidimus_tls::channel::{Channel, ClientTls};

use super::server::TestServer;
use super::{assert_status, build, call};
use crate::child;
use crate::support::{DEADLINE, SERVER, request, soon};

const CHILD: &str = "channel::dead_peer::calls_end_in_a_network_that_fails";

/// No packet comes or goes any more, and nobody says so: a call that waits for an answer ends (keepalive) as well as one
/// that sends (`TCP_USER_TIMEOUT`). When the network is back, so is the channel.
#[tokio::test]
async fn a_peer_that_vanishes_is_noticed() {
    let Some(mut child) = child::start_in_own_network(CHILD, "run") else {
        return;
    };
    child::word(&mut child, "connected").await;
    child::word(&mut child, "noticed").await;
    child::word(&mut child, "connected again").await;
}

/// Does nothing unless it is the child above.
#[tokio::test]
async fn calls_end_in_a_network_that_fails() {
    if child::argument().is_none() {
        return;
    }
    network("up");
    let server = TestServer::plaintext().await;
    let target = server.target();
    let channel = build(Channel::builder(&target, SERVER, ClientTls::Plaintext));
    let mut silent = request("silent");
    silent.delay_milliseconds = 10 * 60 * 1000;
    let mut client = EchoClient::new(channel.clone());
    let waiting = async { client.unary(silent).await.map(|_| String::new()) };
    let failing = async {
        wait_until_async(DEADLINE, || async {
            if server.log.count("silent") == 1 {
                Ok(())
            } else {
                Err("not called yet")
            }
        })
        .await;
        child::say("connected");
        network("down");
        call(&channel).await
    };
    let both = Box::pin(async { tokio::join!(waiting, failing) });
    let (waited, sent) = soon("the ends", both).await;
    for outcome in [waited, sent] {
        assert_status(outcome, Code::Unavailable, &["was broken off by"]);
    }
    child::say("noticed");

    network("up");
    wait_until_async(DEADLINE, || async { call(&channel).await.map(drop) }).await;
    child::say("connected again");
}

fn network(state: &str) {
    let mut ip = Command::new("ip");
    let status = ip.args(["link", "set", "lo", state]).status();
    assert!(status.expect("ip").success());
}
