//! What is copied of a channel.

use std::collections::BTreeMap;
use std::time::Duration;

use metrics::{counter, describe_counter, describe_gauge, gauge};
use tokio_util::sync::CancellationToken;

use super::gauges::Varying;
use super::{anchor_label, repeat};
use crate::channel::{Channel, ChannelState};

/// Copies the counters of one channel to the process's recorder. It is a clone of the channel, and keeps it alive.
#[derive(Debug)]
pub struct ChannelMetrics {
    channel: Channel,
    name: &'static str,
    /// By root, and by whether new calls use them.
    connections: Varying<(String, &'static str)>,
}

impl ChannelMetrics {
    /// Describes the metrics to the recorder; `name` tells the channels of one process apart.
    #[must_use]
    pub fn new(channel: Channel, name: &'static str) -> Self {
        describe();
        Self {
            channel,
            name,
            connections: Varying::new(0.0),
        }
    }

    /// Copies everything as it is now.
    pub fn record(&self) {
        let (status, channel) = (self.channel.status(), self.name);
        let ready = status.state == ChannelState::Ready;
        gauge!("vidimus_tls_channel_ready", "channel" => channel).set(f64::from(u8::from(ready)));
        let mut connections = BTreeMap::new();
        for connection in &status.connections {
            let state = if connection.current {
                "current"
            } else {
                "ending"
            };
            let key = (anchor_label(connection.anchor), state);
            *connections.entry(key).or_insert(0.0) += 1.0;
        }
        self.connections.set(connections, |(anchor, state)| {
            gauge!(
                "vidimus_tls_channel_connections",
                "channel" => channel, "anchor" => anchor.clone(), "state" => *state
            )
        });
        let counters = status.counters;
        for (result, count) in [
            ("ok", counters.connects),
            ("failed", counters.connect_failures),
        ] {
            counter!("vidimus_tls_channel_connects_total", "channel" => channel, "result" => result)
                .absolute(count);
        }
        counter!("vidimus_tls_channel_calls_total", "channel" => channel).absolute(counters.calls);
        counter!("vidimus_tls_channel_resends_total", "channel" => channel)
            .absolute(counters.resends);
        for (cause, count) in [
            ("withdrawn", counters.withdrawn),
            ("expired", counters.expired),
        ] {
            counter!(
                "vidimus_tls_channel_connections_ended_total",
                "channel" => channel, "cause" => cause
            )
            .absolute(count);
        }
    }

    /// Copies everything every so often until `shutdown`, for recorders that push.
    pub async fn run(self, every: Duration, shutdown: CancellationToken) {
        repeat(|| self.record(), every, shutdown).await;
    }
}

fn describe() {
    describe_gauge!(
        "vidimus_tls_channel_ready",
        "1 if there is a connection for the next call"
    );
    describe_gauge!(
        "vidimus_tls_channel_connections",
        "Open connections by the SHA-256 of their root and by whether new calls use them"
    );
    describe_counter!(
        "vidimus_tls_channel_connects_total",
        "Attempts to connect by result"
    );
    describe_counter!("vidimus_tls_channel_calls_total", "Calls begun");
    describe_counter!(
        "vidimus_tls_channel_resends_total",
        "Requests sent again that the server had never processed"
    );
    describe_counter!(
        "vidimus_tls_channel_connections_ended_total",
        "Connections ended because their server's certificate had expired, or was no longer trusted"
    );
}
