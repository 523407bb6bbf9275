//! What the themes share: a running server, a TLS client that is not ours, and the log.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Mutex};
use std::time::Duration;

use hyper_util::rt::TokioIo;
use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, ServerName};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_util::sync::CancellationToken;
use tonic::service::Routes;
use tonic::transport::{Channel, Endpoint};
use vidimus_proto::testkit::v1::echo_client::EchoClient;
use vidimus_proto::testkit::v1::{EchoRequest, EchoResponse};
use vidimus_testkit::echo::EchoLog;
use vidimus_testkit::{Authority, Credential, EchoService, Pki, wait_until_async};
use vidimus_tls::clock::Clock;
use vidimus_tls::events::{Event, EventReceiver, Events};
use vidimus_tls::identity::PeerIdentity;
use vidimus_tls::material::{MaterialFiles, Usage};
use vidimus_tls::policy::{AllowList, PolicyDriver, PolicyWatch};
use vidimus_tls::server::{Drained, Limits, Listener, Security, Server};
use vidimus_tls::watch::{MaterialWatch, WatchOptions};

/// No test waits longer for anything; a healthy run needs a small part of it.
pub(crate) const DEADLINE: Duration = Duration::from_secs(30);

/// The name in every server certificate here.
pub(crate) const SERVER: &str = "server.test";

/// Awaits with the common deadline.
pub(crate) async fn soon<F: Future>(what: &str, future: F) -> F::Output {
    match timeout(DEADLINE, future).await {
        Ok(output) => output,
        Err(_) => panic!("{what}: not within {DEADLINE:?}"),
    }
}

/// The next event that was reported; none before it was missed.
pub(crate) async fn next_event(heard: &mut EventReceiver) -> Event {
    let record = soon("an event", heard.next()).await.expect("an event");
    assert_eq!(record.missed, 0);
    record.event
}

/// An echo server on a port of its own, with everything it needs to run.
pub(crate) struct Running {
    pub(crate) address: SocketAddr,
    pub(crate) server: Server,
    pub(crate) log: EchoLog,
    shutdown: CancellationToken,
    tasks: JoinSet<Option<Drained>>,
}

/// How a server is to be started.
#[derive(Default)]
pub(crate) struct Setup {
    pub(crate) allow: &'static str,
    /// In place of `allow`.
    pub(crate) policy: Option<PolicyWatch>,
    pub(crate) limits: Limits,
    pub(crate) clock: Clock,
    pub(crate) events: Events,
    /// How files are followed, in place of [`quick`].
    pub(crate) watch: Option<WatchOptions>,
    /// The networks whose connections begin with a PROXY header.
    pub(crate) proxies: &'static str,
}

impl Running {
    /// Serves with the given security.
    pub(crate) async fn start(security: Security, setup: Setup) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a port");
        let address = listener.local_addr().expect("the port's address");
        let mut listener = Listener::from(listener);
        if !setup.proxies.is_empty() {
            let networks = setup.proxies.parse().expect("networks");
            listener = listener.with_proxy_protocol(networks).expect("it is TCP");
        }
        let policy = setup.policy.unwrap_or_else(|| {
            let list = AllowList::parse(setup.allow).expect("a list");
            PolicyWatch::fixed(list)
        });
        let server = Server::builder(security)
            .policy(policy)
            .limits(setup.limits)
            .clock(setup.clock)
            .events(setup.events)
            .build();
        let service = EchoService::new(|extensions| {
            extensions
                .get::<PeerIdentity>()
                .map_or_else(|| "none".to_owned(), PeerIdentity::label)
        });
        let log = service.log();
        let (_reporter, health) = tonic_health::server::health_reporter();
        let routes = Routes::new(service.into_server()).add_service(health);
        let shutdown = CancellationToken::new();
        let mut tasks = JoinSet::new();
        let (serving, token) = (server.clone(), shutdown.clone());
        tasks.spawn(async move {
            let drained = serving.serve(listener, routes, token).await;
            Some(drained.expect("the server serves"))
        });
        Self {
            address,
            server,
            log,
            shutdown,
            tasks,
        }
    }

    /// Serves with material from a folder that is followed.
    pub(crate) async fn follow(dir: &Path, setup: Setup) -> (Self, MaterialWatch) {
        let options = WatchOptions {
            events: setup.events.clone(),
            ..setup.watch.clone().unwrap_or_else(quick)
        };
        let files = MaterialFiles::in_dir(dir);
        let (watch, driver) = MaterialWatch::start(files, Usage::Server, options)
            .await
            .expect("good material");
        let mut running = Self::start(Security::mutual(watch.clone()), setup).await;
        let token = running.shutdown.clone();
        running.tasks.spawn(async move {
            driver.run(token).await;
            None
        });
        (running, watch)
    }

    /// Runs a policy's driver until the server stops.
    pub(crate) fn drive(&mut self, driver: PolicyDriver) {
        let token = self.shutdown.clone();
        self.tasks.spawn(async move {
            driver.run(token).await;
            None
        });
    }

    /// Begins the shutdown and waits for its end.
    pub(crate) async fn stop(mut self) -> Drained {
        self.shutdown.cancel();
        let mut drained = None;
        while let Some(ended) = soon("the server's end", self.tasks.join_next()).await {
            drained = ended.expect("no task panics").or(drained);
        }
        drained.expect("the server's own task")
    }

    pub(crate) fn begin_shutdown(&self) {
        self.shutdown.cancel();
    }
}

