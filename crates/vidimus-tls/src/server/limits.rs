//! Bounds and time-outs. Everything that waits has an end, everything that comes from outside has a size.

use std::time::Duration;

/// What becomes of a connection whose peer's certificate, or one above it, expires while it is open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ExpiredPeers {
    /// It gets no further call and is asked to end; the calls that run may go on for [`Limits::expired_peer_grace`].
    #[default]
    Drain,
    /// It goes on.
    Ignore,
}

/// A server's bounds and time-outs.
#[derive(Clone, Debug)]
pub struct Limits {
    /// For a whole handshake, from accept to the last message; a PROXY header before it counts.
    pub handshake_timeout: Duration,
    /// Sockets that have not finished their handshake. One more drops the oldest: of those whose `ClientHello` has arrived or
    /// of those whose has not, whichever are more.
    pub max_handshakes: usize,
    /// The same for one source, so that one peer cannot take all places: an IPv4 address, or 64 bits of an IPv6 address.
    /// Behind a proxy it is the client's, by the PROXY header.
    pub max_handshakes_per_source: usize,
    /// Connections being served. One more is closed at once.
    pub max_connections: usize,
    /// For the first line of HTTP/2, or the first byte of HTTP/1.1, after the handshake. Streams of a server's own
    /// protocol have no such bound.
    pub preface_timeout: Duration,
    /// For the head of an HTTP/1.1 request, counted from the end of the one before: the time-out of a slow client and of
    /// an idle one.
    pub http1_header_timeout: Duration,
    /// When a connection on which nothing happens is asked to end: no call in flight and none begun, or no byte on a
    /// stream of a server's own protocol, for at least this long and at most twice as long. `None`: never.
    pub idle_timeout: Option<Duration>,
    /// Calls at the same time on one connection.
    pub max_concurrent_streams: u32,
    /// The header block of a call, in bytes as HTTP/2 counts them; for HTTP/1.1 its bytes, and at least 8192. How large a
    /// message may be is the service's to say: in tonic 4 MiB, in axum 2 MB, unless it is told otherwise.
    pub max_header_list_size: u32,
    /// How often an idle connection is pinged.
    pub keepalive_interval: Duration,
    /// How long the answer to a ping may take.
    pub keepalive_timeout: Duration,
    /// When a connection gets a GOAWAY for its age, give or take a tenth. `None`: never.
    pub max_connection_age: Option<Duration>,
    /// How long calls may go on after that. At least the longest deadline of a call, or it is cut.
    pub connection_age_grace: Duration,
    /// What becomes of connections whose peer's certificate expires; looked at every [`Limits::expiry_interval`].
    pub expired_peers: ExpiredPeers,
    /// How long calls may go on after that. At least the longest deadline of a call, or it is cut.
    pub expired_peer_grace: Duration,
    /// How often open connections are looked at for expired certificates.
    pub expiry_interval: Duration,
    /// How long calls may go on after the shutdown began.
    pub drain_timeout: Duration,
    /// How long a connection may go on whose peer is no longer trusted or allowed, counted from the change.
    pub withdrawal_grace: Duration,
}

/// The longest deadline of a call that this is made for: a disk's transfer, and some minutes more.
const LONGEST_CALL: Duration = Duration::from_secs(35 * 60);

impl Default for Limits {
    fn default() -> Self {
        Self {
            handshake_timeout: Duration::from_secs(10),
            max_handshakes: 1024,
            max_handshakes_per_source: 256,
            max_connections: 16_384,
            preface_timeout: Duration::from_secs(10),
            http1_header_timeout: Duration::from_secs(60),
            idle_timeout: Some(Duration::from_secs(3600)),
            max_concurrent_streams: 1024,
            max_header_list_size: 64 * 1024,
            keepalive_interval: Duration::from_secs(30),
            keepalive_timeout: Duration::from_secs(10),
            max_connection_age: None,
            connection_age_grace: LONGEST_CALL,
            expired_peers: ExpiredPeers::Drain,
            expired_peer_grace: LONGEST_CALL,
            expiry_interval: Duration::from_secs(5),
            drain_timeout: Duration::from_secs(30),
            withdrawal_grace: Duration::from_secs(4),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// T17. What the documents promise, and what a server has that sets nothing.
    #[test]
    fn the_defaults_are_what_is_documented() {
        let Limits {
            handshake_timeout,
            max_handshakes,
            max_handshakes_per_source,
            max_connections,
            preface_timeout,
            http1_header_timeout,
            idle_timeout,
            max_concurrent_streams,
            max_header_list_size,
            keepalive_interval,
            keepalive_timeout,
            max_connection_age,
            connection_age_grace,
            expired_peers,
            expired_peer_grace,
            expiry_interval,
            drain_timeout,
            withdrawal_grace,
        } = Limits::default();
        let times = [
            handshake_timeout,
            preface_timeout,
            http1_header_timeout,
            keepalive_interval,
            keepalive_timeout,
            connection_age_grace,
            expired_peer_grace,
            expiry_interval,
            drain_timeout,
            withdrawal_grace,
        ];
        let seconds = times.map(|time| time.as_secs());
        assert_eq!(seconds, [10, 10, 60, 30, 10, 2100, 2100, 5, 30, 4]);
        assert_eq!(idle_timeout, Some(Duration::from_secs(3600)));
        assert_eq!(max_connection_age, None);
        assert_eq!(expired_peers, ExpiredPeers::Drain);
        assert_eq!((max_handshakes, max_handshakes_per_source), (1024, 256));
        assert_eq!(max_connections, 16_384);
        assert_eq!(
            (max_concurrent_streams, max_header_list_size),
            (1024, 65_536)
        );
    }
}
