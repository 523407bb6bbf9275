//! Keeping material up to date while the process runs.
//!
//! The folder is watched, and its content is compared every five seconds in case the watch is blind. The content decides,
//! never the kind of event. What fails its checks leaves the last good state in use, is logged once per distinct reason
//! and counted. The work is a [`MaterialDriver`] that the caller runs.

mod alarms;
mod driver;
mod notice;
mod own_chain;
mod settle;
mod status;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, watch};

pub use driver::MaterialDriver;
pub(crate) use notice::Notices;
pub(crate) use settle::{blocking, settle};
pub use status::{MaterialStatus, UnitStatus};

use crate::clock::Clock;
use crate::events::Events;
use crate::material::{
    Identity, IdentityError, Material, MaterialError, MaterialSource, RevocationOptions, Trust,
    Usage,
};

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

    /// Material that the program itself replaces, such as a certificate it issues to itself.
    #[must_use]
    pub fn from_memory(material: Material) -> (Self, MaterialPublisher) {
        let watch = Self::fixed(material);
        (watch.clone(), MaterialPublisher(watch))
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

    /// Takes new units into use as the next generation.
    fn publish(&self, identity: Option<Identity>, trust: Option<Trust>, clock: &Clock) {
        let current = self.current();
        let identity = identity.map_or_else(|| Arc::clone(current.identity()), Arc::new);
        let trust = trust.map_or_else(|| Arc::clone(current.trust()), Arc::new);
        let material = Material::new(current.generation().saturating_add(1), identity, trust);
        self.lock_status().reloaded(&material, clock.now());
        self.0.sender.send_replace(Arc::new(material));
    }
}

/// Replaces the material of a watch made by [`MaterialWatch::from_memory`].
#[derive(Debug)]
pub struct MaterialPublisher(MaterialWatch);

impl MaterialPublisher {
    /// Takes a new certificate and key, PEM, into use.
    ///
    /// # Errors
    ///
    /// What is wrong with them; the present ones stay.
    pub fn replace_identity(
        &mut self,
        certificates: &[u8],
        key: &[u8],
        usage: Usage,
        clock: &Clock,
    ) -> Result<(), IdentityError> {
        let identity = Identity::from_pem(certificates, key, usage, clock.now())?;
        self.0.publish(Some(identity), None, clock);
        Ok(())
    }

    /// Takes other roots and revocation lists into use. A list that isn't among the new ones stays in use, and none goes
    /// back in time, as with files.
    pub fn replace_trust(&mut self, trust: Trust, clock: &Clock) {
        let current = self.0.current();
        let trust = trust.after(current.trust(), current.identity().chain());
        self.0.publish(None, Some(trust), clock);
    }
}
