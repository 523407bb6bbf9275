//! Ends connections that nobody calls on.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll},
    time::{Duration, Instant},
};

use http::Request;
use tokio_util::sync::CancellationToken;
use tower::Service;
use vidimus_tls::server::{ConnectionId, Server};

const LOOKS_PER_PERIOD: u32 = 8;

/// When each connection was last called on. Clones share it.
#[derive(Clone, Debug, Default)]
pub(super) struct Activity(Arc<Mutex<HashMap<ConnectionId, Instant>>>);

/// A service that notes the time of each call.
#[derive(Clone, Debug)]
pub(super) struct Noting<S> {
    pub(super) inner: S,
    pub(super) activity: Activity,
}

impl<S, Q> Service<Request<Q>> for Noting<S>
where
    S: Service<Request<Q>>,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = S::Future;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<Q>) -> S::Future {
        if let Some(id) = request.extensions().get::<ConnectionId>() {
            self.activity.note(*id);
        }
        self.inner.call(request)
    }
}

impl Activity {
    fn note(&self, id: ConnectionId) {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(id, Instant::now());
    }

    /// Looks at the server's connections until the shutdown, and ends with a GOAWAY those that
    /// have had no call in flight for `limit`.
    pub(super) async fn reap(self, server: Server, limit: Duration, shutdown: CancellationToken) {
        let mut ticks = tokio::time::interval((limit / LOOKS_PER_PERIOD).max(MIN_TICK));
        loop {
            tokio::select! {
                () = shutdown.cancelled() => return,
                _ = ticks.tick() => {}
            }
            let connections = server.connections();
            let now = Instant::now();
            let idle = {
                let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
                let mut next = HashMap::with_capacity(connections.len());
                let mut idle = Vec::new();
                for connection in &connections {
                    let busy = connection.streams > 0;
                    let last = if busy {
                        now
                    } else {
                        seen.remove(&connection.id).unwrap_or(now)
                    };
                    next.insert(connection.id, last);
                    if now.duration_since(last) >= limit && !connection.draining {
                        idle.push(connection.id);
                    }
                }
                *seen = next;
                idle
            };
            if !idle.is_empty() {
                let ended = server.close_where(|one| idle.contains(&one.id), GRACE);
                tracing::debug!(ended, "idle connections are told to end");
            }
        }
    }
}

const MIN_TICK: Duration = Duration::from_millis(10);
/// A call that came in the same moment still finishes.
const GRACE: Duration = Duration::from_secs(35 * 60);
