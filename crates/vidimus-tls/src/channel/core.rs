//! What all clones of a channel share: the connections, and how to get one.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tonic::Status;

use super::builder::{Config, Protection, Waiting};
use super::connect::ConnectError;
use super::connection::Connection;
use super::failure;
use super::manager;
use super::pool::Pool;
use super::status::{ChannelState, ChannelStatus, Counting};
use super::target::Target;

/// What the manager is doing, for calls that wait for a connection.
#[derive(Clone, Debug)]
pub(super) enum Phase {
    Closed,
    Connecting,
    Failing(Arc<ConnectError>),
    Idle,
    Ready,
}

/// What [`Core::reconnect`] asked for.
#[derive(Clone, Debug, Default)]
pub(super) struct Renewal {
    /// Connections up to this id are to be replaced.
    pub(super) through: u64,
    /// Why the last attempt to replace one failed; `None` after each new request.
    pub(super) failure: Option<Arc<ConnectError>>,
}

/// The state that the manager and the calls share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) config: Config,
    pub(super) pool: Pool,
    phase: watch::Sender<Phase>,
    demand: Notify,
    renewal: watch::Sender<Renewal>,
    pub(super) counting: Counting,
    pub(super) closing: CancellationToken,
}

impl Shared {
    pub(super) fn set_phase(&self, phase: Phase) {
        self.phase.send_replace(phase);
    }

    pub(super) fn phase(&self) -> Phase {
        self.phase.borrow().clone()
    }

    /// Which connections are to be replaced, and how it went.
    pub(super) fn renewals(&self) -> watch::Receiver<Renewal> {
        self.renewal.subscribe()
    }

    /// Tells those who wait in [`Core::reconnect`] that the present connection stays.
    pub(super) fn renewal_failed(&self, error: Arc<ConnectError>) {
        self.renewal
            .send_modify(|renewal| renewal.failure = Some(error));
    }

    /// Asks for a connection.
    pub(super) fn demand(&self) {
        self.demand.notify_one();
    }

    /// Waits until a call needs a connection.
    pub(super) async fn demanded(&self) {
        self.demand.notified().await;
    }
}

/// A channel. Dropping it ends the manager, and with it every connection.
#[derive(Debug)]
pub(super) struct Core {
    shared: Arc<Shared>,
    manager: Mutex<JoinSet<()>>,
}

impl Core {
    pub(super) fn start(config: Config, runtime: &Handle) -> Self {
        let shared = Arc::new(Shared {
            config,
            pool: Pool::default(),
            phase: watch::Sender::new(Phase::Idle),
            demand: Notify::new(),
            renewal: watch::Sender::default(),
            counting: Counting::default(),
            closing: CancellationToken::new(),
        });
        let mut manager = JoinSet::new();
        manager.spawn_on(manager::run(Arc::clone(&shared)), runtime);
        Self {
            shared,
            manager: Mutex::new(manager),
        }
    }

    pub(super) fn config(&self) -> &Config {
        &self.shared.config
    }

    pub(super) fn target(&self) -> &Target {
        &self.shared.config.target
    }

    pub(super) fn counting(&self) -> &Counting {
        &self.shared.counting
    }

    pub(super) fn is_connected(&self) -> bool {
        self.shared.pool.newest().is_some()
    }

    /// Gives this connection no more calls.
    pub(super) fn retire(&self, connection: &Arc<Connection>) {
        self.shared.pool.retire(connection);
    }

    /// The same by its id.
    pub(super) fn retire_id(&self, id: u64) {
        if let Some(connection) = self.shared.pool.find(id) {
            self.retire(&connection);
        }
    }

