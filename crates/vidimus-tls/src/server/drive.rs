//! HTTP on one connection until it ends.

use std::fmt::Display;
use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use http::{Request, Response};
use hyper::body::Incoming;
use hyper::server::conn::http2;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::task::unconstrained;
use tokio_util::task::TaskTracker;
use tracing::Instrument as _;

use super::connection::{Serve, Shared};
use super::ending::{Ending, Step};
use super::gather::{TurnEnd, gathering};
use super::listening::Listening;
use super::registry::Entry;
use super::service::PeerService;
use super::{BoxError, Limits};
use crate::config::{Protocol, Protocols};

/// The least that hyper takes as a bound on its buffer.
const MIN_HEADER_BUFFER: u32 = 8192;

/// Serves connections with an HTTP service.
#[derive(Clone)]
pub(super) struct Http<S>(pub(super) S);

impl<S, B> Serve for Http<S>
where
    S: tower::Service<Request<Incoming>, Response = Response<B>> + Clone + Send + 'static,
    S::Future: Send,
    S::Error: Into<BoxError>,
    B: http_body::Body<Data = Bytes> + Default + Send + 'static,
    B::Error: Into<BoxError>,
{
    async fn serve<IO>(
        self,
        shared: &Shared,
        entry: &Arc<Entry>,
        io: IO,
        protocol: Option<Protocol>,
    ) where
        IO: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let spoke = Arc::new(AtomicBool::new(false));
        let (io, turn_end) = gathering(Listening::new(io, Arc::clone(&spoke)));
        let io = TokioIo::new(io);
        let limits = &shared.server.limits;
        let executor = CallExecutor(shared.calls.clone());
        let service = PeerService::new(self.0, Arc::clone(&shared.server), Arc::clone(entry));
        let ending = Ending::new(entry, shared, Some(&spoke));
        let both = shared.server.protocols == Protocols::H2AndHttp1;
        if both && protocol != Some(Protocol::Http2) {
            let builder = either(executor, limits, protocol);
            let connection = builder.serve_connection(io, service);
            drive(
                connection,
                auto::Connection::graceful_shutdown,
                &turn_end,
                ending,
                entry,
            )
            .await;
        } else {
            let connection = http2_alone(executor, limits).serve_connection(io, service);
            drive(
                connection,
                http2::Connection::graceful_shutdown,
                &turn_end,
                ending,
                entry,
            )
            .await;
        }
    }
}

fn http2_alone(executor: CallExecutor, limits: &Limits) -> http2::Builder<CallExecutor> {
    let mut builder = http2::Builder::new(executor);
    builder
        .timer(TokioTimer::new())
        .keep_alive_interval(Some(limits.keepalive_interval))
        .keep_alive_timeout(limits.keepalive_timeout)
        .max_concurrent_streams(limits.max_concurrent_streams)
        .max_header_list_size(limits.max_header_list_size);
    builder
}

/// HTTP/1.1 if that was agreed on, or else what the client begins with: without TLS nothing is agreed on beforehand.
///
/// HTTP/1.1 has no upgrades: an upgraded connection would go on where nobody can end it.
fn either(
    executor: CallExecutor,
    limits: &Limits,
    protocol: Option<Protocol>,
) -> auto::Builder<CallExecutor> {
    let mut builder = auto::Builder::new(executor);
    let header_buffer = limits.max_header_list_size.max(MIN_HEADER_BUFFER);
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.http1_header_timeout)
        .max_buf_size(usize::try_from(header_buffer).unwrap_or(usize::MAX));
    builder
        .http2()
        .timer(TokioTimer::new())
        .keep_alive_interval(Some(limits.keepalive_interval))
        .keep_alive_timeout(limits.keepalive_timeout)
        .max_concurrent_streams(limits.max_concurrent_streams)
        .max_header_list_size(limits.max_header_list_size);
    match protocol {
        Some(Protocol::Http1) => builder.http1_only(),
        Some(Protocol::Http2) | None => builder,
    }
}

/// Runs calls: one whose answer is ready at once right here, any other on a task that the server waits for.
///
/// Starting a task wakes another thread, which at many calls a second costs more than the calls do. So a call is tried
/// once beforehand, and the task tries again if it has to wait. A handler that computes for long before its first wait
/// holds up the others of its connection, as it holds up a thread anyway.
#[derive(Clone, Debug)]
struct CallExecutor(TaskTracker);

impl<F> hyper::rt::Executor<F> for CallExecutor
where
    F: Future<Output = ()> + Send + 'static,
{
    fn execute(&self, call: F) {
        let mut call = Box::pin(call);
        // Nobody has to be woken: the task asks anew.
        let mut nobody = Context::from_waker(Waker::noop());
        let tried = catch_unwind(AssertUnwindSafe(|| call.as_mut().poll(&mut nobody)));
        // A panic has been reported by its hook and ends its call alone, as it would on a task.
        if let Ok(Poll::Pending) = tried {
            // Within the connection's span, so that what a handler logs says whose call it is.
            self.0.spawn(call.in_current_span());
        }
    }
}

async fn drive<C, E, IO>(
    connection: C,
    shut_down: fn(Pin<&mut C>),
    turn_end: &TurnEnd<IO>,
    mut ending: Ending<'_>,
    entry: &Entry,
) where
    C: Future<Output = Result<(), E>>,
    E: Display,
    IO: AsyncWrite + Unpin,
{
    let mut connection = pin!(connection);
    loop {
        let turn = poll_fn(|context| {
            let polled = connection.as_mut().poll(context);
            let polled = polled.map_err(|error| error.to_string());
            match turn_end.flush(context) {
                Err(error) if polled.is_pending() => Poll::Ready(Err(error.to_string())),
                _ => polled,
            }
        });
        tokio::select! {
            // The connection first: the other is rare, and seldom urgent.
            biased;
            ended = turn => {
                if let Err(error) = ended {
                    tracing::debug!(connection = %entry.id, remote = entry.remote, error, "connection ended with an error");
                }
                return;
            }
            // Outside the task's budget: a peer that keeps the connection busy uses all of it up at every turn, and the end
            // would never get one.
            step = unconstrained(ending.next()) => match step {
                Step::Drain => shut_down(connection.as_mut()),
                Step::Cut => return,
            }
        }
    }
}
