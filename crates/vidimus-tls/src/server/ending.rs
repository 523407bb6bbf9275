//! What ends a connection other than its peer: its age, its idleness, the shutdown, or somebody who picked it out.

use std::future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tokio::sync::watch;
use tokio::time::{Sleep, sleep, sleep_until};
use tokio_util::sync::CancellationToken;

use super::Inner;
use super::connection::Shared;
use super::registry::{Control, Entry};
use crate::events::DrainCause;
use crate::identity::PeerIdentity;

/// What is to be done with a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Let what is under way finish. Comes once.
    Drain,
    /// Close it now.
    Cut,
}

type Timer = Option<Pin<Box<Sleep>>>;

/// Says when a connection has to end.
pub(super) struct Ending<'a> {
    entry: &'a Entry,
    server: &'a Inner,
    /// `None` once it has been seen.
    closing: Option<&'a CancellationToken>,
    control: watch::Receiver<Control>,
    told: bool,
    preface: Timer,
    spoke: Option<&'a AtomicBool>,
    age: Timer,
    idle: Timer,
    /// The connection's activity when the idle timer was set.
    activity: u64,
}

impl<'a> Ending<'a> {
    /// `spoke` says whether the peer has begun to speak, where it has to.
    pub(super) fn new(entry: &'a Entry, shared: &'a Shared, spoke: Option<&'a AtomicBool>) -> Self {
        let limits = &shared.server.limits;
        let preface = match entry.peer {
            // A person at a debugging tool on the machine itself may take their time.
            PeerIdentity::Unix(_) => Duration::from_secs(3600),
            PeerIdentity::Certificate(_) | PeerIdentity::Unauthenticated => limits.preface_timeout,
        };
        Self {
            entry,
            server: &shared.server,
            closing: Some(&shared.closing),
            control: entry.control(),
            told: false,
            preface: spoke.map(|_| Box::pin(sleep(preface))),
            spoke,
            age: limits
                .max_connection_age
                .map(|age| Box::pin(sleep(with_jitter(age)))),
            idle: limits.idle_timeout.map(|idle| Box::pin(sleep(idle))),
            activity: 0,
        }
    }

    /// Waits until something is to be done. Cancel-safe.
    pub(super) async fn next(&mut self) -> Step {
        loop {
            let control = *self.control.borrow_and_update();
            if control.drain && !self.told {
                self.told = true;
                return Step::Drain;
            }
            let limits = &self.server.limits;
            tokio::select! {
                // The sender is in the entry, which outlives this loop.
                _ = self.control.changed() => {}
                () = due(&mut self.age) => {
                    self.age = None;
                    self.drain(DrainCause::Age, limits.connection_age_grace);
                }
                () = cancelled(self.closing) => {
                    self.closing = None;
                    self.drain(DrainCause::Shutdown, limits.drain_timeout);
                }
                () = due(&mut self.preface) => {
                    self.preface = None;
                    if self.is_silent() {
                        tracing::debug!(connection = %self.entry.id, remote = self.entry.remote, "connection closed: it did not begin to speak HTTP after its handshake");
                        return Step::Cut;
                    }
                }
                () = due(&mut self.idle) => self.look_for_activity(),
                () = at(control.deadline) => {
                    self.server.counters.cut.add();
                    self.server.report_closed_hard(self.entry);
                    tracing::info!(connection = %self.entry.id, remote = self.entry.remote, "connection closed hard at its deadline");
                    return Step::Cut;
                }
            }
        }
    }

    fn is_silent(&self) -> bool {
        self.spoke
            .is_some_and(|spoke| !spoke.load(Ordering::Relaxed))
    }

    fn drain(&self, cause: DrainCause, grace: Duration) {
        let deadline = Instant::now().checked_add(grace);
        self.server.drain(self.entry, cause, deadline);
    }

    /// Ends a connection on which nothing has happened since the last look.
    fn look_for_activity(&mut self) {
        let limits = &self.server.limits;
        let activity = self.entry.activity.load(Ordering::Relaxed);
        let busy = self.entry.streams.load(Ordering::Relaxed) > 0;
        if busy || activity != self.activity {
            self.activity = activity;
            self.idle = limits.idle_timeout.map(|idle| Box::pin(sleep(idle)));
        } else {
            self.idle = None;
            self.drain(DrainCause::Idle, limits.drain_timeout);
        }
    }
}

async fn due(timer: &mut Timer) {
    match timer {
        Some(timer) => timer.as_mut().await,
        None => future::pending().await,
    }
}

async fn cancelled(token: Option<&CancellationToken>) {
    match token {
        Some(token) => token.cancelled().await,
        None => future::pending().await,
    }
}

async fn at(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => sleep_until(deadline.into()).await,
        None => future::pending().await,
    }
}

/// `age` give or take a tenth, so that connections made together don't end together.
fn with_jitter(age: Duration) -> Duration {
    use std::hash::{BuildHasher, Hasher};
    // A hasher with random keys is randomness enough for spreading.
    let random = std::hash::RandomState::new().build_hasher().finish();
    let permille = 900_u64.saturating_add(random % 201);
    let millis = u64::try_from(age.as_millis()).unwrap_or(u64::MAX);
    Duration::from_millis(
        (millis / 1000)
            .saturating_mul(permille)
            .saturating_add((millis % 1000).saturating_mul(permille) / 1000),
    )
}
