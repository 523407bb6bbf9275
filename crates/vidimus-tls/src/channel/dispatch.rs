//! The way into a connection.
//!
//! hyper queues requests in a channel. When the connection stops taking them, what is in the queue comes back to its
//! callers; but a request that another thread is just putting there holds up all that came after it, until the last sender
//! is gone. So no sender is kept beyond the end: calls take a copy for the moment of sending, and the connection lets go of
//! its own when hyper is done.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use hyper::client::conn::http2::SendRequest;

use super::body::CallBody;

type Slot = Mutex<Option<SendRequest<CallBody>>>;

/// Sends requests on one connection while it takes them.
#[derive(Debug)]
pub(super) struct Dispatch(Arc<Slot>);

impl Dispatch {
    pub(super) fn new(sender: SendRequest<CallBody>) -> Self {
        Self(Arc::new(Mutex::new(Some(sender))))
    }

    /// For sending one request; `None` if the connection takes no more. Must not be kept while waiting for the answer.
    pub(super) fn sender(&self) -> Option<SendRequest<CallBody>> {
        lock(&self.0)
            .as_ref()
            .filter(|sender| !sender.is_closed())
            .cloned()
    }

    pub(super) fn is_open(&self) -> bool {
        lock(&self.0)
            .as_ref()
            .is_some_and(|sender| !sender.is_closed())
    }

    /// To be called when hyper is done with the connection's requests.
    pub(super) fn closer(&self) -> Closer {
        Closer(Arc::downgrade(&self.0))
    }
}

/// Lets go of a connection's sender, without keeping it alive before.
pub(super) struct Closer(Weak<Slot>);

impl Closer {
    pub(super) fn close(self) {
        if let Some(slot) = self.0.upgrade() {
            // Dropped outside the lock: requests that come back wake their callers.
            let sender = lock(&slot).take();
            drop(sender);
        }
    }
}

fn lock(slot: &Slot) -> MutexGuard<'_, Option<SendRequest<CallBody>>> {
    slot.lock().unwrap_or_else(PoisonError::into_inner)
}
