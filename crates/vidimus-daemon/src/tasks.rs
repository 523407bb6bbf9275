//! Named tasks under supervision: none may end unnoticed.

use std::{any::Any, collections::HashMap, error::Error, time::Duration};

use tokio::task::{Id, JoinError, JoinSet};
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

type TaskResult = Result<(), Box<dyn Error + Send + Sync>>;

/// A program's long-running parts.
///
/// Each runs until the shutdown token is cancelled. One that ends before, fails or panics cancels
/// the token itself, so that the others stop as well, and [`Tasks::join`] says which it was.
/// Dropping this aborts them all.
#[derive(Debug)]
pub struct Tasks {
    set: JoinSet<TaskResult>,
    names: HashMap<Id, String>,
    shutdown: CancellationToken,
}

/// The first task that went wrong.
#[derive(Debug, thiserror::Error)]
#[error("task {name}")]
pub struct TaskError {
    /// The name that it was spawned under.
    pub name: String,
    /// What it did.
    #[source]
    pub source: TaskFailure,
}

/// How a task went wrong.
#[derive(Debug, thiserror::Error)]
pub enum TaskFailure {
    /// It returned although nobody had asked it to.
    #[error("ended before the shutdown")]
    EndedEarly,
    /// It returned an error.
    #[error("failed")]
    Failed(#[source] Box<dyn Error + Send + Sync>),
    /// It didn't stop within the grace after the shutdown and was aborted.
    #[error("did not stop within {grace:?} and was aborted")]
    GraceExpired {
        /// The time that it had.
        grace: Duration,
    },
    /// It panicked.
    #[error("panicked: {message}")]
    Panicked {
        /// The panic's text.
        message: String,
    },
}

impl Tasks {
    /// No tasks yet; cancelling `shutdown` asks all of them to stop.
    #[must_use]
    pub fn new(shutdown: CancellationToken) -> Self {
        Self {
            set: JoinSet::new(),
            names: HashMap::new(),
            shutdown,
        }
    }

    /// The token that the tasks stop at.
    #[must_use]
    pub const fn shutdown(&self) -> &CancellationToken {
        &self.shutdown
    }

    /// Starts a task that can only end.
    pub fn spawn(
        &mut self,
        name: impl Into<String>,
        task: impl Future<Output = ()> + Send + 'static,
    ) {
        self.try_spawn(name, async move {
            task.await;
            Ok::<(), std::convert::Infallible>(())
        });
    }

    /// Starts a task that can fail.
    pub fn try_spawn<E>(
        &mut self,
        name: impl Into<String>,
        task: impl Future<Output = Result<(), E>> + Send + 'static,
    ) where
        E: Into<Box<dyn Error + Send + Sync>>,
    {
        let name = name.into();
        let span = tracing::info_span!("task", name);
        let task = async move { task.await.map_err(Into::into) }.instrument(span);
        let handle = self.set.spawn(task);
        self.names.insert(handle.id(), name);
    }

    /// Waits until every task has ended.
    ///
    /// # Errors
    ///
    /// The first task that ended early, failed or panicked.
    pub async fn join(mut self) -> Result<(), TaskError> {
        let mut first = None;
        while let Some(ended) = self.set.join_next_with_id().await {
            self.note(ended, &mut first);
        }
        first.map_or(Ok(()), Err)
    }

    /// As [`Self::join`], but whatever still runs when `grace` has passed after the shutdown began
    /// is aborted.
    ///
    /// # Errors
    ///
    /// As [`Self::join`], or one of those that were aborted.
    pub async fn join_within(mut self, grace: Duration) -> Result<(), TaskError> {
        let mut first = None;
        let shutdown = self.shutdown.clone();
        let expired = async move {
            shutdown.cancelled().await;
            tokio::time::sleep(grace).await;
        };
        tokio::pin!(expired);
        loop {
            tokio::select! {
                ended = self.set.join_next_with_id() => match ended {
                    Some(ended) => self.note(ended, &mut first),
                    None => break,
                },
                () = &mut expired => {
                    for name in self.names.values() {
                        tracing::error!(task = name, "did not stop in time, aborting it");
                    }
                    if let (None, Some(name)) = (&first, self.names.into_values().next()) {
                        first = Some(TaskError { name, source: TaskFailure::GraceExpired { grace } });
                    }
                    self.set.shutdown().await;
                    break;
                }
            }
        }
        first.map_or(Ok(()), Err)
    }

