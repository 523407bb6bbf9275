//! Counters.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use serde::Serialize;

/// A server's counters at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ServerStats {
    /// Sockets accepted.
    pub accepted: u64,
    /// Handshakes that ended well.
    pub handshakes_ok: u64,
    /// Handshakes that didn't.
    pub handshakes_failed: u64,
    /// The failed ones by reason.
    pub failures: BTreeMap<&'static str, u64>,
    /// Calls refused by the policy or for want of a verified peer.
    pub refused_by_policy: u64,
    /// Calls that a policy which only reports would have refused.
    pub would_be_refused: u64,
    /// Calls that were running when a new policy ended them; they are among the refused ones too.
    pub ended_by_policy: u64,
    /// Calls that reached the service.
    pub calls: u64,
    /// Connections ended because their peer is no longer trusted or allowed.
    pub withdrawn: u64,
    /// Connections asked to end because their peer's certificate expired.
    pub expired: u64,
    /// Connections closed hard at a deadline.
    pub cut: u64,
    /// Connections turned away because there were too many.
    pub turned_away: u64,
    /// Errors of `accept` itself, such as too many open files.
    pub accept_errors: u64,
    /// Connections being served now.
    pub active: u64,
}

#[derive(Debug, Default)]
pub(super) struct Counters {
    pub(super) accepted: Counter,
    pub(super) handshakes_ok: Counter,
    pub(super) refused_by_policy: Counter,
    pub(super) would_be_refused: Counter,
    pub(super) ended_by_policy: Counter,
    pub(super) calls: Counter,
    pub(super) withdrawn: Counter,
    pub(super) expired: Counter,
    pub(super) cut: Counter,
    pub(super) turned_away: Counter,
    pub(super) accept_errors: Counter,
    failures: Mutex<BTreeMap<&'static str, u64>>,
}

#[derive(Debug, Default)]
pub(super) struct Counter(AtomicU64);

impl Counter {
    pub(super) fn add(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn value(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl Counters {
    pub(super) fn handshake_failed(&self, reason: &'static str) {
        let mut failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        let count = failures.entry(reason).or_default();
        *count = count.saturating_add(1);
    }

    pub(super) fn snapshot(&self, active: usize) -> ServerStats {
        let failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        ServerStats {
            accepted: self.accepted.value(),
            handshakes_ok: self.handshakes_ok.value(),
            handshakes_failed: failures.values().sum(),
            failures: failures.clone(),
            refused_by_policy: self.refused_by_policy.value(),
            would_be_refused: self.would_be_refused.value(),
            ended_by_policy: self.ended_by_policy.value(),
            calls: self.calls.value(),
            withdrawn: self.withdrawn.value(),
            expired: self.expired.value(),
            cut: self.cut.value(),
            turned_away: self.turned_away.value(),
            accept_errors: self.accept_errors.value(),
            active: active as u64,
        }
    }
}
