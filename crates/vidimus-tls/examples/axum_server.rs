//! An axum server with mutual TLS, over HTTP/2 and HTTP/1.1, whose handlers know who calls.
//!
//! `cargo run --example axum_server --features axum -- /etc/example/tls 0.0.0.0:8443`

use std::error::Error;
use std::path::Path;
use std::pin::pin;

use axum::Router;
use axum::routing::get;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use vidimus_tls::config::Protocols;
use vidimus_tls::identity::PeerIdentity;
use vidimus_tls::material::{MaterialFiles, Usage};
use vidimus_tls::runtime::Runtime;
use vidimus_tls::server::{Drained, Security, Server};
use vidimus_tls::watch::WatchOptions;

async fn hello(peer: PeerIdentity) -> String {
    format!("hello {}\n", peer.label())
}

/// Serves until `stop`; `dir` holds `tls.crt`, `tls.key` and `ca.crt`.
pub(crate) async fn serve(
    dir: &Path,
    listener: TcpListener,
    stop: CancellationToken,
) -> Result<Drained, Box<dyn Error + Send + Sync>> {
    let router = Router::new().route("/hello", get(hello));

    let mut runtime = Runtime::new();
    let files = MaterialFiles::in_dir(dir);
    let material = runtime
        .material(files, Usage::Server, WatchOptions::default())
        .await?;
    let server = Server::builder(Security::mutual(material))
        .protocols(Protocols::H2AndHttp1)
        .build();
    let serving = server.serve(listener.into(), router, stop);
    Ok(runtime.run_while(serving).await?)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error + Send + Sync>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(dir), Some(address)) = (arguments.next(), arguments.next()) else {
        return Err("usage: axum_server FOLDER ADDRESS:PORT".into());
    };
    let listener = TcpListener::bind(address).await?;
    let stop = CancellationToken::new();
    let mut serving = pin!(serve(Path::new(&dir), listener, stop.clone()));
    tokio::select! {
        ended = &mut serving => return ended.map(drop),
        interrupted = tokio::signal::ctrl_c() => interrupted?,
    }
    stop.cancel();
    serving.await.map(drop)
}
