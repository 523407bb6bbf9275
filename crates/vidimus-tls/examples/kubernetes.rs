//! A tonic server in Kubernetes: its certificate comes from a mounted Secret, and the kubelet replaces it in place.
//!
//! cert-manager writes `tls.crt`, `tls.key` and `ca.crt` into the Secret of a `Certificate`. Mount it as a whole folder,
//! never with `subPath`, which the kubelet doesn't keep up to date:
//!
//! ```yaml
//! containers:
//!   - name: server
//!     args: ["/var/run/tls", "0.0.0.0:9443", "0.0.0.0:8080"]
//!     readinessProbe: { httpGet: { path: /ready, port: 8080 } }
//!     volumeMounts: [{ name: tls, mountPath: /var/run/tls, readOnly: true }]
//! volumes:
//!   - name: tls
//!     secret: { secretName: server-tls, defaultMode: 0400 }
//! ```

use std::error::Error;
use std::path::Path;
use std::pin::pin;

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::get;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;
use tonic::service::Routes;
use vidimus_tls::clock::Clock;
use vidimus_tls::material::{MaterialFiles, Usage};
use vidimus_tls::policy::AllowList;
use vidimus_tls::runtime::Runtime;
use vidimus_tls::server::{Drained, Security, Server};
use vidimus_tls::watch::{MaterialWatch, WatchOptions};

/// Not ready without a certificate that is valid now. It is still served, since a client may see it differently.
async fn ready(State(material): State<MaterialWatch>) -> (StatusCode, String) {
    let now = Clock::system().now();
    let status = material.status();
    let code = if status.is_expired_at(now) {
        StatusCode::SERVICE_UNAVAILABLE
    } else {
        StatusCode::OK
    };
    (
        code,
        format!("generation {}\n", material.current().generation()),
    )
}

/// Serves until `stop`; `dir` is the mounted Secret, and `probes` answers the kubelet without TLS.
pub(crate) async fn serve(
    dir: &Path,
    listener: TcpListener,
    probes: TcpListener,
    stop: CancellationToken,
) -> Result<Drained, Box<dyn Error + Send + Sync>> {
    let (_reporter, health) = tonic_health::server::health_reporter();
    let routes = Routes::new(health); // .add_service(YourServer::new(...))

    let mut runtime = Runtime::new();
    let files = MaterialFiles::in_dir(dir);
    let material = runtime
        .material(files, Usage::Server, WatchOptions::default())
        .await?;
    let server = Server::builder(Security::mutual(material.clone()))
        .allow_list(AllowList::parse("client.default.svc")?)
        .build();
    let router = Router::new()
        .route("/ready", get(ready))
        .with_state(material);
    let probing =
        axum::serve(probes, router).with_graceful_shutdown(stop.clone().cancelled_owned());
    let serving = server.serve(listener.into(), routes, stop);
    let both = async { tokio::join!(serving, probing.into_future()) };
    let (drained, probed) = runtime.run_while(both).await;
    probed?;
    Ok(drained?)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error + Send + Sync>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(dir), Some(address), Some(probes)) =
        (arguments.next(), arguments.next(), arguments.next())
    else {
        return Err("usage: kubernetes FOLDER ADDRESS:PORT PROBES-ADDRESS:PORT".into());
    };
    let (listener, probes) = (
        TcpListener::bind(address).await?,
        TcpListener::bind(probes).await?,
    );
    let mut terminated = signal(SignalKind::terminate())?;
    let stop = CancellationToken::new();
    let mut serving = pin!(serve(Path::new(&dir), listener, probes, stop.clone()));
    tokio::select! {
        ended = &mut serving => return ended.map(drop),
        _ = terminated.recv() => stop.cancel(),
    }
    serving.await.map(drop)
}
