//! The status page: what a node says about itself without being asked over its API.

use std::sync::Arc;

use serde::Serialize;
use vidimus_tls::{
    server::{ConnectionInfo, Server, ServerStats},
    watch::{MaterialStatus, MaterialWatch},
};

use super::Endpoints;
use crate::{node::Node, time};

/// Makes the page.
#[derive(Debug, Clone)]
pub(super) struct Page {
    node: Arc<Node>,
    endpoints: Endpoints,
    material: MaterialWatch,
    server: Server,
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
    connections: Vec<ConnectionInfo>,
}

impl Page {
    pub(super) fn new(
        node: &Arc<Node>,
        endpoints: &Endpoints,
        material: MaterialWatch,
        server: Server,
    ) -> Self {
        Self {
            node: Arc::clone(node),
            endpoints: endpoints.clone(),
            material,
            server,
        }
    }

    pub(super) fn render(&self) -> Status {
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
            connections: self.server.connections(),
        }
    }
}
