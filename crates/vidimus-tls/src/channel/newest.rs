//! The newest material, and since which generation a connection has to be replaced.

use std::sync::Arc;

use tokio::sync::watch;

use crate::identity::Fingerprint;
use crate::material::{Identity, Material, Root, Trust};

/// Follows the material of a channel.
///
/// Certificate, key and roots are what a handshake shows and asks for, so a connection with others is replaced. Revocation
/// lists come every day and change neither: live connections are judged by them where they are.
pub(super) struct Newest {
    material: watch::Receiver<Arc<Material>>,
    /// The generation that was looked at last.
    seen: u64,
    identity: Arc<Identity>,
    roots: Vec<Fingerprint>,
    since: u64,
}

impl Newest {
    pub(super) fn new(mut material: watch::Receiver<Arc<Material>>) -> Self {
        let now = Arc::clone(&material.borrow_and_update());
        Self {
            material,
            seen: now.generation(),
            identity: Arc::clone(now.identity()),
            roots: roots(now.trust()),
            since: now.generation(),
        }
    }

    /// Waits until there is other material than there was at the last call. Cancel-safe.
    pub(super) async fn changed(&mut self) {
        if self.material.changed().await.is_err() {
            // The channel holds the watch, so its sender lives.
            std::future::pending::<()>().await;
        }
    }

    pub(super) fn generation(&self) -> u64 {
        self.material.borrow().generation()
    }

    /// The first generation known to have the identity and the roots of now. Connections of earlier ones are to be replaced.
    pub(super) fn since(&mut self) -> u64 {
        let now = Arc::clone(&self.material.borrow());
        if now.generation() != self.seen {
            self.seen = now.generation();
            let roots = roots(now.trust());
            if !Arc::ptr_eq(now.identity(), &self.identity) || roots != self.roots {
                self.identity = Arc::clone(now.identity());
                self.roots = roots;
                self.since = self.seen;
            }
        }
        self.since
    }
}

fn roots(trust: &Trust) -> Vec<Fingerprint> {
    let mut roots: Vec<_> = trust.roots().iter().map(Root::fingerprint).collect();
    // Their order means nothing.
    roots.sort_unstable();
    roots
}
