//! When a connection is renewed, and what a renewal that fails does not hold up.

use std::time::Duration;

use vidimus_testkit::{Pki, wait_until_async};
use vidimus_tls::channel::{Channel, ChannelBuilder, ClientTls};
use vidimus_tls::watch::MaterialWatch;

use super::rotation::{present, until_failures};
use super::server::{TestServer, rustls_config};
use super::{build, call, client_leaf, material, server_leaf};
use crate::support::{DEADLINE, SERVER, soon};

const QUICK: Duration = Duration::from_millis(1);
/// A wait that no test gets to the end of.
const LONG: Duration = Duration::from_secs(120);

fn builder(target: &str, watch: MaterialWatch) -> ChannelBuilder {
    Channel::builder(target, SERVER, ClientTls::Watch(watch)).rotation_jitter(QUICK)
}

async fn until_disconnected(channel: &Channel) {
    wait_until_async(DEADLINE, || async {
        let connections = channel.status().connections.len();
        if connections == 0 {
            Ok(())
        } else {
            Err("still connected")
        }
    })
    .await;
}

/// A renewal that fails for long waits longer and longer. When the last connection ends then, the attempts to connect
/// follow one another as those of a channel that has just lost its server.
#[tokio::test]
async fn renewals_that_fail_do_not_delay_the_attempts_after_the_last_connection() {
    let pki = Pki::new("Example");
    let server = TestServer::mutual(rustls_config(&server_leaf(&pki), &pki.root)).await;
    let leaf = client_leaf(&pki);
    let (watch, mut publisher) = MaterialWatch::from_memory(material(&leaf, &[&pki.root]));
    let channel = build(builder(&server.target(), watch).backoff(QUICK, LONG));
    call(&channel).await.expect("a call");
    present(&mut publisher, &client_leaf(&Pki::new("Other")));
    // Being asked skips the wait, and the next one is longer all the same: after this, as long as it gets.
    while channel.status().counters.connect_failures < 25 {
        soon("a refusal", channel.reconnect())
            .await
            .expect_err("the server doesn't know this client");
    }

    assert_eq!(server.drain(), 1);
    until_disconnected(&channel).await;
    let failures = channel.status().counters.connect_failures;
    let calling = async {
        loop {
            call(&channel).await.expect_err("no connection");
            tokio::task::yield_now().await;
        }
    };
    tokio::select! {
        () = until_failures(&channel, failures + 3) => {}
        never = calling => never,
    }
}
