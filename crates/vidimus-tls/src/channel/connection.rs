//! One live connection, as calls and status pages see it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::SystemTime;

use hyper::client::conn::http2::SendRequest;
use serde::Serialize;

use super::body::CallBody;
use super::connect::Connected;
use super::core::Core;
use super::dispatch::Dispatch;
use super::driver::Driver;
use super::wire::WireState;
use crate::clock::serialize_time;
use crate::config::ClientCertificate;
use crate::identity::{CertificateIdentity, Fingerprint};
use crate::material::Material;
use crate::verify::VerifiedChain;

/// Who is at the other end, and with which material we came.
#[derive(Clone, Debug)]
pub(super) struct Peer {
    address: String,
    generation: Option<u64>,
    presented: Option<Fingerprint>,
    anchor: Option<Fingerprint>,
    server: Option<Arc<CertificateIdentity>>,
}

impl Peer {
    /// The other end of a connection without TLS.
    pub(super) fn unverified(address: String) -> Self {
        Self {
            address,
            generation: None,
            presented: None,
            anchor: None,
            server: None,
        }
    }

    pub(super) fn verified(
        address: String,
        material: &Material,
        certificate: ClientCertificate,
        chain: &VerifiedChain,
    ) -> Self {
        let presented = match certificate {
            ClientCertificate::Presented => Some(material.identity().fingerprint()),
            ClientCertificate::Withheld => None,
        };
        Self {
            address,
            generation: Some(material.generation()),
            presented,
            anchor: chain.anchor(),
            server: Some(Arc::clone(chain.identity())),
        }
    }
}

/// A live connection for status pages.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct ConnectionStatus {
    /// Counts the channel's connections from 1.
    pub id: u64,
    /// The server's address.
    pub address: String,
    /// Whether new calls use it; one that isn't current ends with its last call.
    pub current: bool,
    /// The generation of the material that was presented; `None` without TLS.
    pub generation: Option<u64>,
    /// SHA-256 of the certificate that was presented; `None` without TLS or without one.
    pub presented: Option<Fingerprint>,
    /// SHA-256 of the root that the server's chain leads to; `None` if that wasn't verified.
    pub anchor: Option<Fingerprint>,
    /// The server's certificate, believed only if there is an anchor; `None` without TLS.
    pub server: Option<CertificateIdentity>,
    /// Calls that have begun and not ended.
    pub calls_in_flight: u64,
    /// Calls that have begun, resends included.
    pub calls: u64,
    /// When the server accepted it.
    #[serde(serialize_with = "serialize_time")]
    pub since: SystemTime,
}

/// A live connection. hyper closes it in good order once the last holder has let go and its streams have ended.
#[derive(Debug)]
pub(super) struct Connection {
    id: u64,
    dispatch: Dispatch,
    wire: Arc<WireState>,
    peer: Peer,
    since: SystemTime,
    retired: AtomicBool,
    calls: AtomicU64,
    in_flight: AtomicU64,
}

impl Connection {
    /// Takes a fresh connection apart into its handle and what must be run.
    pub(super) fn new(id: u64, connected: Connected, since: SystemTime) -> (Arc<Self>, Driver) {
        let Connected {
            dispatch,
            driver,
            wire,
            peer,
        } = connected;
        let connection = Self {
            id,
            dispatch,
            wire,
            peer,
            since,
            retired: AtomicBool::new(false),
            calls: AtomicU64::new(0),
            in_flight: AtomicU64::new(0),
        };
        (Arc::new(connection), driver)
    }

    pub(super) fn id(&self) -> u64 {
        self.id
    }

    pub(super) fn address(&self) -> &str {
        &self.peer.address
    }

    pub(super) fn generation(&self) -> Option<u64> {
        self.peer.generation
    }

    pub(super) fn wire(&self) -> &WireState {
        &self.wire
    }

    /// For sending one request, if it still takes any.
    pub(super) fn sender(&self) -> Option<SendRequest<CallBody>> {
        self.dispatch.sender()
    }

    /// Whether a new call may use it.
    pub(super) fn is_usable(&self) -> bool {
        !self.retired.load(Ordering::Acquire) && self.dispatch.is_open()
    }

    /// Gives it no more calls.
    pub(super) fn retire(&self) {
        self.retired.store(true, Ordering::Release);
    }

    pub(super) fn status(&self, current: bool) -> ConnectionStatus {
        ConnectionStatus {
            id: self.id,
            address: self.peer.address.clone(),
            current,
            generation: self.peer.generation,
            presented: self.peer.presented,
            anchor: self.peer.anchor,
            server: self.peer.server.as_deref().cloned(),
            calls_in_flight: self.in_flight.load(Ordering::Relaxed),
            calls: self.calls.load(Ordering::Relaxed),
            since: self.since,
        }
    }
}

/// A call in flight: keeps its connection and the channel's background work alive until its answer has ended.
#[derive(Debug)]
pub(super) struct CallGuard {
    connection: Arc<Connection>,
    core: Arc<Core>,
}

impl CallGuard {
    pub(super) fn new(core: Arc<Core>, connection: Arc<Connection>) -> Self {
        connection.calls.fetch_add(1, Ordering::Relaxed);
        connection.in_flight.fetch_add(1, Ordering::Relaxed);
        Self { connection, core }
    }

    pub(super) fn connection(&self) -> &Arc<Connection> {
        &self.connection
    }

    pub(super) fn core(&self) -> &Core {
        &self.core
    }
}

impl Drop for CallGuard {
    fn drop(&mut self) {
        self.connection.in_flight.fetch_sub(1, Ordering::Relaxed);
    }
}
