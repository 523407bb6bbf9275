//! The server kit: everything around a `provider.v1` service that makes it a provider.
//!
//! From the files to the posture, from the posture to the protection of the connections; then the
//! allow-list, the routes, health over gRPC and HTTP, the admin pages and an orderly end. Nothing
//! is bound before posture and material are known to be good.

mod config;
mod guard;
mod idle;
mod page;
mod pages;

pub use self::{
    config::{Config, GRPC_PORT, HEALTH_PORT},
    page::{Addresses, StatusHandle, TlsPage},
};

use std::{
    io,
    net::SocketAddr,
    path::{Path, PathBuf},
    time::SystemTime,
};

use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tonic::service::Routes;
use vidimus_daemon::{
    admin,
    clock::{Clock as _, SystemClock},
    health::{self as health_pages, Checks},
    http::{self, BindError, Listener},
    tasks::{TaskError, Tasks},
};
use vidimus_proto::provider::v1::provider_server::{Provider, ProviderServer};
use vidimus_tls::{
    material::{MaterialError, Usage},
    policy::{PolicyDriver, PolicyError, PolicyWatch},
    posture::{AlarmDriver, PlaintextAlarm, Posture, PostureError, watch_for_material},
    server::{BindUnixError, Drained, Security, ServeError, Server, UnixOptions, UnixSocket},
    watch::{MaterialDriver, MaterialWatch},
};

use self::{
    guard::Guarded,
    idle::{Activity, Noting},
    pages::Pages,
};
use crate::{health::Serving, memory::MemoryProvider, posture};

/// The largest message that is read: gRPC's usual 4 MiB.
pub const MAX_MESSAGE: usize = 4 * 1024 * 1024;

