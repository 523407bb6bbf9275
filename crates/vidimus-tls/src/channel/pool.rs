//! A channel's connections: those that new calls may use, and all that are alive.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use arc_swap::ArcSwap;

use super::connection::Connection;
use super::slots::Freed;

/// The connections of one channel.
#[derive(Debug, Default)]
pub(super) struct Pool {
    /// For new calls, in the order they were opened. The first with a free slot is used, so that those which a burst
    /// of calls needed become idle after it.
    open: ArcSwap<Vec<Arc<Connection>>>,
    /// Those that finish their calls, too.
    live: Mutex<Vec<Weak<Connection>>>,
    freed: Arc<Freed>,
}

impl Pool {
    pub(super) fn freed(&self) -> &Arc<Freed> {
        &self.freed
    }

    /// Makes a connection known to [`Self::live`], before any call may use it.
    pub(super) fn register(&self, connection: &Arc<Connection>) {
        let mut live = self.lock();
        live.retain(|each| each.strong_count() > 0);
        live.push(Arc::downgrade(connection));
    }

    /// Has new calls use it instead of those that it replaces, in one step: a call that knows of the new one must not get
    /// to an old one.
    pub(super) fn install(
        &self,
        connection: &Arc<Connection>,
        replaces: impl Fn(&Connection) -> bool,
    ) {
        let before = self.open.rcu(|open| {
            let stay = open.iter().filter(|each| !replaces(each)).cloned();
            stay.chain([Arc::clone(connection)]).collect::<Vec<_>>()
        });
        for replaced in before.iter().filter(|each| replaces(each)) {
            replaced.retire();
        }
        self.freed.tell_all();
    }

    /// Gives this connection no more calls; whether new calls used it until now. It ends with its last call.
    pub(super) fn retire(&self, connection: &Arc<Connection>) -> bool {
        connection.retire();
        let before = self.open.rcu(|open| {
            let others = open.iter().filter(|each| !Arc::ptr_eq(each, connection));
            others.cloned().collect::<Vec<_>>()
        });
        // Those that wait for a slot learn that none will come from there.
        self.freed.tell_all();
        before.iter().any(|each| Arc::ptr_eq(each, connection))
    }

    /// Those that new calls may use.
    pub(super) fn usable(&self) -> Vec<Arc<Connection>> {
        let open = self.open.load();
        open.iter()
            .filter(|each| each.is_usable())
            .cloned()
            .collect()
    }

    /// The newest of those.
    pub(super) fn newest(&self) -> Option<Arc<Connection>> {
        let open = self.open.load();
        open.iter().rfind(|each| each.is_usable()).cloned()
    }

    /// A connection with a slot that was taken on it; those `after` come after the others.
    pub(super) fn take(&self, after: &[u64]) -> Option<Arc<Connection>> {
        let open = self.open.load();
        let first = |last: bool| {
            let group = open
                .iter()
                .filter(|each| after.contains(&each.id()) == last);
            let mut usable = group.filter(|each| each.is_usable());
            usable.find(|each| each.slots().take()).cloned()
        };
        first(false).or_else(|| first(true))
    }

    pub(super) fn live(&self) -> Vec<Arc<Connection>> {
        self.lock().iter().filter_map(Weak::upgrade).collect()
    }

    pub(super) fn find(&self, id: u64) -> Option<Arc<Connection>> {
        self.live().into_iter().find(|each| each.id() == id)
    }

    /// Lets go of all.
    pub(super) fn clear(&self) {
        for connection in self.usable() {
            self.retire(&connection);
        }
        self.open.store(Arc::default());
        self.freed.tell_all();
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Weak<Connection>>> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
