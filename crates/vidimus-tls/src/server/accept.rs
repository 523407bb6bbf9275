//! The accept loop of one listener, and its end.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};
use std::{future, io};

use tokio::sync::Semaphore;
use tokio::task::{JoinError, JoinSet};
use tokio::time::{sleep_until, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::backoff::Backoff;
use super::connection::{self, Serve, Shared};
use super::handshake::Handshaker;
use super::listener::{Arrival, Listener};
use super::log_limit::LogLimit;
use super::overseer::Overseer;
use super::pending::Pending;
use super::{Inner, Security};

/// Refused peers that are read at the same time, so that they see the alert.
const MAX_LINGERING: usize = 256;
/// What a task gets to notice that its connection is over.
const MOMENT: Duration = Duration::from_secs(1);

/// How a server's connections ended after its shutdown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Drained {
    /// Connections that were open when the shutdown began.
    pub open: usize,
    /// Those that had to be closed hard.
    pub cut: usize,
}

/// Why a server didn't serve.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// Peer credentials exist on UNIX sockets only.
    #[error("a server for local peers needs a UNIX socket, not a TCP listener")]
    LocalOverTcp,
    /// There is no HTTP to serve where no protocol is agreed on.
    #[error("a server without a protocol serves streams, not HTTP")]
    NoProtocol,
    /// The system gives no thread to judge connections on when what is trusted or allowed changes.
    #[error("start the thread that judges connections")]
    Thread(#[source] io::Error),
}

pub(super) async fn serve<S: Serve>(
    server: Arc<Inner>,
    listener: Listener,
    service: S,
    shutdown: CancellationToken,
) -> Result<Drained, ServeError> {
    if matches!(server.security, Security::Local(_)) && !listener.is_unix() {
        return Err(ServeError::LocalOverTcp);
    }
    // Before the first connection, so that it is judged by every change that comes after it.
    let overseer = Overseer::start(&server).map_err(ServeError::Thread)?;
    let shared = Arc::new(share(&server));
    tokio::select! {
        drained = accept_all(&shared, listener, service, shutdown) => Ok(drained),
        never = forget_replaced(&shared) => match never {},
        // Until the last connection is gone: those that may finish their calls are held to what changes meanwhile, too.
        never = overseer.run() => match never {},
    }
}

/// Accepts until the shutdown, and drains.
async fn accept_all<S: Serve>(
    shared: &Arc<Shared>,
    listener: Listener,
    service: S,
    shutdown: CancellationToken,
) -> Drained {
    let server = &shared.server;
    let mut connections = JoinSet::new();
    let mut backoff = Backoff::default();
    loop {
        tokio::select! {
            biased;
            () = shutdown.cancelled() => break,
            Some(ended) = connections.join_next(), if !connections.is_empty() => log_panic(ended),
            accepted = accept(&listener, backoff.until) => match accepted {
                Ok(arrival) => {
                    backoff = Backoff::default();
                    server.counters.accepted.add();
                    if server.registry.len() >= server.limits.max_connections {
                        turn_away(server, arrival.address);
                        continue;
                    }
                    let run = connection::run(Arc::clone(shared), arrival, service.clone());
                    connections.spawn(run);
                }
                Err(error) => backoff.after(&error, server),
            },
        }
    }
    drop(listener);
    drain(server, shared, connections).await
}

async fn forget_replaced(shared: &Shared) -> Infallible {
    match &shared.handshaker {
        Some(handshaker) => handshaker.forget_replaced().await,
        None => future::pending().await,
    }
}

fn share(server: &Arc<Inner>) -> Shared {
    let limits = &server.limits;
    let handshaker = match &server.security {
        Security::Mutual { material, clients } => Some(Handshaker::new(
            material.clone(),
            clients.clone(),
            server.protocols,
            server.clock.clone(),
        )),
        Security::Plaintext(_) | Security::Local(_) => None,
    };
    Shared {
        server: Arc::clone(server),
        handshaker,
        pending: Pending::new(limits.max_handshakes, limits.max_handshakes_per_source),
        lingering: Semaphore::new(MAX_LINGERING),
        failure_log: LogLimit::default(),
        calls: TaskTracker::new(),
        closing: CancellationToken::new(),
    }
}

