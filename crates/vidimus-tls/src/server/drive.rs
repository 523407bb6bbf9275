//! HTTP/2 on one connection, until something ends it: the peer, its age, the shutdown, or somebody who picked it out.

use std::future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{Request, Response};
use hyper::body::Incoming;
use hyper::server::conn::http2;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::{sleep, sleep_until};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::connection::Shared;
use super::listening::Listening;
use super::registry::Entry;
use super::service::PeerService;
use super::{BoxError, Inner};
use crate::events::DrainCause;
use crate::identity::PeerIdentity;

/// Serves a registered connection to its end.
pub(super) async fn serve_http2<IO, S, B>(shared: &Shared, entry: &Arc<Entry>, io: IO, service: S)
where
    IO: AsyncRead + AsyncWrite + Unpin,
    S: tower::Service<Request<Incoming>, Response = Response<B>> + Clone + Send + 'static,
    S::Future: Send,
    S::Error: Into<BoxError>,
    B: http_body::Body<Data = Bytes> + Default + Send + 'static,
    B::Error: Into<BoxError>,
{
    let spoke = Arc::new(AtomicBool::new(false));
    let io = TokioIo::new(Listening {
        io,
        spoke: Arc::clone(&spoke),
    });
    let server = &shared.server;
    let limits = &server.limits;
    let mut builder = http2::Builder::new(CallExecutor(shared.calls.clone()));
    builder
        .timer(TokioTimer::new())
        .keep_alive_interval(Some(limits.keepalive_interval))
        .keep_alive_timeout(limits.keepalive_timeout)
        .max_concurrent_streams(limits.max_concurrent_streams)
        .max_header_list_size(limits.max_header_list_size);
    let service = PeerService::new(service, Arc::clone(server), Arc::clone(entry));
    let connection = builder.serve_connection(io, service);
    let until = Until::new(entry, shared, &spoke);
    drive(connection, until, entry, server).await;
}

/// Runs each call on a task that the server waits for.
#[derive(Clone, Debug)]
struct CallExecutor(TaskTracker);

impl<F> hyper::rt::Executor<F> for CallExecutor
where
    F: Future<Output = ()> + Send + 'static,
{
    fn execute(&self, call: F) {
        self.0.spawn(call);
    }
}

/// When a connection has to end.
struct Until<'a> {
    age: Option<Duration>,
    age_grace: Duration,
    preface: Duration,
    spoke: &'a AtomicBool,
    closing: &'a CancellationToken,
    drain_timeout: Duration,
}

impl<'a> Until<'a> {
    fn new(entry: &Entry, shared: &'a Shared, spoke: &'a AtomicBool) -> Self {
        let limits = &shared.server.limits;
        Self {
            age: limits.max_connection_age.map(with_jitter),
            age_grace: limits.connection_age_grace,
            preface: match entry.peer {
                // A person at a debugging tool on the machine itself may take their time.
                PeerIdentity::Unix(_) => Duration::from_secs(3600),
                PeerIdentity::Certificate(_) | PeerIdentity::Unauthenticated => {
                    limits.preface_timeout
                }
            },
            spoke,
            closing: &shared.closing,
            drain_timeout: limits.drain_timeout,
        }
    }
}

async fn drive<IO, S, B>(
    connection: http2::Connection<TokioIo<Listening<IO>>, PeerService<S>, CallExecutor>,
    until: Until<'_>,
    entry: &Entry,
    server: &Inner,
) where
    IO: AsyncRead + AsyncWrite + Unpin,
    S: tower::Service<Request<Incoming>, Response = Response<B>> + Clone + Send + 'static,
    S::Future: Send,
    S::Error: Into<BoxError>,
    B: http_body::Body<Data = Bytes> + Default + Send + 'static,
    B::Error: Into<BoxError>,
{
    let mut connection = pin!(connection);
    let mut control = entry.control();
    let mut preface = pin!(sleep(until.preface));
    let mut listening = true;
    let mut age = pin!(optional_sleep(until.age));
    let (mut draining, mut aged, mut closing) = (false, false, false);
    loop {
        let told = *control.borrow_and_update();
        if told.drain && !draining {
            draining = true;
            connection.as_mut().graceful_shutdown();
        }
        tokio::select! {
            // The connection first: the others are rare, and seldom urgent.
            biased;
            ended = connection.as_mut() => {
                if let Err(error) = ended {
                    tracing::debug!(connection = %entry.id, remote = entry.remote, error = %error, "connection ended with an error");
                }
                return;
            }
            // The sender is in the entry, which outlives this loop.
            _ = control.changed() => {}
            () = &mut age, if !aged => {
                aged = true;
                let deadline = Instant::now().checked_add(until.age_grace);
                server.drain(entry, DrainCause::Age, deadline);
            }
            () = until.closing.cancelled(), if !closing => {
                closing = true;
                let deadline = Instant::now().checked_add(until.drain_timeout);
                server.drain(entry, DrainCause::Shutdown, deadline);
            }
            () = &mut preface, if listening => {
                listening = false;
                if !until.spoke.load(Ordering::Relaxed) {
                    tracing::debug!(connection = %entry.id, remote = entry.remote, "connection closed: it sent nothing after its handshake");
                    return;
                }
            }
            () = at(told.deadline) => {
                server.counters.cut.add();
                server.report_closed_hard(entry);
                tracing::info!(connection = %entry.id, remote = entry.remote, "connection closed hard at its deadline");
                return;
            }
        }
    }
}

async fn optional_sleep(duration: Option<Duration>) {
    match duration {
        Some(duration) => sleep(duration).await,
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
