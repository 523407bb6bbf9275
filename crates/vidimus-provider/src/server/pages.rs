//! The pages about the process: the admin socket's, which may name peers, and the metrics, which don't.

use std::sync::Arc;

use vidimus_daemon::{
    admin::{self, AdminRoutes},
    health::Checks,
    http::Router,
    telemetry::PrometheusHandle,
};
use vidimus_tls::{identity::FingerprintError, metrics::ServerMetrics};

use super::StatusHandle;

/// Makes the pages of one provider.
pub(super) struct Pages {
    status: StatusHandle,
    metrics: Option<(PrometheusHandle, Arc<ServerMetrics>)>,
}

impl Pages {
    pub(super) fn new(status: &StatusHandle, metrics: Option<PrometheusHandle>) -> Self {
        let copy = || Arc::new(ServerMetrics::new(status.server.clone(), "grpc"));
        Self {
            status: status.clone(),
            metrics: metrics.map(|handle| (handle, copy())),
        }
    }

    /// `/metrics` alone.
    pub(super) fn metrics(&self) -> Option<Router> {
        let (handle, copy) = self.metrics.clone()?;
        Some(admin::metrics(handle, move || copy.record()))
    }

    /// What the admin socket shows.
    pub(super) fn admin(&self, checks: Checks) -> AdminRoutes {
        let (page, peers) = (self.status.clone(), self.status.server.clone());
        let without = peers.clone();
        let routes = AdminRoutes::new(checks)
            .page("/tls", move || page.page())
            .page("/peers", move || peers.peers(None))
            .page_of("/peers/without/{root}", move |root| {
                let root = root.parse();
                let root = root.map_err(|error: FingerprintError| error.to_string())?;
                Ok(without.peers(Some(root)))
            });
        match self.metrics.clone() {
            Some((handle, copy)) => routes.metrics(handle, move || copy.record()),
            None => routes,
        }
    }
}
