//! A tonic server with mutual TLS that takes new certificates and roots into use while it runs.
//!
//! `cargo run --example tonic_server --features tonic -- /etc/example/tls 0.0.0.0:9443`

use std::error::Error;
use std::path::Path;
use std::pin::pin;

use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tonic::service::Routes;
use vidimus_tls::material::{MaterialFiles, Usage};
use vidimus_tls::policy::AllowList;
use vidimus_tls::runtime::Runtime;
use vidimus_tls::server::{Drained, Security, Server};
use vidimus_tls::watch::WatchOptions;

/// Serves until `stop`; `dir` holds `tls.crt`, `tls.key` and `ca.crt`.
pub(crate) async fn serve(
    dir: &Path,
    listener: TcpListener,
    stop: CancellationToken,
) -> Result<Drained, Box<dyn Error + Send + Sync>> {
    let (_reporter, health) = tonic_health::server::health_reporter();
    let routes = Routes::new(health); // .add_service(YourServer::new(...))

    let mut runtime = Runtime::new();
    let files = MaterialFiles::in_dir(dir);
    let material = runtime
        .material(files, Usage::Server, WatchOptions::default())
        .await?;
    let server = Server::builder(Security::mutual(material))
        .allow_list(AllowList::parse("client.example")?)
        .build();
    let serving = server.serve(listener.into(), routes, stop);
    Ok(runtime.run_while(serving).await?)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error + Send + Sync>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(dir), Some(address)) = (arguments.next(), arguments.next()) else {
        return Err("usage: tonic_server FOLDER ADDRESS:PORT".into());
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