/// Watch timings that make a test short; what is shortened is only how long quiet takes.
pub(crate) fn quick() -> WatchOptions {
    WatchOptions {
        poll: Duration::from_millis(200),
        settle: Duration::from_millis(20),
        ..WatchOptions::default()
    }
}

/// Without the poll: what is noticed is noticed by the system's events.
pub(crate) fn by_events() -> WatchOptions {
    WatchOptions {
        poll: Duration::from_secs(3600),
        ..WatchOptions::default()
    }
}

/// Writes in place, as an editor or a careless script does.
pub(crate) fn put(path: impl AsRef<Path>, content: impl AsRef<[u8]>) {
    #[expect(
        clippy::disallowed_methods,
        reason = "a test's files need not survive a crash"
    )]
    std::fs::write(path, content).expect("a write");
}

/// The certificate that a new connection is shown.
pub(crate) async fn served(client: &Client, running: &Running) -> Vec<u8> {
    let stream = client.connect(running.address).await.expect("a handshake");
    let chain = stream.get_ref().1.peer_certificates().expect("a chain");
    chain[0].to_vec()
}

/// Waits until new connections are shown this certificate.
pub(crate) async fn wait_served(client: &Client, running: &Running, leaf: &Credential) {
    wait_until_async(DEADLINE, || async {
        if served(client, running).await == leaf.leaf_der() {
            Ok(())
        } else {
            Err("the old certificate is still served")
        }
    })
    .await;
}

/// A clock that a test puts ahead by so many seconds.
pub(crate) fn clock(ahead: &Arc<AtomicU64>) -> Clock {
    let (ahead, real) = (Arc::clone(ahead), Clock::system());
    Clock::from_fn(move || real.now() + Duration::from_secs(ahead.load(Ordering::Relaxed)))
}

/// A PKI with a server's material in a folder.
pub(crate) struct World {
    pub(crate) pki: Pki,
    pub(crate) dir: tempfile::TempDir,
}

impl World {
    pub(crate) fn new() -> Self {
        let pki = Pki::new("Example");
        let dir = tempfile::tempdir().expect("a folder");
        let world = Self { pki, dir };
        world
            .server_leaf()
            .write_dir(world.dir.path(), &[&world.pki.root]);
        world
    }

    pub(crate) fn server_leaf(&self) -> Credential {
        self.pki.leaf("server").dns(SERVER).server().issue()
    }

    pub(crate) fn client(&self) -> Client {
        Client::new(&self.pki.root)
            .with(&self.pki.leaf("client").dns("client.test").client().issue())
    }
}

/// A TLS client made of plain rustls, with none of the crate's own configuration.
#[derive(Clone)]
pub(crate) struct Client {
    roots: RootCertStore,
    identity: Option<(Vec<CertificateDer<'static>>, Vec<u8>)>,
    pub(crate) alpn: Vec<&'static [u8]>,
    resumption: Option<rustls::client::Resumption>,
    /// What it sends before TLS.
    first: Vec<u8>,
}

impl Client {
    pub(crate) fn new(root: &Authority) -> Self {
        let mut roots = RootCertStore::empty();
        roots.add(root.der().to_vec().into()).expect("a root");
        Self {
            roots,
            identity: None,
            alpn: vec![b"h2"],
            resumption: None,
            first: Vec::new(),
        }
    }

