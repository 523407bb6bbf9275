//! A provider whose hypervisor is this process's memory.
//!
//! It keeps real state per virtual machine: what was created is described, listed, powered,
//! changed, cloned, snapshotted and brought back, and work takes time and is followed by tasks.
//! Nothing survives the process, and nothing runs inside the machines. What memory can't do
//! (moving disks to and from URLs, downloading images, linked clones) is refused as
//! `UNIMPLEMENTED` and is missing from the capabilities.

mod effect;
mod error;
mod hypervisor;
mod machine;
mod service;
mod spec;
mod tasks;

#[cfg(test)]
mod tests;

pub use self::error::MemoryError;

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::time::Instant;

use self::hypervisor::Hypervisor;

/// The provider. Clones share their machines.
#[derive(Clone, Debug)]
pub struct MemoryProvider {
    hypervisor: Arc<Mutex<Hypervisor>>,
}

/// How an in-memory provider behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryConfig {
    /// How long each task takes; zero does all work synchronously, without tasks.
    pub task_time: Duration,
    /// What it holds at most.
    pub limits: Limits,
}

/// Bounds on what callers can make the provider hold.
///
/// The defaults keep the longest possible list of machines under the 4 MiB of a gRPC message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Virtual machines, those under deletion included.
    pub machines: usize,
    /// Snapshots of one machine.
    pub snapshots: usize,
    /// Disks of one machine.
    pub disks: usize,
    /// Network interfaces of one machine.
    pub networks: usize,
    /// Tags of one machine.
    pub tags: usize,
    /// Prepared images.
    pub images: usize,
    /// Tasks that are not done yet.
    pub tasks_running: usize,
    /// Tasks that are done and can still be asked about; older ones are forgotten.
    pub tasks_done: usize,
}

impl Default for MemoryConfig {
    fn default() -> Self {
        Self {
            task_time: Duration::from_millis(200),
            limits: Limits::default(),
        }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            machines: 500,
            snapshots: 32,
            disks: 16,
            networks: 8,
            tags: 16,
            images: 256,
            tasks_running: 4_096,
            tasks_done: 4_096,
        }
    }
}

impl MemoryProvider {
    /// An empty hypervisor.
    #[must_use]
    pub fn new(config: MemoryConfig) -> Self {
        Self {
            hypervisor: Arc::new(Mutex::new(Hypervisor::new(config))),
        }
    }

    /// How many virtual machines there are at this moment.
    #[must_use]
    pub fn machines(&self) -> usize {
        self.at_present().machine_count()
    }

    /// The hypervisor with every effect that is due by now.
    fn at_present(&self) -> MutexGuard<'_, Hypervisor> {
        // a panic cannot have left the maps half-changed: each change is one insert or remove
        let mut hypervisor = self
            .hypervisor
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        hypervisor.advance(Instant::now());
        hypervisor
    }
}

impl Default for MemoryProvider {
    fn default() -> Self {
        Self::new(MemoryConfig::default())
    }
}
