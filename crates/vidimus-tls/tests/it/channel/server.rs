//! A gRPC server of stock rustls and hyper, whose connections can be drained one by one.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::service::TowerToHyperService;
use rustls::{RootCertStore, ServerConfig};
use rustls_pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite};
use tokio::net::{TcpListener, TcpStream, UnixListener};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tonic::service::Routes;
use vidimus_testkit::echo::EchoLog;
use vidimus_testkit::{Authority, Credential, EchoService, wait_until_async};
use vidimus_tls::identity::Fingerprint;

use crate::support::DEADLINE;

/// TLS as a stock rustls server does it.
#[expect(
    clippy::disallowed_methods,
    reason = "this server stands for a foreign one"
)]
pub(crate) fn rustls_config(credential: &Credential, client_root: &Authority) -> ServerConfig {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut roots = RootCertStore::empty();
    roots
        .add(client_root.der().to_vec().into())
        .expect("a root");
    let verifier = rustls::server::WebPkiClientVerifier::builder_with_provider(
        Arc::new(roots),
        Arc::clone(&provider),
    )
    .build()
    .expect("a verifier");
    let chain = credential
        .chain_der()
        .iter()
        .cloned()
        .map(CertificateDer::from)
        .collect();
    let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(credential.key_der().to_vec()));
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("protocol versions")
        .with_client_cert_verifier(verifier)
        .with_single_cert(chain, key)
        .expect("a server certificate");
    config.alpn_protocols = vec![b"h2".to_vec()];
    config
}

/// The client certificate of a connection.
#[derive(Clone)]
struct Presented(Fingerprint);

/// What the connections share.
struct Shared {
    tls: Option<TlsAcceptor>,
    routes: Routes,
    /// Calls at once on a connection; `None` leaves it to hyper.
    max_streams: Option<u32>,
    /// Says nothing before it has heard the client's preface, as HAProxy does.
    waits: bool,
    /// Raised to drain every connection that has carried a call.
    drains: watch::Sender<u64>,
    /// Connections that have carried a call since the last drain.
    used: AtomicU64,
    accepted: AtomicU64,
    open: AtomicU64,
}

/// A running server; its peer is the fingerprint of the client's certificate. Dropped, it cuts its connections.
pub(crate) struct TestServer {
    pub(crate) address: SocketAddr,
    pub(crate) log: EchoLog,
    shared: Arc<Shared>,
    _tasks: JoinSet<()>,
}

impl TestServer {
    pub(crate) async fn mutual(config: ServerConfig) -> Self {
        Self::mutual_on(config, 0).await
    }

    pub(crate) async fn mutual_on(config: ServerConfig, port: u16) -> Self {
        Self::start(Some(config), port, None).await
    }

    /// The same with a limit on the calls of a connection.
    pub(crate) async fn mutual_with(config: ServerConfig, max_streams: u32) -> Self {
        Self::start(Some(config), 0, Some(max_streams)).await
    }

    /// A server that says nothing before it has heard the client's preface, as HAProxy does.
    pub(crate) async fn mutual_waiting(config: ServerConfig) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a port");
        let (mut shared, log) = shared(Some(config), None);
        shared.waits = true;
        Self::serve(listener, shared, log)
    }

    pub(crate) async fn plaintext() -> Self {
        Self::start(None, 0, None).await
    }

    pub(crate) async fn plaintext_with(max_streams: u32) -> Self {
        Self::start(None, 0, Some(max_streams)).await
    }

    /// Plaintext on a listener that is there already.
    pub(crate) fn plaintext_at(listener: TcpListener) -> Self {
        let (shared, log) = shared(None, None);
        Self::serve(listener, shared, log)
    }

    async fn start(config: Option<ServerConfig>, port: u16, max_streams: Option<u32>) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", port))
            .await
            .expect("a port");
        let (shared, log) = shared(config, max_streams);
        Self::serve(listener, shared, log)
    }

    fn serve(listener: TcpListener, shared: Shared, log: EchoLog) -> Self {
        let address = listener.local_addr().expect("an address");
        let shared = Arc::new(shared);
        let mut tasks = JoinSet::new();
        tasks.spawn(accept(listener, Arc::clone(&shared)));
        Self {
            address,
            log,
            shared,
            _tasks: tasks,
        }
    }

    pub(crate) fn target(&self) -> String {
        self.address.to_string()
    }

    /// Drains every connection that has carried a call; gives their number.
    pub(crate) fn drain(&self) -> u64 {
        let used = self.shared.used.swap(0, Ordering::SeqCst);
        self.shared.drains.send_modify(|drains| *drains += 1);
        used
    }

    pub(crate) fn accepted(&self) -> u64 {
        self.shared.accepted.load(Ordering::SeqCst)
    }

    /// Connections that have passed their handshake and not ended.
    pub(crate) fn open(&self) -> u64 {
        self.shared.open.load(Ordering::SeqCst)
    }

    /// Waits until so many are open.
    pub(crate) async fn until_open(&self, expected: u64) {
        wait_until_async(DEADLINE, || async {
            let open = self.open();
            if open == expected {
                Ok(())
            } else {
                Err(format!("{open} connections are open"))
            }
        })
        .await;
    }
}

