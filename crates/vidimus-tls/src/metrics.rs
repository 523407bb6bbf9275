//! What a server counts, through the `metrics` facade: for whichever recorder the program has installed.
//!
//! Nothing is added to the work of a connection or a call: the server's own counters are copied when
//! [`ServerMetrics::record`] is called, before a page is rendered or every few seconds. The labels are few and fixed: a
//! root's fingerprint, a reason, never a peer's name.
//!
//! | metric | kind, unit | labels |
//! |---|---|---|
//! | `vidimus_tls_sockets_accepted_total` | counter | `listener` |
//! | `vidimus_tls_accept_errors_total` | counter | `listener` |
//! | `vidimus_tls_handshakes_total` | counter | `listener`, `result` (`ok`, `failed`), `reason` |
//! | `vidimus_tls_calls_total` | counter | `listener`, `result` (`passed`, `refused`) |
//! | `vidimus_tls_calls_would_be_refused_total` | counter: passed by a policy that only reports | `listener` |
//! | `vidimus_tls_calls_ended_total` | counter: running when a new policy ended them | `listener` |
//! | `vidimus_tls_connections_ended_total` | counter | `listener`, `cause` (`withdrawn`, `expired`, `closed_hard`, `turned_away`) |
//! | `vidimus_tls_connections` | gauge | `listener`, `anchor`, `generation` (`current`, `older`) |
//! | `vidimus_tls_material_generation` | gauge | `listener` |
//! | `vidimus_tls_reloads_total` | counter | `listener`, `result` (`ok`, `refused`) |
//! | `vidimus_tls_last_reload_timestamp_seconds` | gauge, seconds since 1970 | `listener` |
//! | `vidimus_tls_file_events` | gauge: 1, or 0 if only the poll notices changes | `listener` |
//! | `vidimus_tls_policy_generation` | gauge | `listener` |
//! | `vidimus_tls_policy_reloads_total` | counter | `listener`, `result` (`ok`, `refused`) |
//! | `vidimus_tls_leaf_expiry_seconds` | gauge, seconds, negative once expired | `listener` |
//! | `vidimus_tls_root_expiry_seconds` | gauge, seconds | `listener`, `anchor` |
//! | `vidimus_tls_crl_expiry_seconds` | gauge, seconds until nextUpdate | `listener`, `issuer` |

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use metrics::{Gauge, Unit, counter, describe_counter, describe_gauge, gauge};
use tokio::time::{MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;

use crate::peers::Summary;
use crate::server::{Security, Server};
use crate::watch::MaterialStatus;

/// Copies the counters of one server to the process's recorder.
#[derive(Debug)]
pub struct ServerMetrics {
    server: Server,
    listener: &'static str,
    /// The labelled gauges that were set last: those that are gone are set to zero once.
    shown: Mutex<BTreeMap<Varying, f64>>,
}

/// A gauge with the labels that vary.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Varying {
    Connections {
        anchor: String,
        generation: &'static str,
    },
    CrlExpiry {
        issuer: String,
    },
    RootExpiry {
        anchor: String,
    },
}

impl ServerMetrics {
    /// Describes the metrics to the recorder; `listener` tells the servers of one process apart.
    #[must_use]
    pub fn new(server: Server, listener: &'static str) -> Self {
        describe();
        Self {
            server,
            listener,
            shown: Mutex::default(),
        }
    }

    /// Copies everything as it is now.
    pub fn record(&self) {
        let peers = self.server.peers(None);
        self.counters();
        self.policy();
        let mut varying = connections(&peers.summary);
        if let Security::Mutual { material, .. } = self.server.security() {
            let status = material.status();
            self.material(&status, peers.at);
            for root in &status.roots {
                let anchor = root.fingerprint().to_string();
                let left = seconds_until(root.not_after(), peers.at);
                varying.insert(Varying::RootExpiry { anchor }, left);
            }
            for list in &status.revocation_lists {
                let issuer = list.issuer.clone();
                let left = seconds_until(list.next_update, peers.at);
                varying.insert(Varying::CrlExpiry { issuer }, left);
            }
        }
        self.vary(varying);
    }

