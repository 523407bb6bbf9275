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
use hyper::client::conn::http2::Connection;
use hyper::rt::Executor;
use hyper_util::rt::TokioIo;

use super::body::CallBody;
use super::dispatch::Closer;
use super::slots::Slots;
use super::wire::Wire;

type Part = BoxFuture<'static, ()>;

/// hyper's part that takes requests.
type Requests = Connection<TokioIo<Wire>, CallBody, DriverExecutor>;

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
pub(super) struct Driver {
    requests: Option<(Requests, Closer)>,
    parts: FuturesUnordered<Part>,
    inbox: Arc<Inbox>,
    slots: Arc<Slots>,
}

impl Driver {
    pub(super) fn new(slots: Arc<Slots>) -> Self {
        Self {
            requests: None,
            parts: FuturesUnordered::new(),
            inbox: Arc::default(),
            slots,
        }
    }

    /// What hyper hands its parts to.
    pub(super) fn executor(&self) -> DriverExecutor {
        DriverExecutor(Arc::downgrade(&self.inbox))
    }

    /// Runs this, too, and lets go of the connection's sender at its end.
    pub(super) fn take_requests(&mut self, requests: Requests, closer: Closer) {
        self.requests = Some((requests, closer));
    }

    fn poll_requests(&mut self, cx: &mut Context<'_>) {
        let Some((requests, _)) = &mut self.requests else {
            return;
        };
        let Poll::Ready(outcome) = Pin::new(requests).poll(cx) else {
            return;
        };
        if let Err(error) = outcome {
            tracing::debug!(error = %error, "connection ended");
        }
        if let Some((requests, closer)) = self.requests.take() {
            self.slots.set_limit(requests.current_max_send_streams());
            closer.close();
        }
    }

    fn poll_parts(&mut self, cx: &mut Context<'_>) -> Poll<()> {
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

impl Future for Driver {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        self.poll_requests(cx);
        let parts = self.poll_parts(cx);
        match &self.requests {
            // The parts may have read what the server's limit is now.
            Some((requests, _)) => {
                self.slots.set_limit(requests.current_max_send_streams());
                Poll::Pending
            }
            None => parts,
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
