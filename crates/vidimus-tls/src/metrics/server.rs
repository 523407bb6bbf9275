//! What is copied of a server.

use std::collections::BTreeMap;
use std::time::Duration;

use metrics::{counter, describe_counter, describe_gauge, gauge};
use tokio_util::sync::CancellationToken;

use super::gauges::Varying;
use super::material::MaterialMetrics;
use super::{anchor_label, repeat};
use crate::peers::Summary;
use crate::server::{Security, Server};

/// Copies the counters of one server, and of its material, to the process's recorder.
#[derive(Debug)]
pub struct ServerMetrics {
    server: Server,
    listener: &'static str,
    material: Option<MaterialMetrics>,
    /// By root, and by whether they came with the material in use.
    connections: Varying<(String, &'static str)>,
}

impl ServerMetrics {
    /// Describes the metrics to the recorder; `listener` tells the servers of one process apart.
    #[must_use]
    pub fn new(server: Server, listener: &'static str) -> Self {
        describe();
        let material = match server.security() {
            Security::Mutual { material, .. } => Some(material.clone()),
            Security::Plaintext(_) | Security::Local(_) => None,
        };
        Self {
            server,
            listener,
            material: material.map(|watch| MaterialMetrics::new(watch, listener)),
            connections: Varying::new(0.0),
        }
    }

    /// Copies everything as it is now.
    pub fn record(&self) {
        let (peers, listener) = (self.server.peers(None), self.listener);
        self.counters();
        self.policy();
        self.connections
            .set(connections(&peers.summary), |(anchor, generation)| {
                gauge!(
                    "vidimus_tls_connections",
                    "listener" => listener, "anchor" => anchor.clone(), "generation" => *generation
                )
            });
        if let Some(material) = &self.material {
            material.record_at(peers.at);
        }
    }

    /// Copies everything every so often until `shutdown`, for recorders that push.
    pub async fn run(self, every: Duration, shutdown: CancellationToken) {
        repeat(|| self.record(), every, shutdown).await;
    }

    fn counters(&self) {
        let (stats, listener) = (self.server.stats(), self.listener);
        counter!("vidimus_tls_sockets_accepted_total", "listener" => listener)
            .absolute(stats.accepted);
        counter!("vidimus_tls_accept_errors_total", "listener" => listener)
            .absolute(stats.accept_errors);
        let handshakes = |result: &'static str, reason: &'static str, count| {
            counter!(
                "vidimus_tls_handshakes_total",
                "listener" => listener, "result" => result, "reason" => reason
            )
            .absolute(count);
        };
        handshakes("ok", "", stats.handshakes_ok);
        for (reason, count) in &stats.failures {
            handshakes("failed", reason, *count);
        }
        for (result, count) in [
            ("passed", stats.calls),
            ("refused", stats.refused_by_policy),
        ] {
            counter!("vidimus_tls_calls_total", "listener" => listener, "result" => result)
                .absolute(count);
        }
        counter!("vidimus_tls_calls_would_be_refused_total", "listener" => listener)
            .absolute(stats.would_be_refused);
        counter!("vidimus_tls_calls_ended_total", "listener" => listener)
            .absolute(stats.ended_by_policy);
        for (cause, count) in [
            ("withdrawn", stats.withdrawn),
            ("expired", stats.expired),
            ("closed_hard", stats.cut),
            ("turned_away", stats.turned_away),
        ] {
            counter!(
                "vidimus_tls_connections_ended_total",
                "listener" => listener, "cause" => cause
            )
            .absolute(count);
        }
    }

    #[expect(clippy::cast_precision_loss, reason = "a gauge is a float")]
    fn policy(&self) {
        let (status, listener) = (self.server.policy().status(), self.listener);
        gauge!("vidimus_tls_policy_generation", "listener" => listener)
            .set(status.generation as f64);
        for (result, count) in [("ok", status.reloads), ("refused", status.failures)] {
            counter!("vidimus_tls_policy_reloads_total", "listener" => listener, "result" => result)
                .absolute(count);
        }
    }
}

/// Connections by root and by whether they came with the material in use.
#[expect(clippy::cast_precision_loss, reason = "a gauge is a float")]
fn connections(summary: &[Summary]) -> BTreeMap<(String, &'static str), f64> {
    let mut counts = BTreeMap::new();
    for group in summary {
        let generation = if group.current { "current" } else { "older" };
        let key = (anchor_label(group.anchor), generation);
        *counts.entry(key).or_insert(0.0) += group.connections as f64;
    }
    counts
}

fn describe() {
    describe_counter!("vidimus_tls_sockets_accepted_total", "Sockets accepted");
    describe_counter!(
        "vidimus_tls_accept_errors_total",
        "Errors of accept, such as too many open files"
    );
    describe_counter!(
        "vidimus_tls_handshakes_total",
        "TLS handshakes by result and reason"
    );
    describe_counter!(
        "vidimus_tls_calls_total",
        "Calls that reached the service, and calls refused before"
    );
    describe_counter!(
        "vidimus_tls_connections_ended_total",
        "Connections that the server ended, by cause"
    );
    describe_gauge!(
        "vidimus_tls_connections",
        "Open connections by the SHA-256 of their root and by material generation"
    );
    describe_counter!(
        "vidimus_tls_calls_would_be_refused_total",
        "Calls passed by a policy that only reports"
    );
    describe_counter!(
        "vidimus_tls_calls_ended_total",
        "Calls that were running when a new policy ended them"
    );
    describe_gauge!(
        "vidimus_tls_policy_generation",
        "Changes of the policy taken into use, counted from 1"
    );
    describe_counter!(
        "vidimus_tls_policy_reloads_total",
        "Changes of the policy's file that were taken into use, or refused"
    );
}
