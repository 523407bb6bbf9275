//! A server whose service the test brings along.

use std::future::Future;
use std::net::SocketAddr;
use std::path::Path;

use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use vidimus_tls::config::Protocols;
use vidimus_tls::identity::PeerIdentity;
use vidimus_tls::material::{MaterialFiles, Usage};
use vidimus_tls::server::{Drained, Limits, Listener, Security, ServeError, Server, ServerBuilder};
use vidimus_tls::watch::MaterialWatch;

use crate::support::{quick, soon};

/// A server on a port of its own that follows its material.
pub(crate) struct Serving {
    pub(crate) address: SocketAddr,
    pub(crate) server: Server,
    stop: CancellationToken,
    tasks: JoinSet<Option<Drained>>,
}

impl Serving {
    /// `build` adds settings, `serve` begins to serve.
    pub(crate) async fn start<F>(
        dir: &Path,
        build: impl FnOnce(ServerBuilder) -> ServerBuilder,
        serve: impl FnOnce(Server, Listener, CancellationToken) -> F,
    ) -> Self
    where
        F: Future<Output = Result<Drained, ServeError>> + Send + 'static,
    {
        let files = MaterialFiles::in_dir(dir);
        let (watch, driver) = MaterialWatch::start(files, Usage::Server, quick())
            .await
            .expect("good material");
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a port");
        let address = listener.local_addr().expect("the port's address");
        let server = build(Server::builder(Security::mutual(watch))).build();
        let stop = CancellationToken::new();
        let mut tasks = JoinSet::new();
        let serving = serve(server.clone(), listener.into(), stop.clone());
        tasks.spawn(async move { Some(serving.await.expect("the server serves")) });
        let token = stop.clone();
        tasks.spawn(async move {
            driver.run(token).await;
            None
        });
        Self {
            address,
            server,
            stop,
            tasks,
        }
    }

    /// Serves an axum router over HTTP/2 and HTTP/1.1.
    pub(crate) async fn http(dir: &Path, limits: Limits, router: axum::Router) -> Self {
        let build =
            |builder: ServerBuilder| builder.protocols(Protocols::H2AndHttp1).limits(limits);
        Self::start(dir, build, |server, listener, stop| async move {
            server.serve(listener, router, stop).await
        })
        .await
    }

    pub(crate) fn begin_shutdown(&self) {
        self.stop.cancel();
    }

    /// Begins the shutdown and waits for its end.
    pub(crate) async fn stop(mut self) -> Drained {
        self.stop.cancel();
        let mut drained = None;
        while let Some(ended) = soon("the server's end", self.tasks.join_next()).await {
            drained = ended.expect("no task panics").or(drained);
        }
        drained.expect("the server's own task")
    }
}

/// Answers with the protocol's version and the caller's name.
pub(crate) fn whoami() -> axum::Router {
    async fn whoami(version: http::Version, peer: PeerIdentity) -> String {
        format!("{version:?} {}", peer.label())
    }
    axum::Router::new().route("/whoami", axum::routing::get(whoami))
}
