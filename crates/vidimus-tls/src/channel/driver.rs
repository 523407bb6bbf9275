//! Everything that one connection has to do, as one future.
//!
//! hyper wants an executor to run a connection's parts on. Instead of a task for every call, they are all polled by the
//! connection's own: nothing is detached, and whoever drops the driver has dropped everything.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll};

use futures::StreamExt as _;
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use hyper::rt::Executor;

type Part = BoxFuture<'static, ()>;

/// Parts that were handed over since the driver looked last.
#[derive(Default)]
struct Inbox(Mutex<Vec<Part>>);

impl Inbox {
    fn take(&self) -> Vec<Part> {
        std::mem::take(&mut *self.lock())
    }

    fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Part>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Runs the parts of one connection; ready when none is left.
#[derive(Default)]
pub(super) struct Driver {
    parts: FuturesUnordered<Part>,
    inbox: Arc<Inbox>,
}

impl Driver {
    /// What hyper hands its parts to.
    pub(super) fn executor(&self) -> DriverExecutor {
        DriverExecutor(Arc::downgrade(&self.inbox))
    }

    pub(super) fn add(&self, part: impl Future<Output = ()> + Send + 'static) {
        self.parts.push(Box::pin(part));
    }
}

impl Future for Driver {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            let arrived = self.inbox.take();
            self.parts.extend(arrived);
            let progress = self.parts.poll_next_unpin(cx);
            // hyper hands parts over while its own are polled, so a look afterwards finds them without a waker.
            if matches!(progress, Poll::Ready(Some(()))) || !self.inbox.is_empty() {
                continue;
            }
            return progress.map(|_none_left| ());
        }
    }
}

/// The executor of one connection. Parts that come after the driver's end are dropped.
#[derive(Clone)]
pub(super) struct DriverExecutor(Weak<Inbox>);

impl<F: Future<Output = ()> + Send + 'static> Executor<F> for DriverExecutor {
    fn execute(&self, part: F) {
        if let Some(inbox) = self.0.upgrade() {
            inbox.lock().push(Box::pin(part));
        }
    }
}
