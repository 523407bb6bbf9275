//! The admin pages: what a node says about itself without being asked over its API.

use std::sync::Arc;

use serde::Serialize;
use vidimus_daemon::{admin::AdminRoutes, health::Checks, telemetry::PrometheusHandle};
use vidimus_tls::{
    identity::FingerprintError,
    metrics::ServerMetrics,
    server::{ConnectionInfo, Server, ServerStats},
    watch::{MaterialStatus, MaterialWatch},
};

use super::Endpoints;
use crate::{node::Node, time};

/// Makes the pages.
#[derive(Debug, Clone)]
pub(super) struct Page {
    pub(super) node: Arc<Node>,
    pub(super) endpoints: Endpoints,
    pub(super) material: MaterialWatch,
    pub(super) server: Server,
    /// Whether only the node's owner can see them: what names peers is on the UNIX socket alone.
    pub(super) names_peers: bool,
}

/// The page. Fields are only ever added.
#[derive(Debug, Serialize)]
pub(super) struct Status {
    version: &'static str,
    name: String,
    role: &'static str,
    subject: String,
    not_after: String,
    subject_key_id: String,
    config_generation: u64,
    config_reboot_pending: bool,
    audit_public_key: String,
    endpoints: Endpoints,
    posture: &'static str,
    material: MaterialStatus,
    server: ServerStats,
    #[serde(skip_serializing_if = "Option::is_none")]
    connections: Option<Vec<ConnectionInfo>>,
}

impl Page {
    /// All of them: `/status`, `/peers` where it may name them, `/metrics` where there are any, and the health pages.
    pub(super) fn routes(self, checks: Checks, metrics: Option<PrometheusHandle>) -> AdminRoutes {
        let server = self.server.clone();
        let mut routes = AdminRoutes::new(checks);
        if self.names_peers {
            let (peers, without) = (server.clone(), server.clone());
            routes = routes.page("/peers", move || peers.peers(None)).page_of(
                "/peers/without/{root}",
                move |root| {
                    let root = root.parse();
                    let root = root.map_err(|error: FingerprintError| error.to_string())?;
                    Ok(without.peers(Some(root)))
                },
            );
        }
        if let Some(handle) = metrics {
            let copy = Arc::new(ServerMetrics::new(server, "management"));
            routes = routes.metrics(handle, move || copy.record());
        }
        routes.page("/status", move || self.render())
    }

    fn render(&self) -> Status {
        let snapshot = self.node.service().snapshot();
        let issuer = snapshot.identity().map(|identity| identity.issuer());
        Status {
            version: env!("CARGO_PKG_VERSION"),
            name: snapshot.config().name.clone(),
            role: snapshot.config().role.word(),
            subject: issuer
                .map(|i| i.subject_text().to_owned())
                .unwrap_or_default(),
            not_after: issuer
                .map(|i| time::rfc3339(i.not_after()))
                .unwrap_or_default(),
            subject_key_id: issuer
                .map(|i| data_encoding::HEXLOWER.encode(i.key_id()))
                .unwrap_or_default(),
            config_generation: snapshot.config_generation(),
            config_reboot_pending: self.node.reboot_pending(),
            audit_public_key: self.node.audit_key().to_string(),
            endpoints: self.endpoints.clone(),
            posture: self.server.security().name(),
            material: self.material.status(),
            server: self.server.stats(),
            connections: self.names_peers.then(|| self.server.connections()),
        }
    }
}
