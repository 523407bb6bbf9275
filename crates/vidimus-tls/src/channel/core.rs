//! What all clones of a channel share: the connections, and how to get one.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;
use tokio::time::timeout_at;
use tokio_util::sync::{CancellationToken, DropGuard};
use tonic::Status;

use super::builder::{Config, Protection, Waiting};
use super::connect::ConnectError;
use super::connection::Connection;
use super::deadline::after;
use super::failure;
use super::pool::Pool;
use super::running;
use super::status::{ChannelState, ChannelStatus, Counting};
use super::target::Target;

/// What the manager is doing, for calls that wait for a connection.
#[derive(Clone, Debug)]
pub(super) enum Phase {
    Closed,
    Connecting,
    Failing(Arc<ConnectError>),
    Idle,
    /// The background work has not begun.
    NotRunning,
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
    /// No more calls: those that run may finish.
    pub(super) closing: CancellationToken,
    /// Nobody has the channel any more, or nobody waits for it any longer.
    pub(super) gone: CancellationToken,
    /// The background work is over.
    pub(super) ended: CancellationToken,
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

/// A channel. Dropping it ends the background work, and with it every connection.
#[derive(Debug)]
pub(super) struct Core {
    shared: Arc<Shared>,
    _gone: DropGuard,
    /// The background work, where nobody else runs it.
    task: JoinSet<()>,
}

impl Core {
    /// A channel whose work is a task of its own.
    pub(super) fn spawned(config: Config, runtime: &Handle) -> Self {
        let (mut core, work) = Self::driven(config, CancellationToken::new());
        core.task.spawn_on(work, runtime);
        core
    }

    /// A channel and its work, for somebody else to run until `stop`.
    pub(super) fn driven(
        config: Config,
        stop: CancellationToken,
    ) -> (Self, impl Future<Output = ()> + Send + 'static) {
        let shared = Arc::new(Shared {
            config,
            pool: Pool::default(),
            phase: watch::Sender::new(Phase::NotRunning),
            demand: Notify::new(),
            renewal: watch::Sender::default(),
            counting: Counting::default(),
            closing: CancellationToken::new(),
            gone: CancellationToken::new(),
            ended: CancellationToken::new(),
        });
        let work = running::work(Arc::clone(&shared), stop);
        let core = Self {
            _gone: shared.gone.clone().drop_guard(),
            task: JoinSet::new(),
            shared,
        };
        (core, work)
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
        let begins_until = after(self.config().connect_timeout);
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
                Phase::NotRunning => {
                    let begun = timeout_at(begins_until, phase.changed()).await;
                    if begun.is_err() {
                        return Err(Arc::new(ConnectError::NotRunning));
                    }
                    continue;
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
            Phase::Idle | Phase::NotRunning | Phase::Ready => ChannelState::Idle,
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
        let ended = tokio::time::timeout(grace, self.shared.ended.cancelled()).await;
        if ended.is_err() {
            self.shared.gone.cancel();
            tracing::debug!(target = %self.target(), "calls were cut off at the end of the grace period");
        }
    }
}
