//! Streams that are opened again whenever a rotation ends them, and miss nothing.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::task::JoinSet;
use tonic::{Code, Status};
use vidimus_proto::testkit::v1::EchoRequest;
use vidimus_proto::testkit::v1::echo_client::EchoClient;
use vidimus_tls::channel::Channel;

/// What the streams have been through.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    /// Streams that have their headers and have not ended.
    pub(crate) open: AtomicU64,
    /// Numbers received.
    pub(crate) received: AtomicU64,
    /// Times that a stream was opened again after it had been ended.
    pub(crate) reopened: AtomicU64,
    /// Attempts to open a stream that failed.
    pub(crate) refused: AtomicU64,
}

impl Tally {
    fn add(counter: &AtomicU64) {
        counter.fetch_add(1, Ordering::SeqCst);
    }

    pub(crate) fn of(counter: &AtomicU64) -> u64 {
        counter.load(Ordering::SeqCst)
    }
}

/// All streams, each with the last number that it got, or what was wrong with it.
#[derive(Debug)]
pub(crate) struct Streams {
    pub(crate) tally: Arc<Tally>,
    tasks: JoinSet<Result<u64, String>>,
}

impl Streams {
    /// Opens so many on each channel.
    pub(crate) fn start(channels: &[Channel], each: usize) -> Self {
        let tally = Arc::new(Tally::default());
        let mut tasks = JoinSet::new();
        for channel in channels {
            for _ in 0..each {
                tasks.spawn(follow(channel.clone(), Arc::clone(&tally)));
            }
        }
        Self { tally, tasks }
    }

    pub(crate) fn count(&self) -> u64 {
        self.tasks.len() as u64
    }

    /// Whether a stream has ended already, and why.
    pub(crate) fn fault(&mut self) -> Option<String> {
        let ended = self.tasks.try_join_next()?;
        Some(format!("a stream has ended: {ended:?}"))
    }

    /// Waits for the streams' ends, which must all come after this number; gives how many numbers are missing.
    pub(crate) async fn finish(mut self, last: u64) -> Result<u64, String> {
        let mut lost: u64 = 0;
        while let Some(ended) = self.tasks.join_next().await {
            let got = ended.map_err(|error| error.to_string())??;
            lost += last.abs_diff(got);
        }
        Ok(lost)
    }
}

/// Follows the numbers from the first one on over as many calls as it takes; gives the last.
async fn follow(channel: Channel, tally: Arc<Tally>) -> Result<u64, String> {
    let mut client = EchoClient::new(channel);
    let mut next: u64 = 1;
    loop {
        let request = EchoRequest {
            message: next.to_string(),
            ..EchoRequest::default()
        };
        match client.server_stream(request).await {
            Ok(answers) => {
                Tally::add(&tally.open);
                let mut answers = answers.into_inner();
                let status = loop {
                    match answers.message().await {
                        Ok(Some(answer)) if answer.sequence == next => {
                            next += 1;
                            Tally::add(&tally.received);
                        }
                        Ok(Some(answer)) => {
                            return Err(format!("{} came, not {next}", answer.sequence));
                        }
                        Ok(None) => return Ok(next - 1),
                        Err(status) => break status,
                    }
                };
                tally.open.fetch_sub(1, Ordering::SeqCst);
                only_unavailable(&status)?;
                Tally::add(&tally.reopened);
            }
            Err(status) => {
                only_unavailable(&status)?;
                Tally::add(&tally.refused);
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }
}

fn only_unavailable(status: &Status) -> Result<(), String> {
    match status.code() {
        Code::Unavailable => Ok(()),
        _ => Err(format!("a stream was ended with {status:?}")),
    }
}