    /// Copies everything every so often until `shutdown`, for recorders that push.
    pub async fn run(self, every: Duration, shutdown: CancellationToken) {
        let mut ticks = interval(every.max(Duration::from_millis(1)));
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                () = shutdown.cancelled() => return,
                _ = ticks.tick() => self.record(),
            }
        }
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

    #[expect(clippy::cast_precision_loss, reason = "a gauge is a float")]
    fn material(&self, status: &MaterialStatus, now: SystemTime) {
        let listener = self.listener;
        gauge!("vidimus_tls_material_generation", "listener" => listener)
            .set(status.generation as f64);
        for (result, count) in [("ok", status.reloads), ("refused", status.failures)] {
            counter!("vidimus_tls_reloads_total", "listener" => listener, "result" => result)
                .absolute(count);
        }
        if let Some(last) = status.last_reload {
            gauge!("vidimus_tls_last_reload_timestamp_seconds", "listener" => listener)
                .set(-seconds_until(SystemTime::UNIX_EPOCH, last));
        }
        gauge!("vidimus_tls_file_events", "listener" => listener).set(if status.events {
            1.0
        } else {
            0.0
        });
        gauge!("vidimus_tls_leaf_expiry_seconds", "listener" => listener)
            .set(seconds_until(status.leaf_not_after, now));
    }

    /// Sets the gauges whose labels come and go.
    fn vary(&self, values: BTreeMap<Varying, f64>) {
        let mut shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
        let gone: Vec<Varying> = shown
            .keys()
            .filter(|key| !values.contains_key(*key))
            .cloned()
            .collect();
        let gone = gone.iter().map(|key| (key, 0.0));
        let present = values.iter().map(|(key, value)| (key, *value));
        for (key, value) in present.chain(gone) {
            self.gauge(key.clone()).set(value);
        }
        *shown = values;
    }

    fn gauge(&self, of: Varying) -> Gauge {
        let listener = self.listener;
        match of {
            Varying::Connections { anchor, generation } => gauge!(
                "vidimus_tls_connections",
                "listener" => listener, "anchor" => anchor, "generation" => generation
            ),
            Varying::CrlExpiry { issuer } => gauge!(
                "vidimus_tls_crl_expiry_seconds",
                "listener" => listener, "issuer" => issuer
            ),
            Varying::RootExpiry { anchor } => gauge!(
                "vidimus_tls_root_expiry_seconds",
                "listener" => listener, "anchor" => anchor
            ),
        }
    }
}

/// Connections by root and by whether they came with the material in use.
#[expect(clippy::cast_precision_loss, reason = "a gauge is a float")]
fn connections(summary: &[Summary]) -> BTreeMap<Varying, f64> {
    let mut counts = BTreeMap::new();
    for group in summary {
        let anchor = group
            .anchor
            .map_or_else(|| "none".to_owned(), |print| print.to_string());
        let generation = if group.current { "current" } else { "older" };
        let count = counts
            .entry(Varying::Connections { anchor, generation })
            .or_insert(0.0);
        *count += group.connections as f64;
    }
    counts
}

/// From `now` to `then`; negative if that has passed.
fn seconds_until(then: SystemTime, now: SystemTime) -> f64 {
    match then.duration_since(now) {
        Ok(left) => left.as_secs_f64(),
        Err(passed) => -passed.duration().as_secs_f64(),
    }
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
    describe_gauge!(
        "vidimus_tls_material_generation",
        "Changes of certificate and roots taken into use, counted from 1"
    );
    describe_counter!(
        "vidimus_tls_reloads_total",
        "Changes on disk that were taken into use, or refused"
    );
    describe_gauge!(
        "vidimus_tls_last_reload_timestamp_seconds",
        Unit::Seconds,
        "When the last change was taken into use"
    );
    describe_gauge!(
        "vidimus_tls_file_events",
        "1 if the system reports changes of the files, 0 if only the poll notices them"
    );
    describe_gauge!(
        "vidimus_tls_leaf_expiry_seconds",
        Unit::Seconds,
        "Until the own certificate expires; negative once it has"
    );
    describe_gauge!(
        "vidimus_tls_root_expiry_seconds",
        Unit::Seconds,
        "Until a root in use expires"
    );
    describe_gauge!(
        "vidimus_tls_crl_expiry_seconds",
        Unit::Seconds,
        "Until a revocation list's nextUpdate; negative once it has passed"
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