    /// A connection that the server has accepted, with a slot taken on it, waiting for one if need be. One of those `after`
    /// only if no other has a slot.
    pub(super) async fn take(&self, after: &[u64]) -> Result<Arc<Connection>, Arc<ConnectError>> {
        let pool = &self.shared.pool;
        loop {
            if let Some(connection) = pool.take(after) {
                return Ok(connection);
            }
            self.connection().await?;
            // There is one; if none has a free slot, another one is asked for, and the first slot is taken wherever it is.
            let taken = pool.freed().wait(|| {
                pool.take(after).map(Some).or_else(|| {
                    self.shared.demand();
                    // Without any connection, the reason why is what the caller wants to hear.
                    pool.newest().is_none().then_some(None)
                })
            });
            if let Some(connection) = taken.await {
                return Ok(connection);
            }
        }
    }

    /// A connection that the server has accepted, waiting for one if need be.
    pub(super) async fn connection(&self) -> Result<Arc<Connection>, Arc<ConnectError>> {
        if let Some(connection) = self.shared.pool.newest() {
            return Ok(connection);
        }
        let mut phase = self.shared.phase.subscribe();
        loop {
            let seen = phase.borrow_and_update().clone();
            if let Some(connection) = self.shared.pool.newest() {
                return Ok(connection);
            }
            match seen {
                Phase::Closed => return Err(Arc::new(ConnectError::Closed)),
                Phase::Failing(error) if self.shared.config.waiting == Waiting::FailFast => {
                    return Err(error);
                }
                Phase::Failing(_) | Phase::Connecting | Phase::Idle | Phase::Ready => {}
            }
            self.shared.demand();
            if phase.changed().await.is_err() {
                return Err(Arc::new(ConnectError::Closed));
            }
        }
    }

    /// Replaces the connections by a new one; calls move over when the new one serves.
    pub(super) async fn reconnect(&self) -> Result<(), Arc<ConnectError>> {
        let Some(before) = self.shared.pool.newest().map(|newest| newest.id()) else {
            return self.connection().await.map(drop);
        };
        let mut phase = self.shared.phase.subscribe();
        self.shared.renewal.send_modify(|renewal| {
            renewal.through = renewal.through.max(before);
            renewal.failure = None;
        });
        let mut renewal = self.shared.renewals();
        loop {
            let seen = phase.borrow_and_update().clone();
            let failure = renewal.borrow_and_update().failure.clone();
            match (self.shared.pool.newest(), seen) {
                (Some(newest), _) if newest.id() > before => return Ok(()),
                (_, Phase::Closed) => return Err(Arc::new(ConnectError::Closed)),
                (None, Phase::Failing(error)) => return Err(error),
                (None, _) => self.shared.demand(),
                (Some(_), _) => {}
            }
            if let Some(error) = failure {
                return Err(error);
            }
            tokio::select! {
                _changed = phase.changed() => {}
                _changed = renewal.changed() => {}
            }
        }
    }

    pub(super) fn unavailable(&self, error: &Arc<ConnectError>) -> Status {
        failure::unavailable(self.target(), error)
    }

    pub(super) fn status(&self) -> ChannelStatus {
        let config = self.config();
        let pool = &self.shared.pool;
        let state = match self.shared.phase() {
            Phase::Closed => ChannelState::Closed,
            Phase::Connecting => ChannelState::Connecting,
            Phase::Failing(_) => ChannelState::Failing,
            Phase::Ready if pool.newest().is_some() => ChannelState::Ready,
            Phase::Idle | Phase::Ready => ChannelState::Idle,
        };
        let generation = match &config.protection {
            Protection::None => None,
            Protection::Tls { watch, .. } => Some(watch.current().generation()),
        };
        ChannelStatus {
            target: config.target.to_string(),
            server_name: config.server_name.to_str().into_owned(),
            state,
            generation,
            connections: pool.live().iter().map(|each| each.status()).collect(),
            counters: self.shared.counting.snapshot(),
        }
    }

    pub(super) async fn close(&self, grace: Duration) {
        self.shared.closing.cancel();
        let mut manager = {
            let mut held = self.manager.lock().unwrap_or_else(PoisonError::into_inner);
            std::mem::take(&mut *held)
        };
        let ended = tokio::time::timeout(grace, manager.join_next()).await;
        if ended.is_err() {
            tracing::debug!(target = %self.target(), "calls were cut off at the end of the grace period");
        }
    }
}
