//! What the provider says about its TLS: the admin page `/tls`.

use std::net::SocketAddr;

use serde::Serialize;
use vidimus_tls::{
    policy::PolicyStatus,
    posture::PlaintextAlarm,
    server::{ConnectionInfo, Security, Server, ServerStats},
    watch::MaterialStatus,
};

use crate::health::Serving;

/// A provider's state, as the admin page shows it.
#[derive(Clone, Debug, Serialize)]
pub struct TlsPage {
    /// `mutual` or `plaintext`.
    pub posture: &'static str,
    /// False once the shutdown has begun.
    pub serving: bool,
    /// Where it listens.
    pub addresses: Addresses,
    /// The certificate, the roots and how their reloads went; none under plaintext.
    pub material: Option<MaterialStatus>,
    /// The names that may call; empty lets every certificate of the CA call.
    pub allowed_sans: Vec<String>,
    /// The policy's generation, mode and how its reloads went.
    pub policy: PolicyStatus,
    /// True if TLS files have appeared under plaintext: a restart would use them.
    pub material_waiting: bool,
    /// Each connection with its peer, the generation it was accepted under and the root that its
    /// peer is trusted by.
    pub connections: Vec<ConnectionInfo>,
    /// Counts since the start.
    pub counters: ServerStats,
}

/// The addresses that a provider is bound to, with the ports that it got.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Addresses {
    /// `provider.v1` and `grpc.health.v1`.
    pub grpc: SocketAddr,
    /// The health pages.
    pub health: SocketAddr,
    /// The metrics, where they have an address.
    pub metrics: Option<SocketAddr>,
}

/// Makes [`TlsPage`]s. Clones look at the same provider.
#[derive(Clone, Debug)]
pub struct StatusHandle {
    pub(super) addresses: Addresses,
    pub(super) alarm: Option<PlaintextAlarm>,
    pub(super) server: Server,
    pub(super) serving: Serving,
}

impl StatusHandle {
    /// The state of this moment.
    #[must_use]
    pub fn page(&self) -> TlsPage {
        let policy = self.server.policy().current();
        TlsPage {
            posture: self.server.security().name(),
            serving: self.serving.is_serving(),
            addresses: self.addresses,
            material: self.material(),
            allowed_sans: policy.allow_list().entries().map(str::to_owned).collect(),
            policy: self.server.policy().status(),
            material_waiting: self.alarm.as_ref().is_some_and(PlaintextAlarm::is_raised),
            connections: self.server.connections(),
            counters: self.server.stats(),
        }
    }

    /// The material's status; none under plaintext.
    #[must_use]
    pub fn material(&self) -> Option<MaterialStatus> {
        match self.server.security() {
            Security::Mutual { material, .. } => Some(material.status()),
            Security::Plaintext(_) | Security::Local(_) => None,
        }
    }

    /// The server, for its connections.
    #[must_use]
    pub const fn server(&self) -> &Server {
        &self.server
    }
}
