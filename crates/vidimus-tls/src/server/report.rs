//! What a server reports to whoever listens to its events.

use std::net::SocketAddr;
use std::sync::atomic::Ordering;
use std::time::Instant;

use super::Inner;
use super::failure::Cause;
use super::registry::{Entry, remote_text};
use crate::events::{DrainCause, Event};
use crate::identity::{CertificateIdentity, PeerIdentity, UnixPeer};
use crate::material::error_chain;
use crate::policy::PolicyRefusal;

impl Inner {
    /// Asks a connection to end, and says so the first time.
    pub(super) fn drain(&self, entry: &Entry, cause: DrainCause, deadline: Option<Instant>) {
        if entry.drain(deadline) {
            self.events.emit(&self.clock, || Event::Draining {
                connection: entry.id,
                remote: entry.remote.clone(),
                peer: entry.peer.label(),
                cause,
            });
        }
    }

    /// When a connection ends whose peer is found to be no longer trusted or allowed at this moment.
    pub(super) fn withdrawal_deadline(&self) -> Option<Instant> {
        Instant::now().checked_add(self.limits.withdrawal_grace)
    }

    /// Refuses a connection's new calls from now on and ends it.
    pub(super) fn withdraw(
        &self,
        entry: &Entry,
        reason: &dyn std::fmt::Display,
        deadline: Option<Instant>,
    ) {
        entry.withdraw(deadline);
        self.events.emit(&self.clock, || Event::Withdrawn {
            connection: entry.id,
            remote: entry.remote.clone(),
            peer: entry.peer.label(),
            reason: reason.to_string(),
        });
    }

    pub(super) fn report_accepted(&self, entry: &Entry) {
        self.events.emit(&self.clock, || Event::Accepted {
            connection: entry.id,
            remote: entry.remote.clone(),
            peer: entry.peer.label(),
            fingerprint: entry
                .peer
                .certificate()
                .map(CertificateIdentity::fingerprint),
            anchor: entry.anchor(),
            generation: entry.generation,
        });
    }

    pub(super) fn report_call_refused(&self, entry: &Entry, path: &str, refusal: &PolicyRefusal) {
        self.events.emit(&self.clock, || Event::CallRefused {
            connection: entry.id,
            remote: entry.remote.clone(),
            peer: entry.peer.label(),
            path: path.to_owned(),
            reason: refusal.to_string(),
        });
    }

    pub(super) fn report_closed_hard(&self, entry: &Entry) {
        self.events.emit(&self.clock, || Event::ClosedHard {
            connection: entry.id,
            remote: entry.remote.clone(),
            peer: entry.peer.label(),
            calls: entry.streams.load(Ordering::Relaxed),
        });
    }

    pub(super) fn report_handshake_refused(&self, address: Option<SocketAddr>, cause: &Cause) {
        self.events.emit(&self.clock, || Event::HandshakeRefused {
            remote: remote_text(address),
            reason: cause.reason(),
            detail: error_chain(cause),
        });
    }

    /// A local peer whose user may not connect.
    pub(super) fn report_local_refused(&self, peer: UnixPeer) {
        self.events.emit(&self.clock, || Event::HandshakeRefused {
            remote: remote_text(None),
            reason: "local_user",
            detail: format!("{} may not connect", PeerIdentity::Unix(peer).label()),
        });
    }

    pub(super) fn report_turned_away(&self, address: Option<SocketAddr>) {
        self.events.emit(&self.clock, || Event::TurnedAway {
            remote: remote_text(address),
        });
    }
}
