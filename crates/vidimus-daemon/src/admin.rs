//! The admin endpoint: what the process says about itself, for its operator alone.

use axum::{Json, Router, http::header, routing::get};
use metrics_exporter_prometheus::PrometheusHandle;
use serde::Serialize;
use tokio_util::sync::CancellationToken;

use crate::{
    health::{self, Checks},
    http,
};

pub use crate::http::Listener;

/// The pages: `/healthz`, `/readyz` and `/health` of [`health::router`], `/metrics` in Prometheus'
/// text format, and the program's own JSON pages.
///
/// There is no authentication: bind it to a UNIX socket, or to loopback.
#[derive(Debug, Default)]
pub struct AdminRoutes {
    checks: Checks,
    router: Router,
}

impl AdminRoutes {
    /// The health pages over `checks`.
    #[must_use]
    pub fn new(checks: Checks) -> Self {
        Self {
            checks,
            router: Router::new(),
        }
    }

    /// Adds `/metrics`.
    #[must_use]
    pub fn metrics(mut self, handle: PrometheusHandle) -> Self {
        let page = move || {
            let text = handle.render();
            async move { ([(header::CONTENT_TYPE, "text/plain; version=0.0.4")], text) }
        };
        self.router = self.router.route("/metrics", get(page));
        self
    }

    /// Adds a JSON page at `path` (`/status`), made anew for each request.
    ///
    /// # Panics
    ///
    /// `path` doesn't start with `/`, or is there already.
    #[must_use]
    pub fn page<T, F>(mut self, path: &str, page: F) -> Self
    where
        T: Serialize + Send + 'static,
        F: Fn() -> T + Clone + Send + Sync + 'static,
    {
        let handler = move || {
            let value = page();
            async move { Json(value) }
        };
        self.router = self.router.route(path, get(handler));
        self
    }

    /// As one router, to be served beside others.
    pub fn into_router(self) -> Router {
        self.router.merge(health::router(self.checks))
    }
}

/// Serves the pages until the token is cancelled.
pub async fn serve(listener: Listener, routes: AdminRoutes, shutdown: CancellationToken) {
    http::serve(listener, routes.into_router(), shutdown).await;
}
