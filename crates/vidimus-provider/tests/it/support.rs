//! What the themes share: a provider that runs, a manager that calls it, and their folders.

use std::{
    collections::BTreeMap,
    future::Future,
    net::{Ipv4Addr, SocketAddr},
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _},
    net::TcpStream,
    sync::watch,
    task::JoinSet,
    time::timeout,
};
use tokio_util::sync::CancellationToken;
use tonic::{Request, Response, Status};
use vidimus_daemon::tasks::TaskError;
use vidimus_proto::provider::v1::{self as pb, provider_server::Provider};
use vidimus_provider::{
    manager::{CallError, Manager, ManagerConfig, ManagerTls, ProviderName},
    memory::{MemoryConfig, MemoryProvider},
    server::{self, Addresses, Config, StatusHandle},
};
use vidimus_testkit::{Authority, Credential, Pki};
use vidimus_tls::{policy::AllowList, server::Drained, watch::WatchOptions};

/// No test waits longer for anything; a healthy run needs a small part of it.
pub(crate) const DEADLINE: Duration = Duration::from_secs(60);

pub(crate) async fn soon<F: Future>(what: &str, future: F) -> F::Output {
    match timeout(DEADLINE, future).await {
        Ok(output) => output,
        Err(_) => panic!("{what}: not within {DEADLINE:?}"),
    }
}

pub(crate) fn provider_name() -> ProviderName {
    ProviderName::new("infra", "esx").unwrap()
}

/// Watch timings that make a test short; only how long quiet takes is shortened.
pub(crate) fn quick() -> WatchOptions {
    WatchOptions {
        poll: Duration::from_millis(100),
        settle: Duration::from_millis(20),
        ..WatchOptions::default()
    }
}

pub(crate) fn config(dir: &Path) -> Config {
    let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    Config {
        tls_directory: dir.to_path_buf(),
        grpc: any,
        health: any,
        watch: quick(),
        memory: MemoryConfig {
            task_time: Duration::from_millis(20),
            ..MemoryConfig::default()
        },
        ..Config::default()
    }
}

/// A CA with a folder for the provider and one for the manager.
pub(crate) struct World {
    pub(crate) pki: Pki,
    dir: tempfile::TempDir,
}

impl World {
    pub(crate) fn new() -> Self {
        let world = Self {
            pki: Pki::new("Example"),
            dir: tempfile::tempdir().unwrap(),
        };
        world
            .server_leaf(&world.pki)
            .write_dir(&world.server_dir(), &[&world.pki.root]);
        world
            .manager_leaf(&world.pki)
            .write_dir(&world.manager_dir(), &[&world.pki.root]);
        world
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub(crate) fn server_dir(&self) -> PathBuf {
        self.path("server")
    }

    pub(crate) fn manager_dir(&self) -> PathBuf {
        self.path("manager")
    }

    #[expect(clippy::unused_self, reason = "reads as the world's leaf")]
    pub(crate) fn server_leaf(&self, pki: &Pki) -> Credential {
        pki.leaf("provider")
            .dns(&provider_name().server_name())
            .server()
            .issue()
    }

    #[expect(clippy::unused_self, reason = "reads as the world's leaf")]
    pub(crate) fn manager_leaf(&self, pki: &Pki) -> Credential {
        pki.leaf("manager").dns("manager.example").client().issue()
    }

    pub(crate) fn config(&self) -> Config {
        config(&self.server_dir())
    }

    /// A folder with this credential, for a manager that isn't the usual one.
    pub(crate) fn folder(&self, name: &str, leaf: &Credential, roots: &[&Authority]) -> PathBuf {
        let path = self.path(name);
        leaf.write_dir(&path, roots);
        path
    }
}

/// A provider that serves, and the tasks around it.
pub(crate) struct Running {
    pub(crate) addresses: Addresses,
    pub(crate) status: StatusHandle,
    pub(crate) shutdown: CancellationToken,
    serving: JoinSet<Result<Drained, TaskError>>,
    tasks: JoinSet<()>,
}

impl Running {
    pub(crate) async fn start(config: Config) -> Self {
        let provider = MemoryProvider::new(config.memory);
        Self::start_with(config, provider).await
    }

