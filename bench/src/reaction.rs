//! How long a change of the files takes to show: a new certificate until it is served, a removed root until the
//! connections that rest on it are closed.
//!
//! The files are replaced as the kubelet does it; the time begins before the swap, so it includes writing them.

use std::{
    net::SocketAddr,
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Context, ensure};
use rustls_pki_types::ServerName;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    time::timeout,
};
use tokio_rustls::{TlsConnector, client::TlsStream};
use tokio_util::sync::CancellationToken;
use vidimus_testkit::{Authority, Credential, Pki, kubelet::Volume};
use vidimus_tls::{
    clock::Clock,
    config::{self, ClientCertificate, ServerVerification},
    identity::Fingerprint,
    material::{Identity, Material, MaterialFiles, Trust, Usage},
    server::{Security, Server},
    watch::{MaterialWatch, WatchOptions},
};

use crate::{
    report::{Figure, Metric, Report},
    stats::Spread,
};

const NAME: &str = "server.bench.example";
/// How often each change is made.
const CHANGES: usize = 50;
/// How long one may take at most.
const DEADLINE: Duration = Duration::from_secs(30);
/// What opens an HTTP/2 connection: the preface and empty settings (RFC 9113 §3.4).
const OPENING: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
/// A frame's type, and the flag that makes it an answer (RFC 9113 §6.7).
const PING: u8 = 6;
const ACK: u8 = 1;

/// Measures both.
pub(crate) fn measure(report: &mut Report) -> anyhow::Result<()> {
    report.say("\nfrom a change of the files until it shows")?;
    let runtime = tokio::runtime::Runtime::new()?;
    let folder = tempfile::tempdir()?;
    let (served, closed) = runtime.block_on(reactions(folder.path()))?;
    for (name, mut took) in [
        ("new certificate until served", served),
        ("removed root until closed", closed),
    ] {
        took.sort();
        for (percent, suffix) in [(50, "p50"), (99, "p99")] {
            let at = (took.len() * percent).div_ceil(100).saturating_sub(1);
            let micros = took.get(at).context("no change")?.as_secs_f64() * 1e6;
            report.figure(&Figure {
                name: format!("{name}, {suffix}"),
                metric: Metric::Latency,
                keys: "P-384",
                ours: Ok(Spread::single(micros)),
                peer: Err(String::new()),
                peer_name: "",
            })?;
        }
    }
    Ok(())
}

async fn reactions(folder: &Path) -> anyhow::Result<(Vec<Duration>, Vec<Duration>)> {
    let (stays, leaves) = (Pki::new("Stays"), Pki::new("Leaves"));
    let leaf = || stays.leaf("server").dns(NAME).server().issue();
    let both = [&stays.root, &leaves.root];
    let mut server = leaf();
    let mut volume = server.write_volume(folder, &both);
    let (material, driver) = MaterialWatch::start(
        MaterialFiles::in_dir(folder),
        Usage::Server,
        WatchOptions::default(),
    )
    .await?;
    let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
    let address = listener.local_addr()?;
    let stop = CancellationToken::new();
    let running = Server::builder(Security::mutual(material)).build();
    let service = tower::service_fn(|_request| async {
        Ok::<_, std::convert::Infallible>(http::Response::new(String::new()))
    });
    let serving = running.serve(listener.into(), service, stop.clone());
    let measuring = async {
        let trusted = caller(&stays, &stays.root)?;
        let doomed = caller(&leaves, &stays.root)?;
        let (mut served, mut closed) = (Vec::new(), Vec::new());
        for _ in 0..CHANGES {
            server = leaf();
            served.push(until_served(&mut volume, &server, &both, &trusted, address).await?);
            closed.push(until_closed(&mut volume, &server, &stays.root, &doomed, address).await?);
            // The root comes back, and is back once its holder is accepted again.
            volume.swap(&server.files(&both));
            until_accepted(&doomed, address).await?;
        }
        Ok((served, closed))
    };
    let result = tokio::select! {
        measured = measuring => measured,
        ended = serving => Err(anyhow::anyhow!("the server ended: {ended:?}")),
        () = driver.run(stop.clone()) => Err(anyhow::anyhow!("the watch ended")),
    };
    stop.cancel();
    result
}