    fn note(&mut self, ended: Result<(Id, TaskResult), JoinError>, first: &mut Option<TaskError>) {
        let (id, failure) = match ended {
            Ok((id, Ok(()))) if self.shutdown.is_cancelled() => (id, None),
            Ok((id, Ok(()))) => (id, Some(TaskFailure::EndedEarly)),
            Ok((id, Err(error))) => (id, Some(TaskFailure::Failed(error))),
            Err(error) => {
                let id = error.id();
                let message = error.try_into_panic().map_or_else(
                    |_| "cancelled from outside".to_owned(),
                    |payload| panic_text(payload.as_ref()),
                );
                (id, Some(TaskFailure::Panicked { message }))
            }
        };
        let name = self.names.remove(&id).unwrap_or_else(|| id.to_string());
        let Some(source) = failure else {
            tracing::debug!(task = name, "stopped");
            return;
        };
        let error = TaskError { name, source };
        tracing::error!(error = %crate::telemetry::chain(&error), "stopping the process");
        self.shutdown.cancel();
        first.get_or_insert(error);
    }
}

/// The text of a panic's payload.
#[must_use]
pub fn panic_text(payload: &(dyn Any + Send)) -> String {
    payload
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| payload.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "a payload that is no text".to_owned())
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    const LONG: Duration = Duration::from_secs(3600);

    fn tasks() -> Tasks {
        let mut tasks = Tasks::new(CancellationToken::new());
        let stop = tasks.shutdown().clone();
        tasks.spawn("patient", async move { stop.cancelled().await });
        tasks
    }

    #[tokio::test]
    async fn a_shutdown_lets_every_task_end_and_nobody_is_blamed() {
        let tasks = tasks();
        tasks.shutdown().cancel();
        tasks.join().await.unwrap();
    }

    #[tokio::test]
    async fn a_task_that_ends_early_stops_the_others_and_is_named() {
        let mut tasks = tasks();
        tasks.spawn("hasty", async {});
        let error = tasks.join().await.unwrap_err();
        assert_eq!(error.name, "hasty");
        assert!(matches!(error.source, TaskFailure::EndedEarly));
    }

    #[tokio::test]
    async fn a_task_that_fails_is_named_with_its_cause() {
        let mut tasks = tasks();
        tasks.try_spawn("broken", async { Err(io::Error::other("no such luck")) });
        let error = tasks.join().await.unwrap_err();
        assert_eq!(
            crate::telemetry::chain(&error).to_string(),
            "task broken: failed: no such luck"
        );
    }

    #[tokio::test]
    async fn a_panic_counts_even_during_the_shutdown() {
        let mut tasks = tasks();
        let stop = tasks.shutdown().clone();
        tasks.spawn("wild", async move {
            stop.cancelled().await;
            panic!("at the {}", "disco");
        });
        tasks.shutdown().cancel();
        let error = tasks.join().await.unwrap_err();
        assert_eq!(error.name, "wild");
        assert!(
            matches!(error.source, TaskFailure::Panicked { message } if message == "at the disco")
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_task_that_ignores_the_shutdown_is_aborted_after_the_grace() {
        let mut tasks = tasks();
        tasks.spawn("deaf", tokio::time::sleep(LONG));
        tasks.shutdown().cancel();
        let error = tasks.join_within(Duration::from_secs(5)).await.unwrap_err();
        assert_eq!(error.name, "deaf");
        assert!(matches!(error.source, TaskFailure::GraceExpired { .. }));
    }

    #[tokio::test(start_paused = true)]
    async fn the_grace_is_not_spent_when_everybody_stops() {
        let tasks = tasks();
        tasks.shutdown().cancel();
        tasks.join_within(Duration::from_secs(5)).await.unwrap();
    }
}
