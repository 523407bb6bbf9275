//! What a channel tells about itself.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use serde::Serialize;

use super::connection::ConnectionStatus;

/// A channel for status pages and metrics.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct ChannelStatus {
    /// Where it connects to.
    pub target: String,
    /// What the server's certificate must be for.
    pub server_name: String,
    /// What it is doing.
    pub state: ChannelState,
    /// The generation that new connections present; `None` without TLS.
    pub generation: Option<u64>,
    /// Its live connections, oldest first.
    pub connections: Vec<ConnectionStatus>,
    /// What has been counted since it was built.
    pub counters: Counters,
}

/// What a channel is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum ChannelState {
    /// Closed for good.
    Closed,
    /// Opening a connection.
    Connecting,
    /// The last attempt failed, and the next one waits its time.
    Failing,
    /// No connection, and no call that needs one.
    Idle,
    /// Connected.
    Ready,
}

/// What a channel has counted.
#[derive(Clone, Debug, Default, Serialize)]
#[non_exhaustive]
pub struct Counters {
    /// Calls begun.
    pub calls: u64,
    /// Connections opened.
    pub connects: u64,
    /// Attempts to connect that failed.
    pub connect_failures: u64,
    /// Why the last of them failed.
    pub last_connect_failure: Option<String>,
    /// Requests sent again.
    pub resends: u64,
    /// Connections ended because their server's certificate had expired.
    pub expired: u64,
    /// Connections ended because their server was no longer trusted.
    pub withdrawn: u64,
}

/// The counters while they count.
#[derive(Debug, Default)]
pub(super) struct Counting {
    pub(super) calls: AtomicU64,
    pub(super) connects: AtomicU64,
    pub(super) connect_failures: AtomicU64,
    pub(super) resends: AtomicU64,
    pub(super) expired: AtomicU64,
    pub(super) withdrawn: AtomicU64,
    last_connect_failure: Mutex<Option<String>>,
}

impl Counting {
    pub(super) fn add(counter: &AtomicU64) {
        counter.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn connect_failed(&self, reason: String) {
        Self::add(&self.connect_failures);
        *self
            .last_connect_failure
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = Some(reason);
    }

    pub(super) fn snapshot(&self) -> Counters {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Counters {
            calls: read(&self.calls),
            connects: read(&self.connects),
            connect_failures: read(&self.connect_failures),
            last_connect_failure: self
                .last_connect_failure
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .clone(),
            resends: read(&self.resends),
            expired: read(&self.expired),
            withdrawn: read(&self.withdrawn),
        }
    }
}