/// A client's material: a leaf of one CA that trusts another.
fn caller(of: &Pki, trusts: &Authority) -> anyhow::Result<Material> {
    let now = Clock::system().now();
    let leaf = of
        .leaf("client")
        .dns("client.bench.example")
        .client()
        .issue();
    let identity = Identity::from_pem(
        leaf.chain_pem().as_bytes(),
        leaf.key_pem().as_bytes(),
        Usage::Client,
        now,
    )?;
    Ok(Material::of(
        identity,
        Trust::from_pem(trusts.pem().as_bytes(), now)?,
    ))
}

async fn until_served(
    volume: &mut Volume,
    server: &Credential,
    roots: &[&Authority],
    caller: &Material,
    address: SocketAddr,
) -> anyhow::Result<Duration> {
    let began = Instant::now();
    volume.swap(&server.files(roots));
    let wanted = Fingerprint::of(server.leaf_der());
    loop {
        let stream = connect(caller, address).await?;
        let presented = stream.get_ref().1.peer_certificates();
        let presented = presented.and_then(<[_]>::first).context("no certificate")?;
        if Fingerprint::of(presented) == wanted {
            return Ok(began.elapsed());
        }
        ensure!(began.elapsed() < DEADLINE, "not served after {DEADLINE:?}");
    }
}

async fn until_closed(
    volume: &mut Volume,
    server: &Credential,
    root: &Authority,
    caller: &Material,
    address: SocketAddr,
) -> anyhow::Result<Duration> {
    let mut stream = open(caller, address).await?;
    let began = Instant::now();
    volume.swap(&server.files(&[root]));
    // An error is a closed connection as well.
    let closed = async { while answer(&mut stream).await.is_ok() {} };
    timeout(DEADLINE, closed).await.context("not closed")?;
    Ok(began.elapsed())
}

async fn until_accepted(caller: &Material, address: SocketAddr) -> anyhow::Result<()> {
    let accepted = async { while open(caller, address).await.is_err() {} };
    timeout(DEADLINE, accepted)
        .await
        .context("never accepted again")
}

/// Reads one frame and answers a ping, as every client does: a server that drains waits for that before it closes.
async fn answer(stream: &mut TlsStream<TcpStream>) -> std::io::Result<()> {
    let mut header = [0; 9];
    stream.read_exact(&mut header).await?;
    let [high, middle, low, kind, flags, ..] = header;
    let length = u32::from_be_bytes([0, high, middle, low]);
    let mut payload = Vec::new();
    stream.take(length.into()).read_to_end(&mut payload).await?;
    if kind == PING && flags & ACK == 0 {
        stream.write_all(&[0, 0, 8, PING, ACK, 0, 0, 0, 0]).await?;
        stream.write_all(&payload).await?;
        stream.flush().await?;
    }
    Ok(())
}

/// An HTTP/2 connection that the server has accepted: its settings have come.
async fn open(caller: &Material, address: SocketAddr) -> anyhow::Result<TlsStream<TcpStream>> {
    let mut stream = connect(caller, address).await?;
    stream.write_all(OPENING).await?;
    answer(&mut stream).await?;
    Ok(stream)
}

async fn connect(caller: &Material, address: SocketAddr) -> anyhow::Result<TlsStream<TcpStream>> {
    let handshake = config::client_config(
        caller,
        ServerVerification::Roots,
        ClientCertificate::Presented,
        &Clock::system(),
    )?;
    let socket = TcpStream::connect(address).await?;
    socket.set_nodelay(true)?;
    let name = ServerName::try_from(NAME)?;
    Ok(TlsConnector::from(Arc::clone(&handshake.config))
        .connect(name, socket)
        .await?)
}
