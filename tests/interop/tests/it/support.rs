//! A provider or a manager of ours, and a Go process on the other side.

use std::{
    future::Future,
    io::{BufRead as _, BufReader},
    net::{Ipv4Addr, SocketAddr},
    path::{Path, PathBuf},
    process::{Child, ChildStdin, Command, Stdio},
    time::Duration,
};

use serde_json::Value;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    sync::mpsc,
    task::JoinSet,
    time::timeout,
};
use tokio_util::sync::CancellationToken;
use vidimus_provider::{
    manager::{Manager, ManagerConfig, ManagerTls, ProviderName},
    memory::{MemoryConfig, MemoryProvider},
    server::{self, Addresses, Config, StatusHandle},
};
use vidimus_testkit::{Authority, Credential, Pki};
use vidimus_tls::watch::WatchOptions;

use crate::golang::program;

/// No test waits longer for anything but the build of the Go program.
pub(crate) const DEADLINE: Duration = Duration::from_secs(60);

pub(crate) async fn soon<F: Future>(what: &str, future: F) -> F::Output {
    match timeout(DEADLINE, future).await {
        Ok(output) => output,
        Err(_) => panic!("{what}: not within {DEADLINE:?}"),
    }
}

pub(crate) fn server_name() -> String {
    name().server_name()
}

fn name() -> ProviderName {
    ProviderName::new("infra", "esx").unwrap()
}

pub(crate) fn quick() -> WatchOptions {
    WatchOptions {
        poll: Duration::from_millis(100),
        settle: Duration::from_millis(20),
        ..WatchOptions::default()
    }
}

/// A CA, and folders with what it signed.
pub(crate) struct World {
    pub(crate) pki: Pki,
    dir: tempfile::TempDir,
}

impl World {
    pub(crate) fn new() -> Self {
        Self {
            pki: Pki::new("Example"),
            dir: tempfile::tempdir().unwrap(),
        }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub(crate) fn folder(&self, name: &str, leaf: &Credential, roots: &[&Authority]) -> PathBuf {
        let path = self.path(name);
        leaf.write_dir(&path, roots);
        path
    }

    pub(crate) fn server_leaf(&self) -> Credential {
        self.pki
            .leaf("provider")
            .dns(&server_name())
            .server()
            .issue()
    }

    pub(crate) fn server(&self) -> PathBuf {
        self.folder("server", &self.server_leaf(), &[&self.pki.root])
    }

    pub(crate) fn client(&self) -> PathBuf {
        let leaf = self
            .pki
            .leaf("manager")
            .dns("manager.example")
            .client()
            .issue();
        self.folder("client", &leaf, &[&self.pki.root])
    }
}

/// Our provider.
pub(crate) struct Provider {
    pub(crate) addresses: Addresses,
    pub(crate) status: StatusHandle,
    shutdown: CancellationToken,
    tasks: JoinSet<()>,
}

impl Provider {
    pub(crate) async fn start(dir: &Path, allow: &str) -> Self {
        let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let config = Config {
            tls_directory: dir.to_path_buf(),
            allowed_sans: vidimus_tls::policy::AllowList::parse(allow).expect("a list"),
            grpc: any,
            health: any,
            watch: quick(),
            memory: MemoryConfig {
                task_time: Duration::from_millis(20),
                ..MemoryConfig::default()
            },
            ..Config::default()
        };
        let provider = MemoryProvider::new(config.memory);
        let bound = server::bind(config, provider).await.unwrap();
        let (addresses, status) = (bound.addresses(), bound.status());
        let shutdown = CancellationToken::new();
        let mut tasks = JoinSet::new();
        let token = shutdown.clone();
        tasks.spawn(async move {
            bound.serve(token).await.unwrap();
        });
        Self {
            addresses,
            status,
            shutdown,
            tasks,
        }
    }