    pub(crate) fn trusting(mut self, root: &Authority) -> Self {
        self.roots.add(root.der().to_vec().into()).expect("a root");
        self
    }

    pub(crate) fn with(mut self, credential: &Credential) -> Self {
        let chain = credential
            .chain_der()
            .iter()
            .cloned()
            .map(CertificateDer::from)
            .collect();
        self.identity = Some((chain, credential.key_der().to_vec()));
        self
    }

    /// An identity from PEM with a PKCS#8 key.
    pub(crate) fn with_pem(mut self, chain: &str, key: &str) -> Self {
        use rustls_pki_types::pem::PemObject;
        let chain = CertificateDer::pem_slice_iter(chain.as_bytes());
        let chain = chain.collect::<Result<_, _>>().expect("a chain");
        let key = PrivatePkcs8KeyDer::from_pem_slice(key.as_bytes()).expect("a key");
        self.identity = Some((chain, key.secret_pkcs8_der().to_vec()));
        self
    }

    pub(crate) fn alpn(mut self, alpn: &[&'static [u8]]) -> Self {
        self.alpn = alpn.to_vec();
        self
    }

    pub(crate) fn sending_first(mut self, bytes: &[u8]) -> Self {
        self.first = bytes.to_vec();
        self
    }

    pub(crate) fn resuming(mut self) -> Self {
        self.resumption = Some(rustls::client::Resumption::in_memory_sessions(8));
        self
    }

    fn config(&self) -> Arc<ClientConfig> {
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let time = Arc::new(rustls::time_provider::DefaultTimeProvider);
        let builder = ClientConfig::builder_with_details(provider, time)
            .with_safe_default_protocol_versions()
            .expect("protocol versions")
            .with_root_certificates(self.roots.clone());
        let mut config = match &self.identity {
            Some((chain, key)) => {
                let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key.clone()));
                builder
                    .with_client_auth_cert(chain.clone(), key)
                    .expect("a client identity")
            }
            None => builder.with_no_client_auth(),
        };
        config.alpn_protocols = self.alpn.iter().map(|name| name.to_vec()).collect();
        if let Some(resumption) = &self.resumption {
            config.resumption = resumption.clone();
        }
        Arc::new(config)
    }

    /// The client's side of a connection that the test carries by hand.
    pub(crate) fn connection(&self) -> rustls::ClientConnection {
        let name = ServerName::try_from(SERVER).expect("a name");
        rustls::ClientConnection::new(self.config(), name).expect("a configuration")
    }

    /// The TLS handshake alone.
    pub(crate) async fn connect(&self, address: SocketAddr) -> io::Result<TlsStream<TcpStream>> {
        self.shake_hands(TcpStream::connect(address).await?).await
    }

    /// The same over a connection that is there already.
    pub(crate) async fn shake_hands(&self, mut tcp: TcpStream) -> io::Result<TlsStream<TcpStream>> {
        tcp.set_nodelay(true)?;
        tcp.write_all(&self.first).await?;
        let name = ServerName::try_from(SERVER).expect("a name");
        soon(
            "the handshake",
            TlsConnector::from(self.config()).connect(name, tcp),
        )
        .await
    }

    /// The names of the CAs that the server asks for a certificate of.
    pub(crate) async fn asked_for(&self, address: SocketAddr) -> Vec<Vec<u8>> {
        let asked = Arc::new(Asked::default());
        let mut config = ClientConfig::clone(&self.config());
        config.client_auth_cert_resolver = Arc::<Asked>::clone(&asked);
        let tcp = TcpStream::connect(address).await.expect("a connection");
        let name = ServerName::try_from(SERVER).expect("a name");
        let connecting = TlsConnector::from(Arc::new(config)).connect(name, tcp);
        soon("the handshake", connecting)
            .await
            .expect("its own half");
        let names = asked.0.lock().expect("the names");
        names.clone()
    }

