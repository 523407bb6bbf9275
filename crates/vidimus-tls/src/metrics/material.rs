//! What is copied of material.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

use metrics::{Unit, counter, describe_counter, describe_gauge, gauge};
use tokio_util::sync::CancellationToken;

use super::gauges::Varying;
use super::{anchor_label, repeat, seconds_until};
use crate::clock::Clock;
use crate::watch::{MaterialStatus, MaterialWatch};

/// Copies what a watch of material counts to the process's recorder: for a program that only calls, since
/// [`ServerMetrics`](super::ServerMetrics) does it for its server's.
#[derive(Debug)]
pub struct MaterialMetrics {
    watch: MaterialWatch,
    listener: &'static str,
    clock: Clock,
    roots: Varying<String>,
    lists: Varying<String>,
}

impl MaterialMetrics {
    /// Describes the metrics to the recorder; `listener` tells the materials of one process apart.
    #[must_use]
    pub fn new(watch: MaterialWatch, listener: &'static str) -> Self {
        describe();
        Self {
            watch,
            listener,
            clock: Clock::system(),
            // Zero would say that it ends this moment.
            roots: Varying::new(f64::NAN),
            lists: Varying::new(f64::NAN),
        }
    }

    /// The clock that the seconds to an expiry are counted by.
    #[must_use]
    pub fn clock(mut self, clock: Clock) -> Self {
        self.clock = clock;
        self
    }

    /// Copies everything as it is now.
    pub fn record(&self) {
        self.record_at(self.clock.now());
    }

    /// Copies everything every so often until `shutdown`, for recorders that push.
    pub async fn run(self, every: Duration, shutdown: CancellationToken) {
        repeat(|| self.record(), every, shutdown).await;
    }

    pub(super) fn record_at(&self, now: SystemTime) {
        let (status, listener) = (self.watch.status(), self.listener);
        self.reloads(&status);
        gauge!("vidimus_tls_leaf_expiry_seconds", "listener" => listener)
            .set(seconds_until(status.leaf_not_after, now));
        let roots = status.roots.iter().map(|root| {
            let anchor = anchor_label(Some(root.fingerprint()));
            (anchor, seconds_until(root.not_after(), now))
        });
        self.roots.set(roots.collect(), |anchor| {
            gauge!(
                "vidimus_tls_root_expiry_seconds",
                "listener" => listener, "anchor" => anchor.clone()
            )
        });
        let mut lists = BTreeMap::new();
        for list in &status.revocation_lists {
            let left = seconds_until(list.next_update, now);
            // Two CAs of one name are the usual rotation: the list that ends first must not hide behind the other.
            lists
                .entry(list.issuer.clone())
                .and_modify(|before: &mut f64| *before = before.min(left))
                .or_insert(left);
        }
        self.lists.set(lists, |issuer| {
            gauge!(
                "vidimus_tls_crl_expiry_seconds",
                "listener" => listener, "issuer" => issuer.clone()
            )
        });
    }

    #[expect(clippy::cast_precision_loss, reason = "a gauge is a float")]
    fn reloads(&self, status: &MaterialStatus) {
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
        if let Some(events) = status.events {
            gauge!("vidimus_tls_file_events", "listener" => listener).set(if events {
                1.0
            } else {
                0.0
            });
        }
    }
}

fn describe() {
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
        "1 if the system reports changes of the files, 0 if only the poll notices them; absent without files"
    );
    describe_gauge!(
        "vidimus_tls_leaf_expiry_seconds",
        Unit::Seconds,
        "Until the own certificate expires; negative once it has"
    );
    describe_gauge!(
        "vidimus_tls_root_expiry_seconds",
        Unit::Seconds,
        "Until a root in use expires; NaN once it has left"
    );
    describe_gauge!(
        "vidimus_tls_crl_expiry_seconds",
        Unit::Seconds,
        "Until the first nextUpdate of an issuer's revocation lists; negative once it has passed, NaN once they have left"
    );
}
