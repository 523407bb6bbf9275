//! One connection from its acceptance to its end.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::Semaphore;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::Instrument as _;

use super::accept::turn_away;
use super::failure::Failure;
use super::handshake::{Accepted, Handshaker, prepare};
use super::linger::linger;
use super::listener::Arrival;
#[cfg(feature = "proxy-protocol")]
use super::listener::proxy::identify;
use super::log_limit::LogLimit;
use super::pending::Pending;
#[cfg(feature = "proxy-protocol")]
use super::pending::Waiter;
use super::registry::{Entry, NewConnection, remote_text};
use super::shrink::judge;
use super::socket::Socket;
use super::{Inner, LocalPeers, Security};
use crate::config::Protocol;
use crate::identity::{PeerIdentity, UnixPeer};
use crate::material::{Trust, error_chain};

/// What the connections of one listener share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) server: Arc<Inner>,
    /// `None` without TLS.
    pub(super) handshaker: Option<Handshaker>,
    /// Sockets whose peer is not known yet.
    pub(super) pending: Arc<Pending>,
    /// Refused peers that are still being read.
    pub(super) lingering: Semaphore,
    pub(super) failure_log: LogLimit,
    /// The calls that hyper runs on tasks of their own.
    pub(super) calls: TaskTracker,
    /// Cancelled when the server shuts down.
    pub(super) closing: CancellationToken,
}

/// What is done with a connection once it is registered.
pub(super) trait Serve: Clone + Send + 'static {
    /// Serves it to its end; `protocol` is what ALPN agreed on.
    fn serve<IO>(
        self,
        shared: &Shared,
        entry: &Arc<Entry>,
        io: IO,
        protocol: Option<Protocol>,
    ) -> impl Future<Output = ()> + Send
    where
        IO: AsyncRead + AsyncWrite + Send + Unpin + 'static;
}

/// Handshakes if need be, registers the connection and serves it to its end.
pub(super) async fn run<S: Serve>(shared: Arc<Shared>, arrival: Arrival, service: S) {
    let deadline = after(shared.server.limits.handshake_timeout);
    let waiter = shared.pending.enter(arrival.source());
    #[cfg(feature = "proxy-protocol")]
    let Some(arrival) = identified(&shared, arrival, &waiter, deadline).await else {
        return;
    };
    let (socket, address) = (arrival.socket, arrival.address);
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
        policy: shared.server.policy.generation(),
        since: now,
    };
    match (&shared.handshaker, &shared.server.security) {
        (Some(handshaker), _) => {
            let span = tracing::debug_span!("handshake", remote = remote_text(address));
            let outcome = tokio::select! {
                outcome = handshaker.accept(socket, waiter, deadline).instrument(span.clone()) => outcome,
                // Nothing has been promised to a peer in its handshake, and a silent one must not hold the shutdown up.
                () = shared.closing.cancelled() => return,
            };
            match outcome {
                Ok(accepted) => serve_accepted(&shared, accepted, address, service).await,
                Err(failure) => refuse(&shared, failure, address).instrument(span).await,
            }
        }
        (None, Security::Local(peers)) => {
            drop(waiter);
            if let Some(peer) = admitted(&shared.server, &socket, peers) {
                let new = new(PeerIdentity::Unix(peer));
                serve(&shared, socket, new, None, service).await;
            }
        }
        (None, Security::Mutual { .. } | Security::Plaintext(_)) => {
            drop(waiter);
            let new = new(PeerIdentity::Unauthenticated);
            serve(&shared, socket, new, None, service).await;
        }
    }
}

/// The arrival with its client's address; `None` if it comes from a proxy that didn't say whose connection it is.
#[cfg(feature = "proxy-protocol")]
async fn identified(
    shared: &Shared,
    mut arrival: Arrival,
    waiter: &Waiter,
    deadline: Instant,
) -> Option<Arrival> {
    if !arrival.from_proxy {
        return Some(arrival);
    }
    let outcome = tokio::select! {
        outcome = identify(&mut arrival, waiter, deadline) => outcome,
        () = shared.closing.cancelled() => return None,
    };
    match outcome {
        Ok(()) => Some(arrival),
        Err(cause) => {
            let failure = Failure {
                cause,
                socket: None,
            };
            refuse(shared, failure, arrival.address).await;
            None
        }
    }
}

/// The moment in so much time; in a month if that is longer than time can be counted.
fn after(time: Duration) -> Instant {
    let now = Instant::now();
    now.checked_add(time)
        .unwrap_or_else(|| now + Duration::from_secs(30 * 24 * 3600))
}

async fn serve_accepted<S: Serve>(
    shared: &Shared,
    accepted: Accepted,
    address: Option<SocketAddr>,
    service: S,
) {
    shared.server.counters.handshakes_ok.add();
    let new = NewConnection {
        peer: PeerIdentity::Certificate(Arc::clone(accepted.chain.identity())),
        address,
        generation: accepted.generation,
        chain: Some(accepted.chain),
        policy: shared.server.policy.generation(),
        since: shared.server.clock.now(),
    };
    let tls = Some((accepted.trust, accepted.protocol));
    serve(shared, accepted.stream, new, tls, service).await;
}

/// The peer of a UNIX socket, if it may connect.
fn admitted(server: &Inner, socket: &Socket, peers: &LocalPeers) -> Option<UnixPeer> {
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
        server.report_local_refused(peer);
        tracing::warn!(
            audit = true,
            uid,
            gid,
            pid,
            "local connection refused: neither its user nor its group may connect"
        );
        None
    }
}

/// Counts and logs a failed handshake, and lets the peer read the alert.
pub(super) async fn refuse(shared: &Shared, failure: Failure, address: Option<SocketAddr>) {
    let reason = failure.cause.reason();
    shared.server.counters.handshake_failed(reason);
    shared
        .server
        .report_handshake_refused(address, &failure.cause);
    if let Some(suppressed) = shared.failure_log.permit(Instant::now().into_std()) {
        tracing::warn!(
            audit = true,
            remote = remote_text(address),
            reason,
            error = error_chain(&failure.cause),
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
async fn serve<IO, S>(
    shared: &Shared,
    io: IO,
    new: NewConnection,
    tls: Option<(Arc<Trust>, Option<Protocol>)>,
    service: S,
) where
    IO: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    S: Serve,
{
    let server = &shared.server;
    let address = new.address;
    let registration = server.registry.register(new);
    // At its acceptance there was room, but handshakes that were under way then may have taken it since.
    if server.registry.len() > server.limits.max_connections {
        turn_away(server, address);
        return;
    }
    let entry = registration.entry();
    // Registered first and judged then: a sweep that ran in between has seen either the entry or the older trust.
    if let (Some((trust, _)), Some(handshaker)) = (&tls, &shared.handshaker) {
        let current = handshaker.material.current();
        if !Arc::ptr_eq(current.trust(), trust)
            && !judge(server, entry, &current, server.withdrawal_deadline())
        {
            return;
        }
    }
    server.report_accepted(entry);
    let protocol = tls.and_then(|(_, protocol)| protocol);
    let span = tracing::debug_span!(
        "connection",
        id = %entry.id,
        remote = entry.remote,
        peer = entry.peer.label(),
        generation = entry.generation,
    );
    let serving = service.serve(shared, entry, io, protocol);
    serving.instrument(span).await;
}
