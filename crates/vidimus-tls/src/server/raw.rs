//! Connections handed over as streams, for servers that speak something else than HTTP or serve it themselves.

use std::fmt;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _, ReadBuf};
use tokio::task::unconstrained;
use tokio::time::timeout;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::connection::{Serve, Shared};
use super::ending::{Ending, Step};
use super::registry::{ConnectionId, Entry};
use super::verdict::report;
use crate::config::Protocol;
use crate::identity::PeerIdentity;

/// How long a peer's socket may take the goodbye of a connection that ends.
const GOODBYE: Duration = Duration::from_millis(500);

/// A connection whose peer is known.
#[derive(Debug)]
#[non_exhaustive]
pub struct Connection {
    /// What the peer sends, and what is sent to it.
    pub stream: Stream,
    /// Who is at the other end.
    pub peer: PeerIdentity,
    /// Unique within its server.
    pub id: ConnectionId,
    /// The client's address; `None` for a UNIX socket.
    pub remote: Option<SocketAddr>,
    /// What ALPN agreed on, if anything.
    pub protocol: Option<Protocol>,
    /// Cancelled when the connection has to end: finish what is under way and drop the stream. Whoever doesn't has the
    /// stream closed under them at a deadline, earlier or later after its cause: see [`super::Limits`].
    pub ending: CancellationToken,
}

/// The bytes of one connection. When it is dropped, the peer is told so (`close_notify`) and the connection is closed.
///
/// From the hard end of its connection on every operation fails with [`io::ErrorKind::ConnectionAborted`], wherever the
/// stream is by then.
pub struct Stream {
    cell: Arc<Cell>,
    _gone: DropGuard,
}

trait ReadWrite: AsyncRead + AsyncWrite + Send + Unpin {}

impl<IO: AsyncRead + AsyncWrite + Send + Unpin> ReadWrite for IO {}

/// Shared with the connection's own task, which can take the socket away.
struct Cell {
    state: Mutex<State>,
    entry: Arc<Entry>,
}

struct State {
    /// `None` once the connection has ended.
    io: Option<Box<dyn ReadWrite>>,
    reader: Option<Waker>,
    writer: Option<Waker>,
}

impl Cell {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the socket away and wakes whoever waits for it.
    fn take(&self) -> Option<Box<dyn ReadWrite>> {
        let mut state = self.lock();
        let wakers = [state.reader.take(), state.writer.take()];
        let io = state.io.take();
        drop(state);
        wakers.into_iter().flatten().for_each(Waker::wake);
        io
    }

    fn read<T>(
        &self,
        cx: &Context<'_>,
        operation: impl FnOnce(Pin<&mut dyn ReadWrite>) -> Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        self.with(operation, |state| state.reader = Some(cx.waker().clone()))
    }

    fn write<T>(
        &self,
        cx: &Context<'_>,
        operation: impl FnOnce(Pin<&mut dyn ReadWrite>) -> Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        self.with(operation, |state| state.writer = Some(cx.waker().clone()))
    }

    fn with<T>(
        &self,
        operation: impl FnOnce(Pin<&mut dyn ReadWrite>) -> Poll<io::Result<T>>,
        remember: impl FnOnce(&mut State),
    ) -> Poll<io::Result<T>> {
        let mut state = self.lock();
        let Some(io) = state.io.as_mut() else {
            return Poll::Ready(Err(io::Error::new(
                io::ErrorKind::ConnectionAborted,
                "the connection has been ended",
            )));
        };
        let polled = operation(Pin::new(&mut **io));
        if polled.is_pending() {
            remember(&mut state);
        } else {
            self.entry.activity.fetch_add(1, Ordering::Relaxed);
        }
        polled
    }
}

impl AsyncRead for Stream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let waiter = Context::from_waker(cx.waker());
        self.cell.read(&waiter, |io| io.poll_read(cx, buf))
    }
}

impl AsyncWrite for Stream {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        let waiter = Context::from_waker(cx.waker());
        self.cell.write(&waiter, |io| io.poll_write(cx, buf))
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let waiter = Context::from_waker(cx.waker());
        self.cell.write(&waiter, |io| io.poll_flush(cx))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let waiter = Context::from_waker(cx.waker());
        self.cell.write(&waiter, |io| io.poll_shutdown(cx))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let waiter = Context::from_waker(cx.waker());
        self.cell
            .write(&waiter, |io| io.poll_write_vectored(cx, bufs))
    }

    fn is_write_vectored(&self) -> bool {
        let state = self.cell.lock();
        state.io.as_ref().is_some_and(AsyncWrite::is_write_vectored)
    }
}

impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stream").finish_non_exhaustive()
    }
}

/// Serves connections by handing them to a function.
#[derive(Clone)]
pub(super) struct Raw<H>(pub(super) H);

impl<H, F> Serve for Raw<H>
where
    H: Fn(Connection) -> F + Clone + Send + Sync + 'static,
    F: Future<Output = ()> + Send,
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
        let verdict = entry.verdict(&shared.server);
        // There is no method here, so with rules per method nothing is permitted but what a rule for everything permits.
        if let Err(refusal) = verdict.permit("") {
            report(&shared.server, entry, refusal, "");
            if verdict.enforces(refusal) {
                let mut io = io;
                let _said = timeout(GOODBYE, io.shutdown()).await;
                return;
            }
        }
        let cell = Arc::new(Cell {
            state: Mutex::new(State {
                io: Some(Box::new(io)),
                reader: None,
                writer: None,
            }),
            entry: Arc::clone(entry),
        });
        let (gone, ending) = (CancellationToken::new(), CancellationToken::new());
        let connection = Connection {
            stream: Stream {
                cell: Arc::clone(&cell),
                _gone: gone.clone().drop_guard(),
            },
            peer: verdict.peer.clone(),
            id: entry.id,
            remote: entry.address,
            protocol,
            ending: ending.clone(),
        };
        let mut handled = pin!(async {
            (self.0)(connection).await;
            // A stream that was handed on is still a connection, and still to be ended.
            gone.cancelled().await;
        });
        let mut end = Ending::new(entry, shared, None);
        loop {
            tokio::select! {
                biased;
                () = handled.as_mut() => break,
                // Outside the task's budget: a handler that copies from a busy peer uses all of it up at every turn.
                step = unconstrained(end.next()) => match step {
                    Step::Drain => ending.cancel(),
                    Step::Cut => break,
                }
            }
        }
        if let Some(mut io) = cell.take() {
            // Whether the peer hears it or not, the socket is closed next.
            let _said = timeout(GOODBYE, io.shutdown()).await;
        }
    }
}