    /// What becomes of a connection whose client writes at once and then reads: `None` if the server speaks HTTP/2, else
    /// the name of the alert or what else the client saw.
    pub(crate) async fn refusal(&self, address: SocketAddr) -> Option<String> {
        let outcome = async {
            let mut stream = self.connect(address).await?;
            stream
                .write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0")
                .await?;
            stream.flush().await?;
            let mut byte = [0; 1];
            match stream.read(&mut byte).await? {
                0 => Err(io::Error::other("closed")),
                _ => Ok(()),
            }
        };
        match soon("an answer or a refusal", outcome).await {
            Ok(()) => None,
            Err(error) => Some(alert_name(error)),
        }
    }

    /// A gRPC client over one connection, made now.
    pub(crate) async fn echo(&self, address: SocketAddr) -> EchoClient<Channel> {
        EchoClient::new(self.channel(address).await.expect("a connection"))
    }

    pub(crate) async fn channel(
        &self,
        address: SocketAddr,
    ) -> Result<Channel, tonic::transport::Error> {
        let client = self.clone();
        let connector = tower::service_fn(move |_| {
            let client = client.clone();
            async move { client.connect(address).await.map(TokioIo::new) }
        });
        Endpoint::from_static("http://server.test")
            .connect_with_connector(connector)
            .await
    }
}

/// Has no certificate, and remembers which would have been wanted.
#[derive(Debug, Default)]
struct Asked(Mutex<Vec<Vec<u8>>>);

impl rustls::client::ResolvesClientCert for Asked {
    fn resolve(
        &self,
        names: &[&[u8]],
        _schemes: &[rustls::SignatureScheme],
    ) -> Option<Arc<rustls::sign::CertifiedKey>> {
        *self.0.lock().expect("the names") = names.iter().map(|name| name.to_vec()).collect();
        None
    }

    fn has_certs(&self) -> bool {
        true
    }
}

fn alert_name(error: io::Error) -> String {
    let text = error.to_string();
    match error.downcast::<rustls::Error>() {
        Ok(rustls::Error::AlertReceived(alert)) => format!("{alert:?}"),
        Ok(other) => other.to_string(),
        Err(_) => text,
    }
}

pub(crate) fn request(message: &str) -> EchoRequest {
    EchoRequest {
        message: message.to_owned(),
        ..EchoRequest::default()
    }
}

/// One unary call; the server's view of the caller.
pub(crate) async fn call(client: &mut EchoClient<Channel>) -> Result<EchoResponse, tonic::Status> {
    let called = soon("a call", client.unary(request("hello"))).await?;
    Ok(called.into_inner())
}

/// The log lines of the current thread while it lives.
pub(crate) struct LogCapture {
    lines: Arc<Mutex<Vec<u8>>>,
    _guard: tracing::subscriber::DefaultGuard,
}

impl LogCapture {
    pub(crate) fn start() -> Self {
        // With one subscriber alive, tracing asks the current thread's alone whether a place in the code is of interest,
        // and remembers the answer for all threads. A second one, which wants nothing, makes it ask every subscriber.
        static SECOND: LazyLock<tracing::Dispatch> =
            LazyLock::new(|| tracing::Dispatch::new(tracing::subscriber::NoSubscriber::new()));
        LazyLock::force(&SECOND);
        let lines = Arc::new(Mutex::new(Vec::new()));
        let writer = Arc::clone(&lines);
        let subscriber = tracing_subscriber::fmt()
            .with_ansi(false)
            .with_max_level(tracing::Level::DEBUG)
            .with_writer(move || Writer(Arc::clone(&writer)))
            .finish();
        Self {
            lines,
            _guard: tracing::subscriber::set_default(subscriber),
        }
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.lines.lock().expect("the lines")).into_owned()
    }

    /// The lines that contain all of `parts`.
    pub(crate) fn lines_with(&self, parts: &[&str]) -> Vec<String> {
        let text = self.text();
        let fitting = text
            .lines()
            .filter(|line| parts.iter().all(|part| line.contains(part)));
        fitting.map(str::to_owned).collect()
    }
}

struct Writer(Arc<Mutex<Vec<u8>>>);

impl io::Write for Writer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().expect("the lines").extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