    pub(crate) async fn start_with(config: Config, provider: impl Provider) -> Self {
        let bound = server::bind(config, provider).await.unwrap();
        let (addresses, status) = (bound.addresses(), bound.status());
        let shutdown = CancellationToken::new();
        let mut serving = JoinSet::new();
        serving.spawn(bound.serve(shutdown.clone()));
        Self {
            addresses,
            status,
            shutdown,
            serving,
            tasks: JoinSet::new(),
        }
    }

    pub(crate) fn manager_config(&self, tls: ManagerTls) -> ManagerConfig {
        let mut config = ManagerConfig::new(provider_name(), self.addresses.grpc.to_string(), tls);
        config.watch = quick();
        config.connect_timeout = Duration::from_secs(5);
        config
    }

    pub(crate) async fn manager(&mut self, dir: impl Into<PathBuf>) -> Manager {
        let config = self.manager_config(ManagerTls::Mutual(dir.into()));
        self.start_manager(config).await
    }

    pub(crate) async fn start_manager(&mut self, config: ManagerConfig) -> Manager {
        let (manager, driver) = Manager::start(config).await.unwrap();
        self.tasks.spawn(driver.run(self.shutdown.clone()));
        manager
    }

    pub(crate) async fn stop(mut self) -> Drained {
        self.shutdown.cancel();
        self.ended().await
    }

