//! One connection from its acceptance to its end.

use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};
use std::{future, io};

use bytes::Bytes;
use http::{Request, Response};
use hyper::body::Incoming;
use hyper::server::conn::http2;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::Semaphore;
use tokio::time::{sleep, sleep_until};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::failure::Failure;
use super::handshake::{Accepted, Handshaker, prepare};
use super::linger::linger;
use super::log_limit::LogLimit;
use super::registry::{Entry, NewConnection, remote_text};
use super::service::PeerService;
use super::socket::Socket;
use super::{BoxError, Inner, LocalPeers, Security};
use crate::identity::{PeerIdentity, UnixPeer};
use crate::material::Trust;

/// What the connections of one listener share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) server: Arc<Inner>,
    /// `None` without TLS.
    pub(super) handshaker: Option<Handshaker>,
    /// Refused peers that are still being read.
    pub(super) lingering: Semaphore,
    pub(super) failure_log: LogLimit,
    /// The calls that hyper runs on tasks of their own.
    pub(super) calls: TaskTracker,
    /// Cancelled when the server shuts down.
    pub(super) closing: CancellationToken,
}

/// Handshakes if need be, registers the connection and serves it to its end.
pub(super) async fn run<S, B>(
    shared: Arc<Shared>,
    socket: Socket,
    address: Option<SocketAddr>,
    service: S,
) where
    S: tower::Service<Request<Incoming>, Response = Response<B>> + Clone + Send + 'static,
    S::Future: Send,
    S::Error: Into<BoxError>,
    B: http_body::Body<Data = Bytes> + Default + Send + 'static,
    B::Error: Into<BoxError>,
{
    if let Err(error) = prepare(&socket) {
        tracing::debug!(remote = remote_text(address), error = %error, "connection ended before it began");
        return;
    }
    let now = shared.server.clock.now();
    let new = |peer| NewConnection {
        peer,
        address,
        generation: 0,
        chain: None,
        since: now,
    };
    match (&shared.handshaker, &shared.server.security) {
        (Some(handshaker), _) => {
            let source = address.map(|address| address.ip());
            let outcome = tokio::select! {
                outcome = handshaker.accept(socket, source) => outcome,
                // Nothing has been promised to a peer in its handshake, and a silent one must not hold the shutdown up.
                () = shared.closing.cancelled() => return,
            };
            match outcome {
                Ok(accepted) => serve_accepted(&shared, accepted, address, service).await,
                Err(failure) => refuse(&shared, failure, address).await,
            }
        }
        (None, Security::Local(peers)) => {
            if let Some(peer) = admitted(&socket, peers) {
                let new = new(PeerIdentity::Unix(peer));
                serve(&shared, socket, new, None, service).await;
            }
        }
        (None, Security::Mutual { .. } | Security::Plaintext(_)) => {
            let new = new(PeerIdentity::Unauthenticated);
            serve(&shared, socket, new, None, service).await;
        }
    }
}

async fn serve_accepted<S, B>(
    shared: &Shared,
    accepted: Accepted,
    address: Option<SocketAddr>,
    service: S,
) where
    S: tower::Service<Request<Incoming>, Response = Response<B>> + Clone + Send + 'static,
    S::Future: Send,
    S::Error: Into<BoxError>,
    B: http_body::Body<Data = Bytes> + Default + Send + 'static,
    B::Error: Into<BoxError>,
{
    shared.server.counters.handshakes_ok.add();
    let new = NewConnection {
        peer: PeerIdentity::Certificate(Arc::clone(accepted.chain.identity())),
        address,
        generation: accepted.generation,
        chain: Some(accepted.chain),
        since: shared.server.clock.now(),
    };
    serve(shared, accepted.stream, new, Some(accepted.trust), service).await;
}

/// The peer of a UNIX socket, if it may connect.
fn admitted(socket: &Socket, peers: &LocalPeers) -> Option<UnixPeer> {
    let Socket::Unix(stream) = socket else {
        return None;
    };
    let peer = match stream.peer_cred() {
        Ok(credentials) => UnixPeer {
            uid: credentials.uid(),
            gid: credentials.gid(),
            pid: credentials.pid(),
        },
        Err(error) => {
            tracing::warn!(error = %error, "peer credentials of a UNIX socket are unavailable; connection refused");
            return None;
        }
    };
    let UnixPeer { uid, gid, pid } = peer;
    if peers.admit(&peer) {
        tracing::info!(audit = true, uid, gid, pid, "local connection accepted");
        Some(peer)
    } else {
        tracing::warn!(
            audit = true,
            uid,
            gid,
            pid,
            "local connection refused: its user may not connect"
        );
        None
    }
}

/// Counts and logs a failed handshake, and lets the peer read the alert.
async fn refuse(shared: &Shared, failure: Failure, address: Option<SocketAddr>) {
    let reason = failure.cause.reason();
    shared.server.counters.handshake_failed(reason);
    if let Some(suppressed) = shared.failure_log.permit(Instant::now()) {
        let source = std::error::Error::source(&failure.cause).map(ToString::to_string);
        tracing::warn!(
            audit = true,
            remote = remote_text(address),
            reason,
            error = %failure.cause,
            source = source.unwrap_or_default(),
            suppressed,
            "TLS handshake failed"
        );
    }
    if let Some(socket) = failure.socket
        && let Ok(_permit) = shared.lingering.try_acquire()
    {
        tokio::select! {
            () = linger(socket) => {}
            () = shared.closing.cancelled() => {}
        }
    }
}

/// Serves a connection whose peer is known.
async fn serve<IO, S, B>(
    shared: &Shared,
    io: IO,
    new: NewConnection,
    trust: Option<Arc<Trust>>,
    service: S,
) where
    IO: AsyncRead + AsyncWrite + Unpin,
    S: tower::Service<Request<Incoming>, Response = Response<B>> + Clone + Send + 'static,
    S::Future: Send,
    S::Error: Into<BoxError>,
    B: http_body::Body<Data = Bytes> + Default + Send + 'static,
    B::Error: Into<BoxError>,
{
    let server = &shared.server;
    let registration = server.registry.register(new);
    let entry = registration.entry();
    // Registered first and judged then: a sweep that ran in between has seen either the entry or the older trust.
    if let (Some(trust), Some(handshaker)) = (trust, &shared.handshaker) {
        let current = handshaker.material.current();
        if !Arc::ptr_eq(current.trust(), &trust)
            && !super::shrink::judge(server, entry, current.trust())
        {
            return;
        }
    }
    let spoke = Arc::new(AtomicBool::new(false));
    let io = TokioIo::new(Listening {
        io,
        spoke: Arc::clone(&spoke),
    });
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
                entry.drain(Instant::now().checked_add(until.age_grace));
            }
            () = until.closing.cancelled(), if !closing => {
                closing = true;
                entry.drain(Instant::now().checked_add(until.drain_timeout));
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

/// Notices whether the peer ever sent anything.
struct Listening<IO> {
    io: IO,
    spoke: Arc<AtomicBool>,
}

impl<IO: AsyncRead + Unpin> AsyncRead for Listening<IO> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let polled = Pin::new(&mut self.io).poll_read(cx, buf);
        if buf.filled().len() > before {
            self.spoke.store(true, Ordering::Relaxed);
        }
        polled
    }
}

impl<IO: AsyncWrite + Unpin> AsyncWrite for Listening<IO> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write(cx, buf)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(cx)
    }
}
