//! The admin endpoint: what the process says about itself, for its operator alone.

use axum::{
    Json, Router,
    extract::Path,
    http::{StatusCode, header},
    response::{IntoResponse as _, Response},
    routing::get,
};
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
/// On a UNIX socket only the process's own user and root are answered. Over TCP there is no authentication: bind it to
/// loopback.
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

    /// Adds `/metrics`. `refresh` runs before each rendering, for what is read off rather than counted.
    #[must_use]
    pub fn metrics<F>(mut self, handle: PrometheusHandle, refresh: F) -> Self
    where
        F: Fn() + Clone + Send + Sync + 'static,
    {
        self.router = self.router.merge(metrics(handle, refresh));
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

    /// Adds a JSON page for each value of the part in braces at the end of `path` (`/peers/without/{root}`), made on a
    /// thread that may block. What the page calls an error is answered with 400 and that text.
    ///
    /// # Panics
    ///
    /// `path` doesn't start with `/`, or is there already.
    #[must_use]
    pub fn page_of<T, F>(mut self, path: &str, page: F) -> Self
    where
        T: Serialize + Send + 'static,
        F: Fn(&str) -> Result<T, String> + Clone + Send + Sync + 'static,
    {
        let handler = move |Path(part): Path<String>| async move {
            let made = tokio::task::spawn_blocking(move || page(&part)).await;
            match made {
                Ok(Ok(value)) => Json(value).into_response(),
                Ok(Err(text)) => (StatusCode::BAD_REQUEST, text).into_response(),
                Err(error) => {
                    tracing::error!(%error, "an admin page was not made");
                    StatusCode::INTERNAL_SERVER_ERROR.into_response()
                }
            }
        };
        self.router = self.router.route(path, get(handler));
        self
    }

    /// As one router, to be served beside others.
    pub fn into_router(self) -> Router {
        self.router.merge(health::router(self.checks))
    }
}

/// `/metrics` alone, for a listener that shows nothing else. `refresh` runs before each rendering.
pub fn metrics<F>(handle: PrometheusHandle, refresh: F) -> Router
where
    F: Fn() + Clone + Send + Sync + 'static,
{
    let page = move || {
        refresh();
        let text = handle.render();
        let answer: Response =
            ([(header::CONTENT_TYPE, "text/plain; version=0.0.4")], text).into_response();
        std::future::ready(answer)
    };
    Router::new().route("/metrics", get(page))
}

/// Serves the pages until the token is cancelled.
pub async fn serve(listener: Listener, routes: AdminRoutes, shutdown: CancellationToken) {
    http::serve(listener, routes.into_router(), shutdown).await;
}