    pub(crate) async fn ended(&mut self) -> Drained {
        let ended = soon("the provider's end", self.serving.join_next()).await;
        ended.unwrap().unwrap().unwrap()
    }
}

pub(crate) async fn validate(manager: &Manager) -> Result<pb::ValidateResponse, CallError> {
    soon("validate", manager.validate(pb::ValidateRequest {})).await
}

pub(crate) fn allow(list: &str) -> AllowList {
    AllowList::parse(list).expect("a list")
}

/// `GET path` over any stream: the status and the body.
pub(crate) async fn get(
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    path: &str,
) -> (u16, String) {
    let request = format!("GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    soon("the page", stream.read_to_string(&mut answer))
        .await
        .unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (
        head.split(' ').nth(1).unwrap().parse().unwrap(),
        body.to_owned(),
    )
}

pub(crate) async fn page(address: SocketAddr, path: &str) -> (u16, String) {
    get(TcpStream::connect(address).await.unwrap(), path).await
}

/// Calls that go on until they are stopped, with every failure noted.
pub(crate) struct Traffic {
    stop: CancellationToken,
    workers: JoinSet<()>,
    done: Arc<AtomicUsize>,
    failures: Arc<Mutex<Vec<String>>>,
}

impl Traffic {
    /// `workers` callers, one of which opens health streams instead of calling.
    pub(crate) fn start(manager: &Manager, workers: usize) -> Self {
        let traffic = Self {
            stop: CancellationToken::new(),
            workers: JoinSet::new(),
            done: Arc::default(),
            failures: Arc::default(),
        };
        let mut this = traffic;
        for number in 0..workers {
            let (manager, stop) = (manager.clone(), this.stop.clone());
            let (done, failures) = (Arc::clone(&this.done), Arc::clone(&this.failures));
            this.workers.spawn(async move {
                while !stop.is_cancelled() {
                    let result = if number == 0 {
                        first_state(&manager).await
                    } else {
                        call(&manager).await
                    };
                    match result {
                        Ok(()) => {
                            done.fetch_add(1, Ordering::Relaxed);
                        }
                        Err(failure) => failures.lock().unwrap().push(failure),
                    }
                }
            });
        }
        this
    }

    pub(crate) fn done(&self) -> usize {
        self.done.load(Ordering::Relaxed)
    }

    /// Waits until as many more calls have ended well: the state that was reached carries calls.
    pub(crate) async fn more(&self, calls: usize) {
        let goal = self.done() + calls;
        vidimus_testkit::wait_until_async(DEADLINE, || async {
            let done = self.done();
            if done >= goal {
                Ok(())
            } else {
                Err(format!("{done} of {goal} calls"))
            }
        })
        .await;
    }

    pub(crate) async fn stop(mut self) -> usize {
        self.stop.cancel();
        while let Some(ended) = soon("the callers' end", self.workers.join_next()).await {
            ended.unwrap();
        }
        let failures = self.failures.lock().unwrap();
        assert!(
            failures.is_empty(),
            "{} failures: {failures:#?}",
            failures.len()
        );
        self.done.load(Ordering::Relaxed)
    }
}

async fn call(manager: &Manager) -> Result<(), String> {
    let request = pb::DescribeRequest {
        id: "vm-1".to_owned(),
    };
    let answer = soon("describe", manager.describe(request)).await;
    answer.map(drop).map_err(|error| error.to_string())
}

async fn first_state(manager: &Manager) -> Result<(), String> {
    let watch = soon("watch", manager.watch_health("provider")).await;
    let mut stream = watch.map_err(|error| error.to_string())?;
    match soon("the first state", stream.message()).await {
        Ok(Some(_)) => Ok(()),
        Ok(None) => Err("the stream ended without a state".to_owned()),
        Err(status) => Err(format!("the stream failed: {status}")),
    }
}

/// The in-memory provider with something done before each call reaches it.
#[derive(Clone, Default)]
pub(crate) struct Hooked {
    inner: MemoryProvider,
    pub(crate) hook: Arc<Hook>,
}

/// What happens before each call, and how often it did.
#[derive(Default)]
pub(crate) struct Hook {
    /// How long each call waits.
    pub(crate) delay: Mutex<Duration>,
    /// Whether calls wait until this is false.
    pub(crate) hold: watch::Sender<bool>,
    /// Whether each call panics.
    pub(crate) panics: AtomicBool,
    /// Calls that have come, by method.
    pub(crate) entered: Mutex<BTreeMap<&'static str, usize>>,
}

impl Hook {
    async fn run(&self, method: &'static str) {
        *self.entered.lock().unwrap().entry(method).or_default() += 1;
        assert!(!self.panics.load(Ordering::Relaxed), "told to panic");
        self.hold.subscribe().wait_for(|hold| !hold).await.unwrap();
        let delay = *self.delay.lock().unwrap();
        tokio::time::sleep(delay).await;
    }

    pub(crate) fn count(&self, method: &str) -> usize {
        self.entered
            .lock()
            .unwrap()
            .get(method)
            .copied()
            .unwrap_or_default()
    }
}

macro_rules! hooked {
    ($($method:ident($request:ty) -> $response:ty;)*) => {
        #[tonic::async_trait]
        impl Provider for Hooked {
            $(
                async fn $method(
                    &self,
                    request: Request<$request>,
                ) -> Result<Response<$response>, Status> {
                    self.hook.run(stringify!($method)).await;
                    Provider::$method(&self.inner, request).await
                }
            )*
        }
    };
}

hooked! {
    validate(pb::ValidateRequest) -> pb::ValidateResponse;
    create(pb::CreateRequest) -> pb::CreateResponse;
    delete(pb::DeleteRequest) -> pb::TaskResponse;
    power(pb::PowerRequest) -> pb::TaskResponse;
    reconfigure(pb::ReconfigureRequest) -> pb::TaskResponse;
    hardware_upgrade(pb::HardwareUpgradeRequest) -> pb::TaskResponse;
    describe(pb::DescribeRequest) -> pb::DescribeResponse;
    task_status(pb::TaskStatusRequest) -> pb::TaskStatusResponse;
    snapshot_create(pb::SnapshotCreateRequest) -> pb::SnapshotCreateResponse;
    snapshot_delete(pb::SnapshotDeleteRequest) -> pb::TaskResponse;
    snapshot_revert(pb::SnapshotRevertRequest) -> pb::TaskResponse;
    clone(pb::CloneRequest) -> pb::CloneResponse;
    image_prepare(pb::ImagePrepareRequest) -> pb::ImagePrepareResponse;
    get_capabilities(pb::GetCapabilitiesRequest) -> pb::GetCapabilitiesResponse;
    export_disk(pb::ExportDiskRequest) -> pb::ExportDiskResponse;
    import_disk(pb::ImportDiskRequest) -> pb::ImportDiskResponse;
    get_disk_info(pb::GetDiskInfoRequest) -> pb::GetDiskInfoResponse;
    list_v_ms(pb::ListVMsRequest) -> pb::ListVMsResponse;
}
