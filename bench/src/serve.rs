//! Our acceptor as a server by itself, for what is measured beside programs that speak no gRPC.

use std::{convert::Infallible, net::SocketAddr, path::PathBuf};

use clap::Args;
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;
use vidimus_tls::{
    config::Protocols,
    material::{MaterialFiles, Usage},
    policy::AllowList,
    server::{Connection, Security, Server},
    watch::{MaterialWatch, WatchOptions},
};

use crate::drive::CLIENT_NAME;

/// How the server is to serve.
#[derive(Clone, Debug, Args)]
pub(crate) struct Options {
    /// Where to listen.
    #[arg(long)]
    address: SocketAddr,

    /// Folder with tls.crt, tls.key and ca.crt.
    #[arg(long)]
    tls_dir: PathBuf,

    /// Copy the bytes of each connection to and from a new one to this address; without it, answer HTTP requests.
    #[arg(long)]
    forward: Option<SocketAddr>,
}

/// Serves until it is killed.
pub(crate) fn run(options: &Options) -> anyhow::Result<()> {
    tokio::runtime::Runtime::new()?.block_on(serve(options))
}

async fn serve(options: &Options) -> anyhow::Result<()> {
    let files = MaterialFiles::in_dir(&options.tls_dir);
    let (material, driver) =
        MaterialWatch::start(files, Usage::Server, WatchOptions::default()).await?;
    let listener = TcpListener::bind(options.address).await?.into();
    let never = CancellationToken::new();
    let server =
        Server::builder(Security::mutual(material)).allow_list(AllowList::parse(CLIENT_NAME)?);
    let watching = driver.run(never.clone());
    if let Some(backend) = options.forward {
        let server = server.protocols(Protocols::None).build();
        let forward = move |connection: Connection| copy(connection, backend);
        let serving = server.serve_raw(listener, forward, never.clone());
        tokio::join!(serving, watching).0?;
    } else {
        let server = server.protocols(Protocols::H2AndHttp1).build();
        let answer = tower::service_fn(|_request| async {
            Ok::<_, Infallible>(http::Response::new(String::new()))
        });
        let serving = server.serve(listener, answer, never.clone());
        tokio::join!(serving, watching).0?;
    }
    Ok(())
}

async fn copy(mut connection: Connection, backend: SocketAddr) {
    let Ok(mut back) = TcpStream::connect(backend).await else {
        return;
    };
    // An end with an error is an end as well.
    let _ended = tokio::io::copy_bidirectional(&mut connection.stream, &mut back).await;
}
