//! A small bounded HTTP/1.1 server for pages about the process itself.

use std::{
    any::Any,
    io,
    net::SocketAddr,
    sync::Arc,
    time::{Duration, Instant},
};

pub use axum::Router;
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    service::TowerToHyperService,
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpListener, UnixListener, unix::UCred},
    sync::Semaphore,
    task::JoinSet,
};
use tokio_util::sync::CancellationToken;

const CONNECTIONS: usize = 128;
const HEADER_TIMEOUT: Duration = Duration::from_secs(10);
const DRAIN: Duration = Duration::from_secs(5);
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// The least time between two lines about refused users.
const REFUSAL_PAUSE: Duration = Duration::from_secs(1);

/// Where the pages are served.
#[derive(Debug)]
pub enum Listener {
    /// An address of the machine.
    Tcp(TcpListener),
    /// A socket in the file system.
    Unix(UnixSocket),
}

/// A bound UNIX socket.
#[derive(Debug)]
pub struct UnixSocket {
    // Dropped first: whoever removes a socket's name has to know that it is still this socket's.
    _name: Box<dyn Any + Send + Sync>,
    listener: UnixListener,
    refusals: Refusals,
}

/// Refused users, of whom not everyone is logged: connecting costs a stranger nothing.
#[derive(Debug, Default)]
struct Refusals {
    logged: Option<Instant>,
    unlogged: u64,
}

/// The TCP address could not be bound.
#[derive(Debug, thiserror::Error)]
#[error("listen on {address}")]
pub struct BindError {
    /// The address.
    pub address: SocketAddr,
    /// The cause.
    #[source]
    pub source: io::Error,
}

impl Listener {
    /// Binds a TCP address; port 0 takes a free one.
    ///
    /// # Errors
    ///
    /// The address is not this machine's, or taken.
    pub async fn tcp(address: SocketAddr) -> Result<Self, BindError> {
        let bound = TcpListener::bind(address).await;
        let listener = bound.map_err(|source| BindError { address, source })?;
        Ok(Self::Tcp(listener))
    }

    /// A bound UNIX socket; `name` is dropped when nobody listens any more, and may remove the socket's name then. Only the
    /// user that this process runs as, and root, are answered.
    pub fn unix(listener: UnixListener, name: impl Any + Send + Sync) -> Self {
        Self::Unix(UnixSocket {
            _name: Box::new(name),
            listener,
            refusals: Refusals::default(),
        })
    }

    /// The bound TCP address, if it is one.
    #[must_use]
    pub fn tcp_address(&self) -> Option<SocketAddr> {
        match self {
            Self::Tcp(listener) => listener.local_addr().ok(),
            Self::Unix(_) => None,
        }
    }
}

/// Serves `routes` until the token is cancelled, then lets the requests under way finish for a few
/// seconds. Bounded: 128 connections, 10 seconds for a request's header.
pub async fn serve(mut listener: Listener, routes: Router, shutdown: CancellationToken) {
    let permits = Arc::new(Semaphore::new(CONNECTIONS));
    let mut connections = JoinSet::new();
    loop {
        let permit = Arc::clone(&permits).acquire_owned();
        let accepted = async {
            let permit = permit.await;
            (accept(&mut listener).await, permit)
        };
        tokio::select! {
            biased;
            () = shutdown.cancelled() => break,
            Some(_) = connections.join_next() => {}
            (accepted, permit) = accepted => match accepted {
                Ok(stream) => {
                    let routes = routes.clone();
                    let shutdown = shutdown.clone();
                    connections.spawn(async move {
                        connection(stream, routes, shutdown).await;
                        drop(permit);
                    });
                }
                Err(error) => {
                    // out of descriptors, for instance: accepting again at once would only spin
                    tracing::warn!(%error, "accept failed");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }
    drop(listener);
    let finished = async { while connections.join_next().await.is_some() {} };
    if tokio::time::timeout(DRAIN, finished).await.is_err() {
        tracing::warn!("requests were still under way after the drain and are dropped");
    }
}

trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

async fn accept(listener: &mut Listener) -> io::Result<Box<dyn Stream>> {
    match listener {
        Listener::Tcp(listener) => {
            let (stream, _) = listener.accept().await?;
            stream.set_nodelay(true)?;
            Ok(Box::new(stream))
        }
        Listener::Unix(socket) => loop {
            let (stream, _) = socket.listener.accept().await?;
            let peer = stream.peer_cred()?;
            if is_owner_or_root(&peer) {
                return Ok(Box::new(stream));
            }
            if let Some(unlogged) = socket.refusals.count(Instant::now()) {
                tracing::warn!(
                    uid = peer.uid(),
                    gid = peer.gid(),
                    pid = peer.pid(),
                    unlogged,
                    "refused another user on a socket of status pages"
                );
            }
        },
    }
}

/// Whether the kernel says that a trusted user connected: the socket's mode may have been changed by hand.
///
/// A user that has no number in this process's user namespace is 65534 here (`/proc/sys/kernel/overflowuid`), and a process
/// that runs as 65534 itself can't tell that one from its own: it has the socket's folder alone to keep others out.
fn is_owner_or_root(peer: &UCred) -> bool {
    peer.uid() == 0 || peer.uid() == rustix::process::geteuid().as_raw()
}

impl Refusals {
    /// Counts one more; if it is to be logged, with the number of those that were not since the last line.
    fn count(&mut self, now: Instant) -> Option<u64> {
        let is_due = self
            .logged
            .is_none_or(|logged| now.saturating_duration_since(logged) >= REFUSAL_PAUSE);
        if is_due {
            self.logged = Some(now);
            return Some(std::mem::take(&mut self.unlogged));
        }
        self.unlogged = self.unlogged.saturating_add(1);
        None
    }
}

async fn connection(stream: Box<dyn Stream>, routes: Router, shutdown: CancellationToken) {
    let mut builder = hyper::server::conn::http1::Builder::new();
    builder
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_TIMEOUT);
    let serving = builder.serve_connection(TokioIo::new(stream), TowerToHyperService::new(routes));
    tokio::pin!(serving);
    let result = tokio::select! {
        result = &mut serving => result,
        () = shutdown.cancelled() => {
            serving.as_mut().graceful_shutdown();
            serving.await
        }
    };
    if let Err(error) = result {
        tracing::debug!(error = %crate::telemetry::chain(&error), "connection ended");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// K15. Whoever floods the socket gets one line a second.
    #[test]
    fn a_flood_of_refused_users_is_logged_once_a_second_and_counted() {
        let mut refusals = Refusals::default();
        let start = Instant::now();
        assert_eq!(refusals.count(start), Some(0));
        assert!((0..99).all(|_| refusals.count(start).is_none()));
        let later = start.checked_add(REFUSAL_PAUSE).unwrap();
        assert_eq!(refusals.count(later), Some(99));
        assert_eq!(refusals.count(later), None);
    }
}