/// Why a provider didn't start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The admin socket could not be bound.
    #[error(transparent)]
    Admin(#[from] BindUnixError),
    /// The address of the health pages could not be bound.
    #[error(transparent)]
    Bind(#[from] BindError),
    /// The gRPC address could not be bound.
    #[error("listen for gRPC on {address}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// The TLS files are there and are not good.
    #[error("load the TLS material")]
    Material(#[from] MaterialError),
    /// The policy file is not good.
    #[error("load the policy")]
    Policy(#[from] PolicyError),
    /// Neither TLS files nor a plaintext opt-out, or only some of the files.
    #[error(transparent)]
    Posture(#[from] PostureError),
    /// A policy file and an allow-list in the environment.
    #[error(
        "found the policy file {path} and entries in {}; accepted: one of them",
        posture::ALLOWED_SANS_VARIABLE
    )]
    TwoPolicies {
        /// The file.
        path: PathBuf,
    },
}

/// Why a provider ended with an error.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// It didn't start.
    #[error(transparent)]
    Start(#[from] StartError),
    /// One of its parts ended.
    #[error(transparent)]
    Task(#[from] TaskError),
    /// Calls had not finished when the drain's time was over.
    #[error("{cut} of {open} connections were cut at the end of the drain")]
    Cut {
        /// Connections that were open when the shutdown began.
        open: usize,
        /// Those that had to be closed hard.
        cut: usize,
    },
}

/// A provider that is bound and about to serve.
#[derive(Debug)]
pub struct Bound {
    admin: Option<Listener>,
    config: Config,
    grpc: TcpListener,
    health: Listener,
    metrics: Option<Listener>,
    routes: Routes,
    policy: Option<PolicyDriver>,
    status: StatusHandle,
    upkeep: Upkeep,
}

/// The work that keeps the protection of the connections up to date.
#[derive(Debug)]
enum Upkeep {
    Alarm(AlarmDriver),
    Material(Box<MaterialDriver>),
    Nothing,
}

/// Runs the in-memory provider until the token is cancelled and its calls are finished.
///
/// # Errors
///
/// It didn't start, one of its parts ended, or the drain ran out of time.
pub async fn run(config: Config, shutdown: CancellationToken) -> Result<(), RunError> {
    let provider = MemoryProvider::new(config.memory);
    let bound = bind(config, provider).await?;
    let drained = bound.serve(shutdown).await?;
    match drained {
        Drained { cut: 0, .. } => Ok(()),
        Drained { open, cut } => Err(RunError::Cut { open, cut }),
    }
}

/// Decides the posture, loads the material, then binds; `provider` is what the calls reach.
///
/// # Errors
///
/// [`StartError::Posture`] and [`StartError::Material`] before anything is bound.
pub async fn bind(config: Config, provider: impl Provider) -> Result<Bound, StartError> {
    let rule = posture::rule(&config.tls_directory);
    let posture = Posture::resolve(&rule, config.insecure.as_deref())?;
    let (policy, following) = policy(&config).await?;
    let (security, alarm, upkeep) = secure(posture, &config).await?;
    let server = Server::builder(security)
        .policy(policy)
        .limits(config.limits.clone())
        .clock(config.watch.clock.clone())
        .build();

    let address = config.grpc;
    let listen = |source| StartError::Listen { address, source };
    let grpc = TcpListener::bind(address).await.map_err(listen)?;
    let health = Listener::tcp(config.health).await?;
    let admin = config.admin.as_deref().map(admin_socket).transpose()?;
    let metrics = match config.metrics_address {
        Some(address) => Some(Listener::tcp(address).await?),
        None => None,
    };
    let addresses = Addresses {
        grpc: grpc.local_addr().map_err(listen)?,
        health: health.tcp_address().unwrap_or(config.health),
        metrics: metrics.as_ref().and_then(Listener::tcp_address),
    };

    let serving = Serving::new();
    let service = ProviderServer::new(provider).max_decoding_message_size(MAX_MESSAGE);
    let routes = Routes::new(service)
        .add_service(serving.service())
        .prepare();
    let status = StatusHandle {
        addresses,
        alarm,
        server,
        serving,
    };
    Ok(Bound {
        admin,
        config,
        grpc,
        health,
        metrics,
        policy: following,
        routes,
        status,
        upkeep,
    })
}

fn admin_socket(path: &Path) -> Result<Listener, BindUnixError> {
    let socket = UnixSocket::bind(path, UnixOptions::default())?;
    let (listener, name) = socket.into_parts();
    Ok(Listener::unix(listener, name))
}

/// The policy of the file, or of the list.
async fn policy(config: &Config) -> Result<(PolicyWatch, Option<PolicyDriver>), StartError> {
    let Some(file) = &config.policy else {
        return Ok((PolicyWatch::fixed(config.allowed_sans.clone()), None));
    };
    if !config.allowed_sans.is_permissive() {
        return Err(StartError::TwoPolicies { path: file.clone() });
    }
    let (policy, driver) = PolicyWatch::start(file, config.watch.clone()).await?;
    Ok((policy, Some(driver)))
}

async fn secure(
    posture: Posture,
    config: &Config,
) -> Result<(Security, Option<PlaintextAlarm>, Upkeep), MaterialError> {
    match posture {
        Posture::Mutual(files) => {
            let options = config.watch.clone();
            let (watch, driver) = MaterialWatch::start(files, Usage::Server, options).await?;
            Ok((
                Security::mutual(watch),
                None,
                Upkeep::Material(Box::new(driver)),
            ))
        }
        Posture::Plaintext(opt_out) => {
            let (alarm, driver) = watch_for_material(&opt_out);
            Ok((
                Security::Plaintext(opt_out),
                Some(alarm),
                Upkeep::Alarm(driver),
            ))
        }
        Posture::Local => {
            let owner = vidimus_tls::server::LocalPeers::owner();
            Ok((Security::Local(owner), None, Upkeep::Nothing))
        }
    }
}

impl Bound {
    /// Where it listens.
    #[must_use]
    pub const fn addresses(&self) -> Addresses {
        self.status.addresses
    }

    /// Its state, also while it serves.
    #[must_use]
    pub fn status(&self) -> StatusHandle {
        self.status.clone()
    }

    /// Serves until the token is cancelled. Then health says `NOT_SERVING`, the connections are
    /// told to end, calls in flight finish within the drain's time, and the pages go last.
    ///
    /// # Errors
    ///
    /// One of its parts ended before the shutdown.
    pub async fn serve(self, shutdown: CancellationToken) -> Result<Drained, TaskError> {
        let Self {
            admin,
            config,
            grpc,
            health,
            metrics,
            policy,
            routes,
            status,
            upkeep,
        } = self;
        log_start(&status, &config);
        // cancelled when the calls are finished, or by `Tasks` when a part ends early
        let rest = CancellationToken::new();
        let mut tasks = Tasks::new(rest.clone());

        match upkeep {
            Upkeep::Alarm(driver) => tasks.spawn("alarm", driver.run(rest.clone())),
            Upkeep::Material(driver) => tasks.spawn("material", driver.run(rest.clone())),
            Upkeep::Nothing => {}
        }
        if let Some(driver) = policy {
            tasks.spawn("policy", driver.run(rest.clone()));
        }
        let checks = checks(&status);
        let health_routes = health_pages::router(checks.clone());
        tasks.spawn("health", http::serve(health, health_routes, rest.clone()));
        let pages = Pages::new(&status, config.metrics.clone());
        if let Some(listener) = metrics
            && let Some(routes) = pages.metrics()
        {
            tasks.spawn("metrics", http::serve(listener, routes, rest.clone()));
        }
        if let Some(listener) = admin {
            tasks.spawn(
                "admin",
                admin::serve(listener, pages.admin(checks), rest.clone()),
            );
        }
        let activity = Activity::default();
        let reaping = activity.clone().reap(
            status.server.clone(),
            config.max_connection_idle,
            rest.clone(),
        );
        tasks.spawn("idle", reaping);

        let service = Noting {
            inner: Guarded(routes),
            activity,
        };
        let (drained, outcome) = tokio::sync::oneshot::channel();
        tasks.try_spawn("grpc", async move {
            let calls = serve_calls(&status, grpc, service, &shutdown, &rest).await?;
            // nobody waits for it if the process is ending already
            let _delivered = drained.send(calls);
            rest.cancel();
            Ok::<(), ServeError>(())
        });
        tasks.join().await?;
        Ok(outcome.await.unwrap_or_default())
    }
}

/// Serves until the program or one of its parts asks for the end.
async fn serve_calls(
    status: &StatusHandle,
    listener: TcpListener,
    service: Noting<Guarded<Routes>>,
    shutdown: &CancellationToken,
    rest: &CancellationToken,
) -> Result<Drained, ServeError> {
    let stop = CancellationToken::new();
    let ending = async {
        tokio::select! {
            () = shutdown.cancelled() => {}
            () = rest.cancelled() => {}
        }
        // those who look at health learn it before the first connection is told to end
        status.serving.stop();
        stop.cancel();
        Ok(())
    };
    let serving = status.server.serve(listener.into(), service, stop.clone());
    let (drained, ()) = tokio::try_join!(serving, ending)?;
    tracing::info!(open = drained.open, cut = drained.cut, "drained");
    Ok(drained)
}

/// Ready: calls are served, and with a certificate that peers can accept.
fn checks(status: &StatusHandle) -> Checks {
    let checks = Checks::new();
    let serving = status.serving.clone();
    checks.add("grpc", move || {
        let serving = serving.is_serving();
        async move {
            if serving {
                Ok(())
            } else {
                Err("shutting down".to_owned())
            }
        }
    });
    let status = status.clone();
    checks.add("material", move || {
        let result = material_check(&status, SystemClock.now());
        async move { result }
    });
    checks
}

fn material_check(status: &StatusHandle, now: SystemTime) -> Result<(), String> {
    match status.material() {
        Some(material) if material.is_expired_at(now) => {
            Err("the certificate in use has expired".to_owned())
        }
        _ => Ok(()),
    }
}

fn log_start(status: &StatusHandle, config: &Config) {
    let Addresses {
        grpc,
        health,
        metrics,
    } = status.addresses;
    let policy = status.server.policy().current();
    tracing::info!(
        %grpc,
        %health,
        metrics = metrics.map(|address| address.to_string()),
        posture = status.server.security().name(),
        tls_directory = %config.tls_directory.display(),
        allowed = %policy.allow_list(),
        policy = config.policy.as_ref().map(|file| file.display().to_string()).unwrap_or_default(),
        "provider serves"
    );
}
