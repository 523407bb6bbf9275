//! The tasks that callers can ask about: a bounded number of running and of finished ones.

use std::collections::{BTreeMap, VecDeque};

use super::{Limits, MemoryError};

/// Names a task: `task-17` outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct TaskId(pub(super) u64);

/// Every task that is known.
#[derive(Debug, Default)]
pub(super) struct TaskLog {
    next: u64,
    tasks: BTreeMap<TaskId, Option<Result<(), MemoryError>>>,
    done: VecDeque<TaskId>,
}

impl TaskId {
    pub(super) fn text(self) -> String {
        format!("task-{}", self.0)
    }

    pub(super) fn parse(text: &str) -> Option<Self> {
        text.strip_prefix("task-")?.parse().ok().map(Self)
    }
}

impl TaskLog {
    /// A new task that runs.
    pub(super) fn begin(&mut self, limits: &Limits) -> Result<TaskId, MemoryError> {
        if self.tasks.len() - self.done.len() >= limits.tasks_running {
            return Err(MemoryError::Exhausted {
                what: "running tasks",
                limit: limits.tasks_running,
            });
        }
        self.next += 1;
        let id = TaskId(self.next);
        self.tasks.insert(id, None);
        Ok(id)
    }

    /// Notes how a task ended, and forgets the oldest ended one beyond the bound.
    pub(super) fn end(&mut self, id: TaskId, result: Result<(), MemoryError>, limits: &Limits) {
        self.tasks.insert(id, Some(result));
        self.done.push_back(id);
        while self.done.len() > limits.tasks_done {
            if let Some(oldest) = self.done.pop_front() {
                self.tasks.remove(&oldest);
            }
        }
    }

    /// How a task ended; `Some(None)` if it runs, `None` if it is not known.
    pub(super) fn find(&self, id: TaskId) -> Option<Option<&Result<(), MemoryError>>> {
        self.tasks.get(&id).map(Option::as_ref)
    }
}