async fn accept(listener: &Listener, until: Option<Instant>) -> io::Result<Arrival> {
    if let Some(until) = until {
        sleep_until(until.into()).await;
    }
    listener.accept().await
}

/// Counts and tells of a connection that is closed because there are too many.
pub(super) fn turn_away(server: &Inner, address: Option<SocketAddr>) {
    server.counters.turned_away.add();
    server.report_turned_away(address);
    if let Some(suppressed) = server.refusal_log.permit(Instant::now()) {
        tracing::warn!(
            max_connections = server.limits.max_connections,
            suppressed,
            "connection closed: there are too many"
        );
    }
}

/// Tells every connection to end and waits for it, up to the drain's time-out and a moment more.
async fn drain(server: &Inner, shared: &Shared, mut connections: JoinSet<()>) -> Drained {
    let open = server.registry.len();
    let cut_before = server.counters.cut.value();
    shared.closing.cancel();
    let longest = server.limits.drain_timeout.saturating_add(MOMENT);
    let ended = timeout(longest, async {
        while let Some(ended) = connections.join_next().await {
            log_panic(ended);
        }
    });
    if ended.await.is_err() {
        tracing::error!("connections did not end at their deadline; their tasks are aborted");
        connections.shutdown().await;
    }
    shared.calls.close();
    // Calls end with their connection; this is for the moment it takes them to notice.
    if timeout(MOMENT, shared.calls.wait()).await.is_err() {
        tracing::warn!("calls were still running when their connections had ended");
    }
    let cut = server.counters.cut.value().saturating_sub(cut_before);
    Drained {
        open,
        cut: usize::try_from(cut).unwrap_or(usize::MAX),
    }
}

fn log_panic(ended: Result<(), JoinError>) {
    if let Err(error) = ended
        && error.is_panic()
    {
        tracing::error!(error = %error, "a connection's task panicked");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::connection::refuse;
    use crate::server::failure::{Cause, Failure};
    use crate::server::socket::Socket;
    use crate::server::{LocalPeers, Server};

    /// T17. Refused peers are read in a bounded number: one more is closed at once.
    #[tokio::test(start_paused = true)]
    async fn refused_peers_are_read_in_a_bounded_number() {
        let server = Server::builder(Security::Local(LocalPeers::owner())).build();
        let shared = share(&server.0);
        let seconds = async || {
            let (ours, _theirs) = tokio::net::UnixStream::pair().expect("a pair");
            let failure = Failure {
                cause: Cause::NotTls,
                socket: Some(Socket::Unix(ours)),
            };
            let began = tokio::time::Instant::now();
            refuse(&shared, failure, None).await;
            began.elapsed().as_secs()
        };
        let all = shared.lingering.try_acquire_many(256).expect("places");
        assert_eq!(shared.lingering.available_permits(), 0);
        assert_eq!(seconds().await, 0);
        drop(all);
        assert_eq!(seconds().await, 1, "the twin: there is room");
    }

    /// T17. Whatever else happens in the loop makes it wait anew, and must not put the end of the pause off.
    #[tokio::test]
    async fn a_pause_ends_although_the_loop_is_busy() {
        let server = Server::builder(Security::Local(LocalPeers::owner())).build();
        let tcp = tokio::net::TcpListener::bind(("127.0.0.1", 0))
            .await
            .expect("a port");
        let address = tcp.local_addr().expect("its address");
        let _client = tokio::net::TcpStream::connect(address)
            .await
            .expect("a connection");
        let listener = Listener::from(tcp);
        let mut backoff = Backoff::default();
        let too_many = io::Error::from_raw_os_error(rustix::io::Errno::MFILE.raw_os_error());
        backoff.after(&too_many, &server.0);
        let accepting = async {
            loop {
                tokio::select! {
                    biased;
                    accepted = accept(&listener, backoff.until) => break accepted,
                    () = tokio::task::yield_now() => {}
                }
            }
        };
        let accepted = timeout(Duration::from_secs(30), accepting).await;
        accepted.expect("the pause ends").expect("a connection");
        assert!(backoff.until.is_some_and(|until| Instant::now() >= until));
    }
}
