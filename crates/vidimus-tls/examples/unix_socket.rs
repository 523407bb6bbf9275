//! A server on a UNIX socket, for its own user alone: no certificates, but the kernel's word about who connects.
//!
//! `cargo run --example unix_socket --features axum -- /run/example/socket`, then
//! `curl --unix-socket /run/example/socket http://local/hello`

use std::error::Error;
use std::path::Path;
use std::pin::pin;

use axum::Router;
use axum::routing::get;
use tokio_util::sync::CancellationToken;
use vidimus_tls::config::Protocols;
use vidimus_tls::identity::PeerIdentity;
use vidimus_tls::server::{Drained, Listener, LocalPeers, Security, Server, UnixOptions};

async fn hello(peer: PeerIdentity) -> String {
    format!("hello {}\n", peer.label()) // hello uid=1000
}

/// Serves until `stop`.
pub(crate) async fn serve(
    path: &Path,
    stop: CancellationToken,
) -> Result<Drained, Box<dyn Error + Send + Sync>> {
    let router = Router::new().route("/hello", get(hello));
    // Its mode is right before anybody can connect, and the socket of a server that is alive is never taken away.
    let listener = Listener::bind_unix(path, UnixOptions::default())?;
    let server = Server::builder(Security::Local(LocalPeers::owner()))
        .protocols(Protocols::H2AndHttp1)
        .build();
    Ok(server.serve(listener, router, stop).await?)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error + Send + Sync>> {
    let Some(path) = std::env::args().nth(1) else {
        return Err("usage: unix_socket PATH".into());
    };
    let stop = CancellationToken::new();
    let mut serving = pin!(serve(Path::new(&path), stop.clone()));
    tokio::select! {
        ended = &mut serving => return ended.map(drop),
        interrupted = tokio::signal::ctrl_c() => interrupted?,
    }
    stop.cancel();
    serving.await.map(drop)
}
