//! What the manager does all the time: unary calls of `provider.v1`, and streams of `grpc.health.v1`.

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use tokio::{
    sync::watch,
    task::JoinSet,
    time::{sleep, timeout},
};
use tokio_util::sync::CancellationToken;
use vidimus_proto::provider::v1 as provider;
use vidimus_provider::manager::{CallError, Manager};

/// How many callers work side by side.
const CALLERS: usize = 4;
/// How many streams are held open.
const STREAMS: usize = 2;
/// Between two calls of one caller: a demonstration, not a load test.
const PAUSE: Duration = Duration::from_millis(4);
/// How long a stream may take to answer for the first time, and after a failure until the next try.
const FIRST_ANSWER: Duration = Duration::from_secs(10);
const AFTER_FAILURE: Duration = Duration::from_millis(200);

/// Counts of what was done.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    pub(crate) calls: AtomicU64,
    pub(crate) calls_failed: AtomicU64,
    pub(crate) streams: AtomicU64,
    pub(crate) streams_failed: AtomicU64,
    last_failure: Mutex<Option<String>>,
}

impl Counts {
    pub(crate) fn read(counter: &AtomicU64) -> u64 {
        counter.load(Ordering::Relaxed)
    }

    /// Why the last failed call or stream failed.
    pub(crate) fn last_failure(&self) -> Option<String> {
        self.last_failure
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    fn failed(&self, counter: &AtomicU64, reason: String) {
        counter.fetch_add(1, Ordering::Relaxed);
        *self
            .last_failure
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = Some(reason);
    }
}

/// Callers and streams at work.
#[derive(Debug)]
pub(crate) struct Load {
    pub(crate) counts: Arc<Counts>,
    stop: CancellationToken,
    reopen: watch::Sender<u64>,
    tasks: JoinSet<()>,
}

impl Load {
    pub(crate) fn start(manager: &Manager) -> Self {
        let counts = Arc::new(Counts::default());
        let stop = CancellationToken::new();
        let (reopen, reopened) = watch::channel(0);
        let mut tasks = JoinSet::new();
        for number in 0..CALLERS {
            let caller = Caller {
                manager: manager.clone(),
                counts: Arc::clone(&counts),
                stop: stop.clone(),
                number,
            };
            tasks.spawn(caller.run());
        }
        for _ in 0..STREAMS {
            let follower = Follower {
                manager: manager.clone(),
                counts: Arc::clone(&counts),
                stop: stop.clone(),
                reopen: reopened.clone(),
            };
            tasks.spawn(follower.run());
        }
        Self {
            counts,
            stop,
            reopen,
            tasks,
        }
    }

    /// Has every stream opened again on the channel's present connection, and the old ones let go: first the new, then
    /// the old, so that nothing is missed. A stream without an end would hold its connection for ever.
    pub(crate) fn reopen_streams(&self) {
        self.reopen
            .send_modify(|number| *number = number.wrapping_add(1));
    }

    /// Lets every caller finish its call, then ends.
    pub(crate) async fn stop(mut self) -> Arc<Counts> {
        self.stop.cancel();
        while self.tasks.join_next().await.is_some() {}
        self.counts
    }
}

/// One caller: the life of a virtual machine, over and over.
struct Caller {
    manager: Manager,
    counts: Arc<Counts>,
    stop: CancellationToken,
    number: usize,
}

impl Caller {
    async fn run(self) {
        let mut round = 0_u64;
        while !self.stop.is_cancelled() {
            round = round.wrapping_add(1);
            self.one_life(round).await;
        }
    }

