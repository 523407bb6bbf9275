//! The program: a node with its listeners, until it is told to stop.

mod endpoints;
mod error;
mod page;

use std::{sync::Arc, time::Duration};

use tokio::{net::TcpListener, sync::watch};
use tokio_util::sync::CancellationToken;
use vidimus_daemon::{
    admin,
    clock::{Clock, SystemClock},
    health::Checks,
    http,
    tasks::Tasks,
    telemetry::{self, PrometheusHandle},
};
use vidimus_keys::Secret;
use vidimus_proto::node::v1::node_service_server::NodeServiceServer;
use vidimus_store::export::{AuditFiles, ExportStatus};
use vidimus_tls::{
    config::ClientAuth,
    server::{Listener, LocalPeers, Security, Server, UnixOptions, UnixSocket},
    verify::PinnedClientVerifier,
};

pub use endpoints::Endpoints;
pub use error::RunError;

use crate::{
    config::{AdminListen, Config},
    data::DataDir,
    grpc::Rpc,
    management::{self, ManagementCertificate},
    node::Node,
};

/// How long calls may finish after the shutdown began.
const GRACE: Duration = Duration::from_secs(40);

/// What a node needs to run.
#[derive(Debug)]
pub struct RunConfig {
    /// A data directory that [`crate::ceremony::init`] made.
    pub data_dir: DataDir,
    /// What opens the CA's key.
    pub secret: Secret,
    /// A config to take first, as an apply would; `None` uses the stored one.
    pub config: Option<Config>,
    /// The process's metrics, for the admin page.
    pub metrics: Option<PrometheusHandle>,
}

/// Runs a node until `shutdown`, then drains.
///
/// Where it listens is logged, and stands in `endpoints.json` in the data directory while it serves.
///
/// # Errors
/// It can't be opened, has no certificate yet, an address is taken, or one of its parts failed.
pub async fn run(config: RunConfig, shutdown: CancellationToken) -> Result<(), RunError> {
    run_with_clock(config, Arc::new(SystemClock), shutdown).await
}

/// As [`run`], by another clock.
///
/// # Errors
/// As [`run`].
pub async fn run_with_clock(
    config: RunConfig,
    clock: Arc<dyn Clock>,
    shutdown: CancellationToken,
) -> Result<(), RunError> {
    let RunConfig {
        data_dir,
        secret,
        config,
        metrics,
    } = config;
    let node = Node::open_with(data_dir, Arc::new(secret), clock, config.as_ref()).await?;
    serve(Arc::new(node), metrics, shutdown).await
}

/// Everything that is bound, before anything is served.
struct Bound {
    management: Listener,
    local: Listener,
    admin: http::Listener,
    endpoints: Endpoints,
}

async fn serve(
    node: Arc<Node>,
    metrics: Option<PrometheusHandle>,
    shutdown: CancellationToken,
) -> Result<(), RunError> {
    if node.service().snapshot().identity().is_none() {
        return Err(RunError::NoIdentity {
            path: node.data().path().to_owned(),
        });
    }
    let (material, renewal) = ManagementCertificate::issue(Arc::clone(&node)).await?;
    let bound = bind(&node).await?;
    let pins = [*node.admin().as_bytes()].into();
    let mutual = Server::builder(Security::Mutual {
        material: material.clone(),
        clients: ClientAuth::Pinned(PinnedClientVerifier::new(pins)),
    })
    .clock(management::tls_clock(&node))
    .build();
    let local = Server::builder(Security::Local(LocalPeers::owner())).build();
    let files = AuditFiles::new(node.data().audit_files(), node.store().clone());
    if let Err(error) = files.catch_up().await {
        // The log itself is in the store; the health page shows that its files are behind.
        tracing::error!(error = %telemetry::chain(&error), "audit files not caught up");
    }
    let page = page::Page {
        node: Arc::clone(&node),
        endpoints: bound.endpoints.clone(),
        material,
        server: mutual.clone(),
        names_peers: bound.admin.tcp_address().is_none(),
    };
    let routes = page.routes(checks(&node, files.status()), metrics);
    let service = NodeServiceServer::new(Rpc::new(Arc::clone(&node)));

    let published = bound.endpoints.publish(node.data())?;
    let mut tasks = Tasks::new(shutdown.clone());
    let token = shutdown.clone();
    let listener = bound.management;
    let over_tls = service.clone();
    tasks.try_spawn("management", async move {
        mutual.serve(listener, over_tls, token).await.map(drop)
    });
    let token = shutdown.clone();
    let listener = bound.local;
    tasks.try_spawn("local", async move {
        local.serve(listener, service, token).await.map(drop)
    });
    tasks.spawn("renewal", renewal.run(shutdown.clone()));
    tasks.spawn("audit-files", files.run(shutdown.clone()));
    tasks.spawn("admin", admin::serve(bound.admin, routes, shutdown.clone()));
    let ended = tasks.join_within(GRACE).await;
    drop(published);
    Ok(ended?)
}

async fn bind(node: &Node) -> Result<Bound, RunError> {
    let api = &node.boot_config().api;
    let listen_error = |source| RunError::Listen {
        address: api.listen,
        source,
    };
    let management = TcpListener::bind(api.listen).await.map_err(listen_error)?;
    let address = management.local_addr().map_err(listen_error)?;
    let socket_path = api.socket_path(node.data().path());
    let local = Listener::bind_unix(&socket_path, UnixOptions::default())?;
    let admin = match api.admin_listen {
        AdminListen::Tcp(address) => http::Listener::tcp(address).await?,
        AdminListen::Unix => {
            let socket = UnixSocket::bind(node.data().admin_socket(), UnixOptions::default())?;
            let (listener, name) = socket.into_parts();
            http::Listener::unix(listener, name)
        }
    };
    let endpoints = Endpoints {
        pid: std::process::id(),
        management: address,
        socket: socket_path,
        admin: match admin.tcp_address() {
            Some(address) => address.to_string(),
            None => format!("unix:{}", node.data().admin_socket().display()),
        },
    };
    Ok(Bound {
        management: management.into(),
        local,
        admin,
        endpoints,
    })
}

fn checks(node: &Arc<Node>, files: watch::Receiver<ExportStatus>) -> Checks {
    let checks = Checks::cached(Duration::from_secs(1));
    let store = node.store().clone();
    checks.add("store", move || {
        let store = store.clone();
        async move {
            let count = store.issued_count().await;
            count.map(drop).map_err(|error| error.to_string())
        }
    });
    checks.add("audit-files", move || {
        let last_error = files.borrow().last_error.clone();
        std::future::ready(last_error.map_or(Ok(()), Err))
    });
    let node = Arc::clone(node);
    checks.add("identity", move || {
        let snapshot = node.service().snapshot();
        let now = node.service().now();
        let ok = snapshot
            .identity()
            .is_some_and(|identity| identity.issuer().not_after() > now);
        let result = if ok {
            Ok(())
        } else {
            Err("the CA certificate has expired".to_owned())
        };
        std::future::ready(result)
    });
    checks
}