    pub(crate) async fn stop(mut self) {
        self.shutdown.cancel();
        while let Some(ended) = soon("the provider's end", self.tasks.join_next()).await {
            ended.unwrap();
        }
    }
}

/// Our manager, with the task that follows its files.
pub(crate) struct Caller {
    pub(crate) manager: Manager,
    _driver: JoinSet<()>,
}

impl Caller {
    pub(crate) async fn new(endpoint: &str, tls: ManagerTls) -> Self {
        let mut config = ManagerConfig::new(name(), endpoint, tls);
        config.watch = quick();
        config.backoff = (Duration::from_millis(50), Duration::from_secs(1));
        config.deadlines.look = Duration::from_secs(5);
        let (manager, driver) = Manager::start(config).await.unwrap();
        let mut tasks = JoinSet::new();
        tasks.spawn(driver.run(CancellationToken::new()));
        Self {
            manager,
            _driver: tasks,
        }
    }

    pub(crate) async fn mutual(endpoint: &str, dir: PathBuf) -> Self {
        Self::new(endpoint, ManagerTls::Mutual(dir)).await
    }
}

/// A Go process that says events, one JSON object a line.
pub(crate) struct Go {
    child: Child,
    stdin: Option<ChildStdin>,
    events: mpsc::UnboundedReceiver<Value>,
}

impl Go {
    pub(crate) fn start(arguments: &[&str]) -> Self {
        let mut child = Command::new(program())
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .unwrap();
        let stdout = child.stdout.take().unwrap();
        let (sender, events) = mpsc::unbounded_channel();
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                let event = serde_json::from_str(&line).expect("each line is one JSON object");
                if sender.send(event).is_err() {
                    break;
                }
            }
        });
        let stdin = child.stdin.take();
        Self {
            child,
            stdin,
            events,
        }
    }

    /// The next event; `None` at the process's end.
    pub(crate) async fn next(&mut self) -> Option<Value> {
        soon("the Go program's event", self.events.recv()).await
    }

    /// Waits for an event of this kind and forgets those before it.
    pub(crate) async fn event(&mut self, kind: &str) -> Value {
        loop {
            let event = self.next().await;
            let event = event.unwrap_or_else(|| panic!("the Go program ended without {kind:?}"));
            if event["event"] == kind {
                return event;
            }
        }
    }

    /// Waits until a loop has made as many more calls.
    pub(crate) async fn more(&mut self, calls: i64) {
        let mut goal = None;
        loop {
            let event = self.event("progress").await;
            let done = event["calls"].as_i64().unwrap();
            if done >= *goal.get_or_insert(done + calls) {
                return;
            }
        }
    }

    /// Ends its standard input, which ends a loop.
    pub(crate) fn end(&mut self) {
        self.stdin = None;
    }
}

impl Drop for Go {
    fn drop(&mut self) {
        // it may have ended by itself
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// A Go client's one event.
pub(crate) async fn go_client(address: SocketAddr, dir: &Path, extra: &[&str]) -> Value {
    let (address, name) = (address.to_string(), server_name());
    let dir = dir.to_str().unwrap();
    let mut arguments = vec![
        "client",
        "-addr",
        &address,
        "-server-name",
        &name,
        "-dir",
        dir,
    ];
    arguments.extend(extra);
    Go::start(&arguments).next().await.expect("a result")
}

/// A Go server and its control page.
pub(crate) struct GoServer {
    _process: Go,
    pub(crate) address: String,
    control: String,
}

impl GoServer {
    pub(crate) async fn start(dir: &Path, extra: &[&str]) -> Self {
        let mut arguments = vec!["server", "-dir", dir.to_str().unwrap()];
        arguments.extend(extra);
        let mut process = Go::start(&arguments);
        let listening = process.event("listening").await;
        let text = |key: &str| listening[key].as_str().unwrap().to_owned();
        Self {
            address: text("addr"),
            control: text("control"),
            _process: process,
        }
    }

    /// Asks for `/status`, `/replace` or `/stop`: `calls`, `open`, `ended`, `drained`.
    pub(crate) async fn ask(&self, page: &str) -> Value {
        let mut stream = TcpStream::connect(&self.control).await.unwrap();
        let request = format!("GET {page} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        soon("the control page", stream.read_to_string(&mut answer))
            .await
            .unwrap();
        let (_, body) = answer.split_once("\r\n\r\n").unwrap();
        serde_json::from_str(body).unwrap()
    }

    pub(crate) async fn count(&self, key: &str) -> u64 {
        self.ask("/status").await[key].as_u64().unwrap()
    }
}
