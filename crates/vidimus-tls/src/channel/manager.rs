//! The channel's background work: opens connections when calls need them or the material changes, and runs them.

use std::sync::Arc;

use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

use super::backoff::{Backoff, random_up_to};
use super::builder::Protection;
use super::connect::{self, ConnectError, Connected};
use super::connection::Connection;
use super::core::{Phase, Renewal, Shared};
use super::deadline::after;
use super::failure;
use super::status::Counting;
use crate::material::Material;

/// How often the server may hang up on an attempt, without a reason, before it counts as failed.
const MAX_HANG_UPS: u32 = 2;

/// Runs until the channel is closed and its last connection has ended.
pub(super) async fn run(shared: Arc<Shared>) {
    let material = match &shared.config.protection {
        Protection::None => None,
        Protection::Tls { watch, .. } => Some(watch.subscribe()),
    };
    let (initial, max) = shared.config.backoff;
    let mut manager = Manager {
        material,
        renewals: shared.renewals(),
        drivers: JoinSet::new(),
        demanded: false,
        retry_at: Instant::now(),
        rotate_at: None,
        backoff: Backoff::new(initial, max),
        last_id: 0,
        shared,
    };
    manager.run().await;
}

struct Manager {
    shared: Arc<Shared>,
    material: Option<watch::Receiver<Arc<Material>>>,
    /// Connections that are to be replaced whatever their material.
    renewals: watch::Receiver<Renewal>,
    /// The connections; each ends with its id.
    drivers: JoinSet<u64>,
    /// A call waits for a connection.
    demanded: bool,
    /// No attempt before this.
    retry_at: Instant,
    /// When to open a connection with newer material.
    rotate_at: Option<Instant>,
    backoff: Backoff,
    last_id: u64,
}

enum Task {
    Connect,
    Wait(Option<Instant>),
}

impl Manager {
    async fn run(&mut self) {
        let closing = self.shared.closing.clone();
        let working = async {
            loop {
                match self.next_task() {
                    Task::Connect => self.connect().await,
                    Task::Wait(until) => self.wait(until).await,
                }
            }
        };
        let closed = closing.run_until_cancelled(working).await;
        debug_assert!(closed.is_none(), "the work itself never ends");
        self.shared.clear();
        self.shared.set_phase(Phase::Closed);
        while self.drivers.join_next().await.is_some() {}
    }

    fn next_task(&mut self) -> Task {
        let now = Instant::now();
        let Some(current) = self.shared.usable() else {
            self.rotate_at = None;
            if now < self.retry_at {
                return Task::Wait(Some(self.retry_at));
            }
            if self.demanded {
                return Task::Connect;
            }
            if let Phase::Failing(_) | Phase::Ready = self.shared.phase() {
                // Wakes the calls that wait through failures, so that they ask again.
                self.shared.set_phase(Phase::Idle);
            }
            return Task::Wait(None);
        };
        self.demanded = false;
        if !self.is_stale(&current) {
            self.rotate_at = None;
            return Task::Wait(None);
        }
        let jitter = self.shared.config.rotation_jitter;
        let at = *self
            .rotate_at
            .get_or_insert_with(|| after(random_up_to(jitter)));
        if now < at {
            Task::Wait(Some(at))
        } else {
            Task::Connect
        }
    }

    /// Whether there is newer material than the connection was opened with, or somebody asked for another one.
    fn is_stale(&self, connection: &Connection) -> bool {
        if connection.id() <= self.renewals.borrow().through {
            return true;
        }
        let newest = self
            .material
            .as_ref()
            .map(|material| material.borrow().generation());
        newest > connection.generation()
    }

    async fn wait(&mut self, until: Option<Instant>) {
        let timer = async {
            match until {
                Some(until) => sleep_until(until).await,
                None => std::future::pending().await,
            }
        };
        let renewed = async {
            match &mut self.material {
                // The channel holds the watch, so its sender lives.
                Some(material) => material.changed().await.is_ok(),
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = self.shared.demanded() => self.demanded = true,
            _renewed = renewed => {}
            // The channel's shared state holds the sender.
            Ok(()) = self.renewals.changed() => {
                if self.renewals.borrow_and_update().failure.is_none() {
                    self.rotate_at = Some(Instant::now());
                }
            }
            Some(ended) = self.drivers.join_next() => {
                let connection = ended.ok().and_then(|id| self.shared.find(id));
                if let Some(connection) = connection {
                    self.shared.retire(&connection);
                }
            }
            () = timer => {}
        }
    }

    async fn connect(&mut self) {
        if self.shared.usable().is_none() {
            self.shared.set_phase(Phase::Connecting);
        }
        let mut hang_ups: u32 = 0;
        loop {
            match connect::connect(&self.shared.config).await {
                Ok(connected) => return self.connected(connected),
                // Nothing was sent yet, so nobody has to fail because a server was replaced at this very moment.
                Err(error) if error.is_hang_up() && hang_ups < MAX_HANG_UPS => {
                    hang_ups = hang_ups.saturating_add(1);
                    self.shared.counting.connect_failed(failure::chain(&error));
                }
                Err(error) => return self.failed(error),
            }
        }
    }

    fn connected(&mut self, connected: Connected) {
        self.last_id = self.last_id.saturating_add(1);
        let (connection, driver) =
            Connection::new(self.last_id, connected, self.shared.config.clock.now());
        tracing::debug!(
            target = %self.shared.config.target,
            address = connection.address(),
            generation = connection.generation(),
            "connected"
        );
        let id = connection.id();
        self.drivers.spawn(async move {
            driver.await;
            id
        });
        Counting::add(&self.shared.counting.connects);
        self.backoff.reset();
        self.demanded = false;
        self.rotate_at = None;
        self.shared.install(connection);
    }

    fn failed(&mut self, error: ConnectError) {
        let wait = self.backoff.after_failure();
        let again = after(wait);
        let reason = failure::chain(&error);
        tracing::warn!(
            target = %self.shared.config.target,
            error = reason,
            again_in = ?wait,
            "cannot connect"
        );
        self.shared.counting.connect_failed(reason);
        self.retry_at = again;
        let error = Arc::new(error);
        if self.shared.usable().is_some() {
            // The connection before goes on serving.
            self.rotate_at = Some(again);
        } else {
            self.demanded = false;
            self.shared.set_phase(Phase::Failing(Arc::clone(&error)));
        }
        self.shared.renewal_failed(error);
    }
}
