//! Keeping material up to date while the process runs.
//!
//! The folder is watched, and its content is compared every five seconds in case the watch is blind. The content decides,
//! never the kind of event. What fails its checks leaves the last good state in use, is logged once per distinct reason
//! and counted. The work is a [`MaterialDriver`] that the caller runs.

mod alarms;
mod driver;
mod look;
mod notice;
mod own_chain;
mod publisher;
mod report;
mod settle;
mod status;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, watch};
use tokio::time::{MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;

pub use driver::MaterialDriver;
pub(crate) use notice::Notices;
pub use publisher::MaterialPublisher;
pub(crate) use settle::{QUIET, blocking, settle};
pub use status::{MaterialStatus, UnitStatus};

use alarms::Alarms;

use crate::clock::Clock;
use crate::events::Events;
use crate::material::{Material, MaterialError, MaterialSource, RevocationOptions, Usage};

/// Timing of a watch. The defaults suit every deployment; tests shorten them.
#[derive(Clone, Debug)]
pub struct WatchOptions {
    /// How often the content is compared even if no event came.
    pub poll: Duration,
    /// How long plain files must stay the same before they count.
    pub settle: Duration,
    /// Whether to ask the system for notices of changes at all.
    pub notices: bool,
    /// Where to report reloads, refusals and expiry.
    pub events: Events,
    /// What is asked of revocation lists.
    pub revocation: RevocationOptions,
    /// The clock that validity is judged by.
    pub clock: Clock,
}

impl Default for WatchOptions {
    fn default() -> Self {
        Self {
            poll: Duration::from_secs(5),
            settle: Duration::from_millis(250),
            notices: true,
            events: Events::default(),
            revocation: RevocationOptions::default(),
            clock: Clock::system(),
        }
    }
}

/// The material of this moment and of every later one. Cheap to clone.
#[derive(Clone, Debug)]
pub struct MaterialWatch(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    sender: watch::Sender<Arc<Material>>,
    status: Mutex<MaterialStatus>,
    wake: Notify,
}

impl MaterialWatch {
    /// Reads the files, or asks the function, checks what comes and prepares to follow it.
    ///
    /// # Errors
    ///
    /// The first fault of identity or trust: a process starts with good material or not at all.
    pub async fn start(
        source: impl Into<MaterialSource>,
        usage: Usage,
        options: WatchOptions,
    ) -> Result<(Self, MaterialDriver), MaterialError> {
        MaterialDriver::start(source.into(), usage, options).await
    }

    /// Material that never changes.
    #[must_use]
    pub fn fixed(material: Material) -> Self {
        let status = MaterialStatus::of(&material);
        Self(Arc::new(Shared {
            sender: watch::Sender::new(Arc::new(material)),
            status: Mutex::new(status),
            wake: Notify::new(),
        }))
    }

    /// Has the driver look at the source now and not at the next poll: for a function that knows of a change, or a signal
    /// that asks for it.
    pub fn look(&self) {
        self.0.wake.notify_one();
    }

    /// Material that the program itself replaces, such as a certificate it issues to itself. What ends with time is said by
    /// [`Self::raise_alarms`], which [`Runtime::memory`](crate::runtime::Runtime::memory) runs.
    #[must_use]
    pub fn from_memory(material: Material) -> (Self, MaterialPublisher) {
        let watch = Self::fixed(material);
        (watch.clone(), MaterialPublisher::of(watch))
    }

    /// Says what ends with time, in the log and as events, until `shutdown`: for material that no driver follows. Of the
    /// options, events, clock and poll count.
    pub async fn raise_alarms(self, options: WatchOptions, shutdown: CancellationToken) {
        let mut alarms = Alarms::default();
        let mut ticks = interval(options.poll);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        self.current().trust().warn(options.clock.now());
        loop {
            tokio::select! {
                () = shutdown.cancelled() => return,
                _ = ticks.tick() => {}
            }
            alarms.raise(&self.current(), &options.events, &options.clock);
        }
    }

    /// The material of this moment.
    #[must_use]
    pub fn current(&self) -> Arc<Material> {
        Arc::clone(&self.0.sender.borrow())
    }

    /// Follows the material from here on.
    #[must_use]
    pub fn subscribe(&self) -> watch::Receiver<Arc<Material>> {
        self.0.sender.subscribe()
    }

    /// Waits until the generation is at least `generation`, without a deadline of its own.
    ///
    /// # Panics
    ///
    /// Never: what it waits on lives as long as `self`.
    pub async fn wait_for_generation(&self, generation: u64) -> Arc<Material> {
        let mut receiver = self.subscribe();
        let material = receiver
            .wait_for(|material| material.generation() >= generation)
            .await
            .expect("the sender lives as long as self");
        Arc::clone(&material)
    }

    /// Generation, reloads, failures and the last error of each unit.
    #[must_use]
    pub fn status(&self) -> MaterialStatus {
        self.lock_status().clone()
    }

    fn lock_status(&self) -> std::sync::MutexGuard<'_, MaterialStatus> {
        self.0.status.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
