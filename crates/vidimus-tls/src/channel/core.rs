//! What all clones of a channel share: the current connection, and how to get one.

use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use arc_swap::ArcSwapOption;
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
    current: ArcSwapOption<Connection>,
    phase: watch::Sender<Phase>,
    demand: Notify,
    renewal: watch::Sender<Renewal>,
    connections: Mutex<Vec<Weak<Connection>>>,
    pub(super) counting: Counting,
    pub(super) closing: CancellationToken,
}

impl Shared {
    /// The current connection, if new calls may use it.
    pub(super) fn usable(&self) -> Option<Arc<Connection>> {
        self.current
            .load_full()
            .filter(|connection| connection.is_usable())
    }

    /// Moves new calls to this connection. The one before ends with its last call.
    pub(super) fn install(&self, connection: Arc<Connection>) {
        let mut connections = self
            .connections
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        connections.retain(|connection| connection.strong_count() > 0);
        connections.push(Arc::downgrade(&connection));
        drop(connections);
        self.current.store(Some(connection));
        self.set_phase(Phase::Ready);
    }

    /// Gives this connection no more calls.
    pub(super) fn retire(&self, connection: &Arc<Connection>) {
        connection.retire();
        let was_current = self.current.load();
        if was_current
            .as_ref()
            .is_some_and(|current| Arc::ptr_eq(current, connection))
        {
            // Another connection may have been installed in between; that one stays.
            let _previous = self.current.compare_and_swap(&was_current, None);
        }
    }

    pub(super) fn set_phase(&self, phase: Phase) {
        self.phase.send_replace(phase);
    }

    pub(super) fn phase(&self) -> Phase {
        self.phase.borrow().clone()
    }

    /// Lets go of the current connection.
    pub(super) fn clear(&self) {
        if let Some(connection) = self.current.swap(None) {
            connection.retire();
        }
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

    /// Waits until a call needs a connection.
    pub(super) async fn demanded(&self) {
        self.demand.notified().await;
    }

    /// The live connection with this id.
    pub(super) fn find(&self, id: u64) -> Option<Arc<Connection>> {
        self.live()
            .into_iter()
            .find(|connection| connection.id() == id)
    }

    fn live(&self) -> Vec<Arc<Connection>> {
        let connections = self
            .connections
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        connections.iter().filter_map(Weak::upgrade).collect()
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
            current: ArcSwapOption::empty(),
            phase: watch::Sender::new(Phase::Idle),
            demand: Notify::new(),
            renewal: watch::Sender::default(),
            connections: Mutex::new(Vec::new()),
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

    pub(super) fn retire(&self, connection: &Arc<Connection>) {
        self.shared.retire(connection);
    }

    /// A connection that the server has accepted, waiting for one if need be.
    pub(super) async fn connection(&self) -> Result<Arc<Connection>, Arc<ConnectError>> {
        if let Some(connection) = self.shared.usable() {
            return Ok(connection);
        }
        let mut phase = self.shared.phase.subscribe();
        loop {
            let seen = phase.borrow_and_update().clone();
            if let Some(connection) = self.shared.usable() {
                return Ok(connection);
            }
            match seen {
                Phase::Closed => return Err(Arc::new(ConnectError::Closed)),
                Phase::Failing(error) if self.shared.config.waiting == Waiting::FailFast => {
                    return Err(error);
                }
                Phase::Failing(_) | Phase::Connecting | Phase::Idle | Phase::Ready => {}
            }
            self.shared.demand.notify_one();
            if phase.changed().await.is_err() {
                return Err(Arc::new(ConnectError::Closed));
            }
        }
    }

    /// Replaces the current connection by a new one; calls move over when the new one serves.
    pub(super) async fn reconnect(&self) -> Result<(), Arc<ConnectError>> {
        let Some(before) = self.shared.usable().map(|connection| connection.id()) else {
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
            match (self.shared.usable(), seen) {
                (Some(current), _) if current.id() > before => return Ok(()),
                (_, Phase::Closed) => return Err(Arc::new(ConnectError::Closed)),
                (None, Phase::Failing(error)) => return Err(error),
                (None, _) => self.shared.demand.notify_one(),
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
        let current = self.shared.usable().map(|connection| connection.id());
        let state = match self.shared.phase() {
            Phase::Closed => ChannelState::Closed,
            Phase::Connecting => ChannelState::Connecting,
            Phase::Failing(_) => ChannelState::Failing,
            Phase::Ready if current.is_some() => ChannelState::Ready,
            Phase::Idle | Phase::Ready => ChannelState::Idle,
        };
        let generation = match &config.protection {
            Protection::None => None,
            Protection::Tls { watch, .. } => Some(watch.current().generation()),
        };
        let live = self.shared.live();
        ChannelStatus {
            target: config.target.to_string(),
            server_name: config.server_name.to_str().into_owned(),
            state,
            generation,
            connections: live
                .iter()
                .map(|each| each.status(current == Some(each.id())))
                .collect(),
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
