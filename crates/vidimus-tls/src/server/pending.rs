//! Sockets that have not sent a `ClientHello` yet: bounded, and the oldest goes first.
//!
//! A peer that connects and stays silent costs a socket. If a bound simply refused newcomers, a handful of silent peers
//! would keep everybody out; dropping the oldest silent one keeps the door open.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use tokio_util::sync::CancellationToken;

#[derive(Debug)]
pub(super) struct Pending {
    max: usize,
    waiting: Mutex<Waiting>,
}

#[derive(Debug, Default)]
struct Waiting {
    next: u64,
    sockets: VecDeque<(u64, CancellationToken)>,
}

impl Pending {
    pub(super) fn new(max: usize) -> Arc<Self> {
        Arc::new(Self {
            max: max.max(1),
            waiting: Mutex::default(),
        })
    }

    /// Registers a socket; its token is cancelled if it has to make room.
    pub(super) fn enter(self: &Arc<Self>) -> Waiter {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        if waiting.sockets.len() >= self.max
            && let Some((_, oldest)) = waiting.sockets.pop_front()
        {
            oldest.cancel();
        }
        let id = waiting.next;
        waiting.next = waiting.next.wrapping_add(1);
        let displaced = CancellationToken::new();
        waiting.sockets.push_back((id, displaced.clone()));
        Waiter {
            pending: Arc::clone(self),
            id,
            displaced,
        }
    }
}

/// One waiting socket; leaves the queue when dropped.
#[derive(Debug)]
pub(super) struct Waiter {
    pending: Arc<Pending>,
    id: u64,
    displaced: CancellationToken,
}

impl Waiter {
    /// Waits until this socket has to make room.
    pub(super) async fn displaced(&self) {
        self.displaced.cancelled().await;
    }
}

impl Drop for Waiter {
    fn drop(&mut self) {
        let mut waiting = self
            .pending
            .waiting
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        // Ids grow along the queue.
        if let Ok(index) = waiting
            .sockets
            .binary_search_by_key(&self.id, |(id, _)| *id)
        {
            waiting.sockets.remove(index);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// T17.
    #[test]
    fn the_oldest_silent_socket_makes_room() {
        let pending = Pending::new(2);
        let first = pending.enter();
        let second = pending.enter();
        assert!(!first.displaced.is_cancelled());
        let third = pending.enter();
        assert!(first.displaced.is_cancelled());
        assert!(!second.displaced.is_cancelled());
        drop(second);
        let fourth = pending.enter();
        assert!(!third.displaced.is_cancelled());
        assert!(!fourth.displaced.is_cancelled());
    }
}
