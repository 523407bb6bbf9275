//! Holds the open connections of a server to what is trusted and allowed now.

use std::convert::Infallible;
use std::future;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{MissedTickBehavior, interval};

use super::shrink::{expire, sweep};
use super::verdict::tighten;
use super::{Inner, Security};
use crate::material::{Material, Trust};
use crate::policy::Policy;
use crate::watch::blocking;

/// Follows roots, policy and clock. It sees every change from its making on.
pub(super) struct Overseer {
    server: Arc<Inner>,
    roots: Roots,
    policies: watch::Receiver<Arc<Policy>>,
}

impl Overseer {
    pub(super) fn new(server: &Arc<Inner>) -> Self {
        Self {
            roots: Roots::of(&server.security),
            policies: server.policy.subscribe(),
            server: Arc::clone(server),
        }
    }

    /// One change after the other, each for all connections, so that what is found under older trust comes first. On a
    /// thread that may block: with thousands of connections it takes seconds, in which others are to be accepted and
    /// served. A connection's deadline is counted from the change, not from its turn.
    pub(super) async fn run(mut self) -> Infallible {
        let period = self.server.limits.expiry_interval;
        let mut expiry = interval(period.max(Duration::from_millis(1)));
        expiry.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let server = Arc::clone(&self.server);
            tokio::select! {
                biased;
                material = self.roots.changed() => {
                    let deadline = server.withdrawal_deadline();
                    blocking(move || sweep(&server, &material, deadline)).await;
                }
                // The sender is in the server's own watch, which outlives this.
                _ = self.policies.changed() => {
                    let deadline = server.withdrawal_deadline();
                    blocking(move || tighten(&server, deadline)).await;
                }
                _ = expiry.tick() => blocking(move || expire(&server)).await,
            }
        }
    }
}

/// The roots of a server. What was seen last outlives each wait, so that no change is missed between two of them.
struct Roots(Option<(watch::Receiver<Arc<Material>>, Arc<Trust>)>);

impl Roots {
    fn of(security: &Security) -> Self {
        match security {
            Security::Mutual { material, .. } => {
                let receiver = material.subscribe();
                let seen = Arc::clone(receiver.borrow().trust());
                Self(Some((receiver, seen)))
            }
            Security::Plaintext(_) | Security::Local(_) => Self(None),
        }
    }

    /// Waits until the roots are others than those seen last. Cancel-safe.
    async fn changed(&mut self) -> Arc<Material> {
        let Some((receiver, seen)) = &mut self.0 else {
            return future::pending().await;
        };
        loop {
            let now = Arc::clone(&receiver.borrow_and_update());
            if !Arc::ptr_eq(now.trust(), seen) {
                *seen = Arc::clone(now.trust());
                return now;
            }
            if receiver.changed().await.is_err() {
                return future::pending().await;
            }
        }
    }
}