/// Serves a UNIX socket until dropped.
pub(crate) fn serve_unix(listener: UnixListener) -> JoinSet<()> {
    let (shared, _log) = shared(None, None);
    let shared = Arc::new(shared);
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        let mut connections = JoinSet::new();
        while let Ok((socket, _)) = listener.accept().await {
            connections.spawn(serve(socket, None, Arc::clone(&shared)));
        }
    });
    tasks
}

fn shared(config: Option<ServerConfig>, max_streams: Option<u32>) -> (Shared, EchoLog) {
    let service = EchoService::new(|extensions| {
        extensions
            .get::<Presented>()
            .map_or_else(String::new, |presented| presented.0.to_string())
    });
    let log = service.log();
    let shared = Shared {
        tls: config.map(|config| TlsAcceptor::from(Arc::new(config))),
        routes: Routes::new(service.into_server()).prepare(),
        max_streams,
        waits: false,
        drains: watch::Sender::default(),
        used: AtomicU64::new(0),
        accepted: AtomicU64::new(0),
        open: AtomicU64::new(0),
    };
    (shared, log)
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    let mut connections = JoinSet::new();
    while let Ok((socket, _)) = listener.accept().await {
        shared.accepted.fetch_add(1, Ordering::SeqCst);
        connections.spawn(secure(socket, Arc::clone(&shared)));
        while connections.try_join_next().is_some() {}
    }
}

async fn secure(socket: TcpStream, shared: Arc<Shared>) {
    let _best_effort = socket.set_nodelay(true);
    let Some(acceptor) = shared.tls.clone() else {
        return serve(socket, None, shared).await;
    };
    // A failed handshake drops the socket at once, with whatever the client had sent unread: as most servers do.
    if let Ok(stream) = acceptor.accept(socket).await {
        let presented = stream
            .get_ref()
            .1
            .peer_certificates()
            .and_then(|chain| chain.first())
            .map(|leaf| Presented(Fingerprint::of(leaf)));
        if !shared.waits {
            return serve(stream, presented, shared).await;
        }
        let (mut reader, writer) = tokio::io::split(stream);
        let mut preface = [0; 24];
        if reader.read_exact(&mut preface).await.is_ok() {
            let reader = std::io::Cursor::new(preface).chain(reader);
            serve(tokio::io::join(reader, writer), presented, shared).await;
        }
    }
}

async fn serve(
    io: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    presented: Option<Presented>,
    shared: Arc<Shared>,
) {
    let mut drains = shared.drains.subscribe();
    let routes = shared.routes.clone();
    let used = Arc::new(AtomicBool::new(false));
    let (marking, marked) = (Arc::clone(&shared), Arc::clone(&used));
    let service = tower::service_fn(move |mut request: http::Request<hyper::body::Incoming>| {
        if !marked.swap(true, Ordering::SeqCst) {
            marking.used.fetch_add(1, Ordering::SeqCst);
        }
        if let Some(presented) = presented.clone() {
            request.extensions_mut().insert(presented);
        }
        let mut routes = routes.clone();
        async move { tower::Service::call(&mut routes, request).await }
    });
    let drained = async move {
        while drains.changed().await.is_ok() {
            if used.load(Ordering::SeqCst) {
                return;
            }
        }
    };
    shared.open.fetch_add(1, Ordering::SeqCst);
    {
        let mut builder = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
        if let Some(limit) = shared.max_streams {
            builder.max_concurrent_streams(limit);
        }
        let connection =
            builder.serve_connection(TokioIo::new(io), TowerToHyperService::new(service));
        let mut connection = std::pin::pin!(connection);
        tokio::select! {
            _ended = connection.as_mut() => {}
            () = drained => {
                connection.as_mut().graceful_shutdown();
                let _ended = connection.await;
            }
        }
    }
    shared.open.fetch_sub(1, Ordering::SeqCst);
}