    async fn one_life(&self, round: u64) {
        let name = format!("quickstart-{}-{round}", self.number);
        self.call(self.manager.validate(provider::ValidateRequest {}))
            .await;
        let create = provider::CreateRequest {
            name,
            class_json: r#"{"CPU":2,"MemoryMiB":2048}"#.to_owned(),
            ..Default::default()
        };
        let Some(created) = self.call(self.manager.create(create)).await else {
            return;
        };
        self.finish(created.task).await;
        let id = created.id;
        let power = provider::PowerRequest {
            id: id.clone(),
            op: provider::PowerOp::On.into(),
            ..Default::default()
        };
        let powered = self.call(self.manager.power(power)).await;
        self.finish(powered.and_then(|answer| answer.task)).await;
        self.call(
            self.manager
                .describe(provider::DescribeRequest { id: id.clone() }),
        )
        .await;
        self.call(self.manager.list_vms(provider::ListVMsRequest {}))
            .await;
        let deleted = self
            .call(self.manager.delete(provider::DeleteRequest { id }))
            .await;
        self.finish(deleted.and_then(|answer| answer.task)).await;
    }

    /// Asks for a task until it is done.
    async fn finish(&self, task: Option<provider::TaskRef>) {
        let Some(task) = task.filter(|task| !task.id.is_empty()) else {
            return;
        };
        loop {
            let request = provider::TaskStatusRequest {
                task: Some(task.clone()),
            };
            match self.call(self.manager.task_status(request)).await {
                Some(status) if !status.done => {}
                Some(_) | None => return,
            }
        }
    }

    async fn call<T>(&self, call: impl Future<Output = Result<T, CallError>>) -> Option<T> {
        let answer = call.await;
        self.counts.calls.fetch_add(1, Ordering::Relaxed);
        sleep(PAUSE).await;
        match answer {
            Ok(answer) => Some(answer),
            Err(error) => {
                let reason = vidimus_daemon::telemetry::chain(&error).to_string();
                self.counts.failed(&self.counts.calls_failed, reason);
                sleep(AFTER_FAILURE).await;
                None
            }
        }
    }
}

/// One stream of the provider's health, held open.
struct Follower {
    manager: Manager,
    counts: Arc<Counts>,
    stop: CancellationToken,
    reopen: watch::Receiver<u64>,
}

/// Why a stream was left.
enum Left {
    Failed(String),
    Reopen,
    Stop,
}

impl Follower {
    async fn run(mut self) {
        // The stream before is kept until the new one has answered.
        let mut before = None;
        while !self.stop.is_cancelled() {
            self.reopen.mark_unchanged();
            self.counts.streams.fetch_add(1, Ordering::Relaxed);
            let (stream, left) = self.follow(before.take()).await;
            match left {
                Left::Failed(reason) => {
                    self.counts.failed(&self.counts.streams_failed, reason);
                    sleep(AFTER_FAILURE).await;
                }
                Left::Reopen => before = stream,
                Left::Stop => return,
            }
        }
    }

    async fn follow(&mut self, before: Option<Health>) -> (Option<Health>, Left) {
        let opened = timeout(FIRST_ANSWER, async {
            let mut stream = self
                .manager
                .watch_health("provider")
                .await
                .map_err(|error| error.to_string())?;
            match stream.message().await {
                Ok(Some(_)) => Ok(stream),
                Ok(None) => Err("the health stream ended before it said anything".to_owned()),
                Err(status) => Err(status.to_string()),
            }
        });
        let opened = opened
            .await
            .unwrap_or_else(|_| Err("the health stream did not answer in time".to_owned()));
        let mut stream = match opened {
            Ok(stream) => stream,
            Err(reason) => return (before, Left::Failed(reason)),
        };
        drop(before);
        loop {
            tokio::select! {
                () = self.stop.cancelled() => return (None, Left::Stop),
                _ = self.reopen.changed() => return (Some(stream), Left::Reopen),
                message = stream.message() => match message {
                    Ok(Some(_)) => {}
                    Ok(None) => return (None, Left::Failed("the health stream ended".to_owned())),
                    Err(status) => return (None, Left::Failed(status.to_string())),
                },
            }
        }
    }
}

type Health = tonic::Streaming<tonic_health::pb::HealthCheckResponse>;
