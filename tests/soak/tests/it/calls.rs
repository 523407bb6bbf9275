//! A constant load of unary calls, of which none may fail.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::task::JoinSet;
use tonic::Request;
use vidimus_proto::testkit::v1::EchoRequest;
use vidimus_proto::testkit::v1::echo_client::EchoClient;
use vidimus_tls::channel::Channel;

/// How many call at the same time, each with a rest between its calls.
const CALLERS: usize = 32;
const REST: Duration = Duration::from_millis(10);
/// Long enough for the slowest machine: what counts is whether a call fails.
const TIMEOUT: Duration = Duration::from_secs(60);

#[derive(Debug, Default)]
struct Shared {
    calls: AtomicU64,
    failures: Mutex<Vec<String>>,
    stop: AtomicBool,
}

/// The callers.
#[derive(Debug)]
pub(crate) struct Calls {
    shared: Arc<Shared>,
    tasks: JoinSet<()>,
}

impl Calls {
    /// Spreads them over the channels.
    pub(crate) fn start(channels: &[Channel]) -> Self {
        let shared = Arc::new(Shared::default());
        let mut tasks = JoinSet::new();
        let stride = channels.len().div_ceil(CALLERS);
        for channel in channels.iter().step_by(stride).cycle().take(CALLERS) {
            tasks.spawn(call(channel.clone(), Arc::clone(&shared)));
        }
        Self { shared, tasks }
    }

    pub(crate) fn count(&self) -> u64 {
        self.shared.calls.load(Ordering::SeqCst)
    }

    /// What the failed calls got.
    pub(crate) fn failures(&self) -> Vec<String> {
        self.shared.failures.lock().expect("the list").clone()
    }

    pub(crate) async fn finish(mut self) -> (u64, Vec<String>) {
        self.shared.stop.store(true, Ordering::SeqCst);
        while self.tasks.join_next().await.is_some() {}
        (self.count(), self.failures())
    }
}

async fn call(channel: Channel, shared: Arc<Shared>) {
    let mut client = EchoClient::new(channel);
    while !shared.stop.load(Ordering::SeqCst) {
        let mut request = Request::new(EchoRequest {
            message: "hello".to_owned(),
            ..EchoRequest::default()
        });
        request.set_timeout(TIMEOUT);
        let outcome = client.unary(request).await;
        shared.calls.fetch_add(1, Ordering::SeqCst);
        if let Err(status) = outcome {
            let failures = &mut shared.failures.lock().expect("the list");
            failures.push(format!("{:?}: {}", status.code(), status.message()));
        }
        tokio::time::sleep(REST).await;
    }
}
