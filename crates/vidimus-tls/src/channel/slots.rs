//! How many calls a connection may carry at once, and how many it carries.
//!
//! A server says how many streams it allows (`MAX_CONCURRENT_STREAMS`, RFC 9113 §6.5.2). h2 queues what goes beyond,
//! behind calls that may last for ever, and hyper stops taking requests meanwhile. So a call takes a slot before it is sent,
//! and one that finds none asks for another connection.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use tokio::sync::Notify;

/// What h2 is told to assume until the server's SETTINGS have arrived: a number that no server can say, so that the two can
/// be told apart. Nothing is sent before.
pub(super) const UNTOLD: usize = usize::MAX - 1;

/// Wakes calls that wait for a slot on any connection.
#[derive(Debug, Default)]
pub(super) struct Freed {
    waiting: AtomicUsize,
    notify: Notify,
}

impl Freed {
    /// Runs `take` until it gives a slot, each time that one may be free.
    pub(super) async fn wait<T>(&self, mut take: impl FnMut() -> Option<T>) -> T {
        let _waiting = Waiting::new(&self.waiting);
        loop {
            let mut notified = pin!(self.notify.notified());
            // Registered before the look: whoever frees a slot from here on knows of the wait.
            notified.as_mut().enable();
            if let Some(slot) = take() {
                return slot;
            }
            notified.await;
        }
    }

    /// Whether a call waits.
    pub(super) fn is_awaited(&self) -> bool {
        self.waiting.load(Ordering::SeqCst) > 0
    }

    /// Something has changed for the better; one that waits looks again.
    pub(super) fn tell(&self) {
        if self.is_awaited() {
            self.notify.notify_one();
        }
    }

    /// The same for all that wait.
    pub(super) fn tell_all(&self) {
        self.notify.notify_waiters();
    }
}

struct Waiting<'a>(&'a AtomicUsize);

impl<'a> Waiting<'a> {
    fn new(count: &'a AtomicUsize) -> Self {
        count.fetch_add(1, Ordering::SeqCst);
        Self(count)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// The slots of one connection.
#[derive(Debug)]
pub(super) struct Slots {
    limit: AtomicUsize,
    taken: AtomicUsize,
    calls: AtomicU64,
    freed: Arc<Freed>,
}

impl Slots {
    pub(super) fn new(freed: Arc<Freed>) -> Self {
        Self {
            limit: AtomicUsize::new(UNTOLD),
            taken: AtomicUsize::new(0),
            calls: AtomicU64::new(0),
            freed,
        }
    }

    /// Whether the server has said how many calls it allows, which it does in its first frame (RFC 9113 §3.4).
    pub(super) fn are_known(&self) -> bool {
        self.limit.load(Ordering::Acquire) != UNTOLD
    }

    /// The server's limit, told as often as one likes.
    pub(super) fn set_limit(&self, limit: usize) {
        if self.limit.load(Ordering::Relaxed) != limit {
            self.limit.store(limit, Ordering::SeqCst);
            self.freed.tell_all();
        }
    }

    pub(super) fn take(&self) -> bool {
        let limit = self.limit.load(Ordering::SeqCst);
        let taken = self
            .taken
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |taken| {
                taken.checked_add(1).filter(|more| *more <= limit)
            })
            .is_ok();
        if taken {
            self.calls.fetch_add(1, Ordering::Relaxed);
        }
        taken
    }

    pub(super) fn give_back(&self) {
        self.taken.fetch_sub(1, Ordering::SeqCst);
        self.freed.tell();
    }

    pub(super) fn are_full(&self) -> bool {
        self.taken() >= self.limit.load(Ordering::SeqCst)
    }

    pub(super) fn taken(&self) -> usize {
        self.taken.load(Ordering::SeqCst)
    }

    /// Calls that have had a slot so far.
    pub(super) fn calls(&self) -> u64 {
        self.calls.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slots(limit: usize) -> Slots {
        let slots = Slots::new(Arc::default());
        slots.set_limit(limit);
        slots
    }

    #[test]
    fn no_more_slots_are_given_than_the_server_allows() {
        let slots = slots(2);
        assert_eq!(
            [slots.take(), slots.take(), slots.take()],
            [true, true, false]
        );
        assert!(slots.are_full());
        slots.give_back();
        assert!(slots.take());
        // A server may lower its limit under what runs already.
        slots.set_limit(1);
        slots.give_back();
        assert!(!slots.take());
        slots.give_back();
        assert!(slots.take());
        assert_eq!((slots.taken(), slots.calls()), (1, 4));
    }

    #[tokio::test]
    async fn whoever_waits_gets_what_is_freed_and_what_is_raised() {
        for raise in [false, true] {
            let slots = slots(1);
            assert!(slots.take());
            let freed = Arc::clone(&slots.freed);
            let waiting = freed.wait(|| slots.take().then_some(()));
            let freeing = async {
                tokio::task::yield_now().await;
                if raise {
                    slots.set_limit(2);
                } else {
                    slots.give_back();
                }
            };
            tokio::join!(waiting, freeing);
        }
    }
}
