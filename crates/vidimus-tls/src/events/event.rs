//! The events themselves. What they carry is data: names and reasons as the log has them, never key material.

use std::time::SystemTime;

use serde::Serialize;

use crate::clock::serialize_time;
use crate::identity::Fingerprint;
use crate::server::ConnectionId;

/// Something that happened to a connection, to a call or to the material. `Channel…` is of the client side.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Event {
    /// A connection's peer is known and its requests are served.
    Accepted {
        /// The connection.
        connection: ConnectionId,
        /// The peer's address, or `unix`.
        remote: String,
        /// The peer's [`label`](crate::identity::PeerIdentity::label).
        peer: String,
        /// The SHA-256 of its certificate.
        fingerprint: Option<Fingerprint>,
        /// The root that the certificate was verified under.
        anchor: Option<Fingerprint>,
        /// The material generation of the handshake; 0 without TLS.
        generation: u64,
    },
    /// A call was refused before it reached its handler.
    CallRefused {
        /// The connection.
        connection: ConnectionId,
        /// The peer's address, or `unix`.
        remote: String,
        /// The peer's label.
        peer: String,
        /// `/package.Service/Method`, or an HTTP path.
        path: String,
        /// Why.
        reason: String,
    },
    /// A channel has a new connection.
    ChannelConnected {
        /// Where the channel connects to.
        target: String,
        /// The connection: the channel counts them from 1.
        connection: u64,
        /// The server's address.
        remote: String,
        /// The first name in the server's certificate; empty without TLS.
        peer: String,
        /// The SHA-256 of that certificate.
        fingerprint: Option<Fingerprint>,
        /// The root that it was verified under.
        anchor: Option<Fingerprint>,
        /// The material generation of the handshake; 0 without TLS.
        generation: u64,
    },
    /// A channel's connection gets no more calls, since its server's certificate, or one above it, has expired.
    ChannelExpired {
        /// Where the channel connects to.
        target: String,
        /// The connection.
        connection: u64,
        /// The server's address.
        remote: String,
    },
    /// A channel could not connect: nobody is there, either side refused the other's certificate, or it took too long.
    ChannelRefused {
        /// Where the channel connects to.
        target: String,
        /// Why.
        reason: String,
    },
    /// A channel's connection gets no more calls and is cut within the grace: its server is no longer trusted.
    ChannelWithdrawn {
        /// Where the channel connects to.
        target: String,
        /// The connection.
        connection: u64,
        /// The server's address.
        remote: String,
        /// Why.
        reason: String,
    },
    /// A connection had not ended at its deadline and was closed.
    ClosedHard {
        /// The connection.
        connection: ConnectionId,
        /// The peer's address, or `unix`.
        remote: String,
        /// The peer's label.
        peer: String,
        /// Calls that were cut.
        calls: usize,
    },
    /// A connection was asked to end and may finish its calls.
    Draining {
        /// The connection.
        connection: ConnectionId,
        /// The peer's address, or `unix`.
        remote: String,
        /// The peer's label.
        peer: String,
        /// Why.
        cause: DrainCause,
    },
    /// A handshake failed, or a local peer's user may not connect.
    HandshakeRefused {
        /// The peer's address, or `unix`.
        remote: String,
        /// A word for counting, of a fixed set.
        reason: &'static str,
        /// The whole reason.
        detail: String,
    },
    /// The certificate in use has expired: peers refuse it.
    LeafExpired {
        /// Its subject.
        subject: String,
        /// Its last instant.
        #[serde(serialize_with = "serialize_time")]
        not_after: SystemTime,
    },
    /// The certificate in use expires soon.
    LeafExpiring {
        /// Its subject.
        subject: String,
        /// Its last instant.
        #[serde(serialize_with = "serialize_time")]
        not_after: SystemTime,
    },
    /// New material failed its checks, or a revocation list of it is older than the one in use; the last good one stays.
    ReloadRefused {
        /// Which part.
        unit: Unit,
        /// The generation that stays in use.
        generation: u64,
        /// What is wrong.
        reason: String,
    },
    /// New material is in use.
    Reloaded {
        /// Which part.
        unit: Unit,
        /// The generation that is in use now.
        generation: u64,
    },
    /// A revocation list in use is past its nextUpdate: whom it is about is refused, unless that was set otherwise.
    RevocationListEnded {
        /// Whose list.
        issuer: String,
        /// Its number.
        number: Option<String>,
        /// Until when it counted.
        #[serde(serialize_with = "serialize_time")]
        next_update: SystemTime,
    },
    /// A revocation list in use ends soon.
    RevocationListEnding {
        /// Whose list.
        issuer: String,
        /// Its number.
        number: Option<String>,
        /// Until when it counts.
        #[serde(serialize_with = "serialize_time")]
        next_update: SystemTime,
    },
    /// A root in use has expired and verifies nobody any more.
    RootExpired {
        /// Its subject.
        subject: String,
        /// The SHA-256 of its DER.
        fingerprint: Fingerprint,
        /// Its last instant.
        #[serde(serialize_with = "serialize_time")]
        not_after: SystemTime,
    },
    /// A connection was closed before its handshake because there are too many.
    TurnedAway {
        /// The peer's address, or `unix`.
        remote: String,
    },
    /// A connection's peer is no longer trusted or allowed: new calls are refused, and it ends within the grace.
    Withdrawn {
        /// The connection.
        connection: ConnectionId,
        /// The peer's address, or `unix`.
        remote: String,
        /// The peer's label.
        peer: String,
        /// Why.
        reason: String,
    },
}

/// Which part of the material, or of the rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Unit {
    /// Certificate and key.
    Identity,
    /// Allow-list and rules per method.
    Policy,
    /// Roots and revocation lists.
    Trust,
}

impl Unit {
    /// For people.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Identity => "certificate and key",
            Self::Policy => "policy",
            Self::Trust => "roots",
        }
    }
}

/// Why a connection was asked to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum DrainCause {
    /// It reached its maximum age.
    Age,
    /// The program asked for it.
    Asked,
    /// The peer's certificate, or one above it, has expired.
    Expired,
    /// Nothing happened on it for too long.
    Idle,
    /// The server shuts down.
    Shutdown,
}
