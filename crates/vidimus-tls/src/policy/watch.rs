//! The policy of this moment and of every later one.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use serde::Serialize;
use tokio::sync::watch;

use super::{AllowList, Mode, Policy, PolicyDriver, PolicyError};
use crate::clock::{Clock, serialize_optional_time};
use crate::events::{Event, Events, Unit};
use crate::watch::WatchOptions;

/// The policy in force, now and later. Cheap to clone; clones see the same policy.
#[derive(Clone, Debug)]
pub struct PolicyWatch(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    sender: watch::Sender<Arc<Policy>>,
    /// The generation of the policy that the sender holds, for a look that costs next to nothing.
    generation: AtomicU64,
    status: Mutex<PolicyStatus>,
    may_change: bool,
}

/// A watch's state for status pages and metrics.
#[derive(Clone, Debug, Default, Serialize)]
pub struct PolicyStatus {
    /// The generation in force.
    pub generation: u64,
    /// Whether calls are refused or only reported.
    pub mode: Mode,
    /// Changes taken into use since the start.
    pub reloads: u64,
    /// When the last change was taken into use.
    #[serde(serialize_with = "serialize_optional_time")]
    pub last_reload: Option<SystemTime>,
    /// Changes that were not taken into use since the start.
    pub failures: u64,
    /// Why the file as it is now is not in force; `None` if it is.
    pub last_error: Option<String>,
    /// How often the file was looked at since the start.
    pub looks: u64,
    /// Whether the system reports changes of the files; if not, only the poll notices them. `None` without files.
    pub events: Option<bool>,
}

impl PolicyWatch {
    /// A policy that never changes.
    #[must_use]
    pub fn fixed(policy: impl Into<Policy>) -> Self {
        Self::first(policy, false)
    }

    pub(super) fn first(policy: impl Into<Policy>, may_change: bool) -> Self {
        let policy = policy.into().with_generation(1);
        policy.warn_of_report_mode();
        let status = PolicyStatus {
            generation: 1,
            mode: policy.mode(),
            ..PolicyStatus::default()
        };
        Self(Arc::new(Shared {
            sender: watch::Sender::new(Arc::new(policy)),
            generation: AtomicU64::new(1),
            status: Mutex::new(status),
            may_change,
        }))
    }

    /// A policy that the program itself replaces.
    #[must_use]
    pub fn from_memory(policy: impl Into<Policy>) -> (Self, PolicyPublisher) {
        let watch = Self::first(policy, true);
        let publisher = PolicyPublisher {
            watch: watch.clone(),
            events: Events::default(),
            clock: Clock::system(),
        };
        (watch, publisher)
    }

    /// Reads a policy file with its bundles, checks them and prepares to follow them.
    ///
    /// # Errors
    ///
    /// What is wrong: a process starts with a good policy or not at all.
    pub async fn start(
        path: impl Into<PathBuf>,
        options: WatchOptions,
    ) -> Result<(Self, PolicyDriver), PolicyError> {
        PolicyDriver::start(path.into(), options).await
    }

    /// The policy in force.
    #[must_use]
    pub fn current(&self) -> Arc<Policy> {
        Arc::clone(&self.0.sender.borrow())
    }

    /// The generation of the policy in force.
    #[must_use]
    pub fn generation(&self) -> u64 {
        self.0.generation.load(Ordering::Acquire)
    }

    /// Whether another policy may ever come.
    pub(crate) fn may_change(&self) -> bool {
        self.0.may_change
    }

    /// Follows the policy from here on.
    #[must_use]
    pub fn subscribe(&self) -> watch::Receiver<Arc<Policy>> {
        self.0.sender.subscribe()
    }

    /// Waits until the generation is at least `generation`, without a deadline of its own.
    ///
    /// # Panics
    ///
    /// Never: what it waits on lives as long as `self`.
    pub async fn wait_for_generation(&self, generation: u64) -> Arc<Policy> {
        let mut receiver = self.subscribe();
        let policy = receiver
            .wait_for(|policy| policy.generation() >= generation)
            .await
            .expect("the sender lives as long as self");
        Arc::clone(&policy)
    }

    /// Generation, reloads, failures and the last error.
    #[must_use]
    pub fn status(&self) -> PolicyStatus {
        self.lock_status().clone()
    }

    pub(super) fn lock_status(&self) -> MutexGuard<'_, PolicyStatus> {
        self.0.status.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a policy into use as the next generation.
    pub(super) fn publish(&self, policy: Policy, now: SystemTime) -> u64 {
        let generation = self.generation().saturating_add(1);
        let policy = policy.with_generation(generation);
        policy.warn_of_report_mode();
        {
            let mut status = self.lock_status();
            status.generation = generation;
            status.mode = policy.mode();
            status.reloads = status.reloads.saturating_add(1);
            status.last_reload = Some(now);
            status.last_error = None;
        }
        self.0.sender.send_modify(|current| {
            *current = Arc::new(policy);
            // Before anybody is told: a call that is woken and finds the old generation would sleep on. Under the lock:
            // whoever finds the new generation finds the new policy.
            self.0.generation.store(generation, Ordering::Release);
        });
        generation
    }
}

impl Default for PolicyWatch {
    /// Every verified peer may call everything.
    fn default() -> Self {
        Self::fixed(AllowList::default())
    }
}

impl From<AllowList> for PolicyWatch {
    fn from(list: AllowList) -> Self {
        Self::fixed(list)
    }
}

/// Replaces the policy of a watch made by [`PolicyWatch::from_memory`].
#[derive(Debug)]
pub struct PolicyPublisher {
    watch: PolicyWatch,
    events: Events,
    clock: Clock,
}

impl PolicyPublisher {
    /// Also sends reloads here, and takes the time from this clock.
    #[must_use]
    pub fn with_events(self, events: Events, clock: Clock) -> Self {
        Self {
            events,
            clock,
            ..self
        }
    }

    /// Takes another policy into use, whatever it permits.
    pub fn replace(&mut self, policy: impl Into<Policy>) {
        let generation = self.watch.publish(policy.into(), self.clock.now());
        tracing::info!(audit = true, generation, "policy replaced");
        let unit = Unit::Policy;
        self.events
            .emit(&self.clock, || Event::Reloaded { unit, generation });
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::{Context, Poll, Wake, Waker};

    use super::*;

    /// Notes the generation that it finds at the moment it is woken.
    struct Woken {
        policy: PolicyWatch,
        found: AtomicU64,
    }

    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            let generation = self.policy.generation();
            self.found.store(generation, Ordering::Release);
        }
    }

    /// V17. Whoever is told of a new policy sees its generation: a call that still saw the old one would sleep on.
    #[test]
    fn the_generation_is_there_when_a_new_policy_is_told_of() {
        let (policy, mut publisher) = PolicyWatch::from_memory(AllowList::default());
        let mut receiver = policy.subscribe();
        let woken = Arc::new(Woken {
            policy,
            found: AtomicU64::default(),
        });
        let waker = Waker::from(Arc::clone(&woken));
        let mut changed = pin!(receiver.changed());
        let polled = changed.as_mut().poll(&mut Context::from_waker(&waker));
        assert!(matches!(polled, Poll::Pending));
        publisher.replace(AllowList::default());
        assert_eq!(woken.found.load(Ordering::Acquire), 2);
    }
}
