//! The channel's background work: opens connections when calls need them or the material changes, and runs them.

use std::sync::Arc;

use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, Interval, MissedTickBehavior, interval, sleep_until};
use tracing::Instrument as _;

use super::backoff::{Retry, random_up_to};
use super::builder::Protection;
use super::connect::{self, ConnectError, Connected};
use super::connection::Connection;
use super::core::{Phase, Renewal, Shared};
use super::deadline::after;
use super::failure;
use super::newest::Newest;
use super::shrink;
use super::status::Counting;
use crate::events::Event;

/// How often the server may hang up on an attempt, without a reason, before it counts as failed.
const MAX_HANG_UPS: u32 = 2;
/// How often trust may move on during an attempt before it counts as failed.
const MAX_OVERTAKEN: u32 = 2;

/// Runs until the channel is closed and its last connection has ended.
pub(super) async fn run(shared: Arc<Shared>) {
    let material = match &shared.config.protection {
        Protection::None => None,
        Protection::Tls { watch, .. } => Some(Newest::new(watch.subscribe())),
    };
    shared.set_phase(Phase::Idle);
    let mut surplus = interval(shared.config.surplus_idle);
    surplus.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let state = Arc::clone(&shared);
    let mut manager = Manager {
        material,
        attempted: None,
        renewals: shared.renewals(),
        drivers: JoinSet::new(),
        demanded: false,
        first: Retry::new(shared.config.backoff),
        spare: Retry::new(shared.config.backoff),
        rotate_at: None,
        surplus,
        last_id: 0,
        shared,
    };
    tokio::select! {
        () = manager.run() => {}
        // On its own, so that no attempt to connect and no closing holds it up.
        never = shrink::follow(&state) => match never {},
    }
}

struct Manager {
    shared: Arc<Shared>,
    material: Option<Newest>,
    /// The generation at the begin of the last attempt to connect.
    attempted: Option<u64>,
    /// Connections that are to be replaced whatever their material.
    renewals: watch::Receiver<Renewal>,
    /// The connections; each ends with its id.
    drivers: JoinSet<u64>,
    /// A call waits for a first connection.
    demanded: bool,
    /// When to try again while there is no connection.
    first: Retry,
    /// When to try again for one more while there is one. Apart, since its failures say nothing about what comes when the
    /// last connection has ended: calls would wait for minutes that could be served.
    spare: Retry,
    /// When to open a connection with newer material.
    rotate_at: Option<Instant>,
    /// When to look whether all connections are needed.
    surplus: Interval,
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
        self.shared.pool.clear();
        self.shared.set_phase(Phase::Closed);
        while self.drivers.join_next().await.is_some() {}
    }

    fn next_task(&mut self) -> Task {
        let now = Instant::now();
        let usable = self.shared.pool.usable();
        if usable.is_empty() {
            self.rotate_at = None;
            return self.first_connection(now);
        }
        // A call that asked may have found a slot meanwhile.
        let full = usable.iter().all(|each| each.slots().are_full());
        let awaited = full && self.shared.pool.freed().is_awaited();
        self.demanded = false;
        let since = self.since();
        let stale = usable.iter().any(|each| self.is_stale(each, since));
        // What comes next has new material, so it makes room for whoever waits.
        let room = usable.len() < self.shared.config.max_connections || stale;
        if awaited && room {
            return Self::attempt(now, self.spare.at());
        }
        if !stale {
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

    /// What to do while there is no connection.
    fn first_connection(&self, now: Instant) -> Task {
        if now < self.first.at() || self.demanded {
            return Self::attempt(now, self.first.at());
        }
        if let Phase::Failing(_) | Phase::Ready = self.shared.phase() {
            // Wakes the calls that wait through failures, so that they ask again.
            self.shared.set_phase(Phase::Idle);
        }
        Task::Wait(None)
    }

    /// An attempt as soon as the last failure allows it.
    fn attempt(now: Instant, at: Instant) -> Task {
        if now < at {
            Task::Wait(Some(at))
        } else {
            Task::Connect
        }
    }

    fn since(&mut self) -> Option<u64> {
        self.material.as_mut().map(Newest::since)
    }

    /// Whether the connection was opened with another identity or other roots than those in use `since` a generation, or
    /// somebody asked for another one.
    fn is_stale(&self, connection: &Connection, since: Option<u64>) -> bool {
        connection.id() <= self.renewals.borrow().through || connection.generation() < since
    }

    /// What failed with the material before may go well now: nothing has to wait for that any longer.
    fn material_changed(&mut self) {
        let newest = self.material.as_ref().map(Newest::generation);
        if newest <= self.attempted {
            return;
        }
        self.first.reset();
        self.spare.reset();
        self.rotate_at = None;
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
                Some(material) => material.changed().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = self.shared.demanded() => self.demanded = true,
            () = renewed => self.material_changed(),
            // The channel's shared state holds the sender.
            Ok(()) = self.renewals.changed() => {
                if self.renewals.borrow_and_update().failure.is_none() {
                    self.rotate_at = Some(Instant::now());
                }
            }
            Some(ended) = self.drivers.join_next() => {
                let connection = ended.ok().and_then(|id| self.shared.pool.find(id));
                if let Some(connection) = connection {
                    self.shared.pool.retire(&connection);
                }
            }
            _now = self.surplus.tick() => self.close_surplus(),
            () = timer => {}
        }
    }

    /// Closes what a burst of calls needed and nobody needs any more. The first connection stays.
    fn close_surplus(&self) {
        for connection in self.shared.pool.usable().iter().skip(1) {
            if connection.is_unused() {
                self.shared.pool.retire(connection);
            }
        }
    }

    async fn connect(&mut self) {
        if self.shared.pool.newest().is_none() {
            self.shared.set_phase(Phase::Connecting);
        }
        let (mut hang_ups, mut overtaken): (u32, u32) = (0, 0);
        // One for all: a call has waited that long, however often the server hung up.
        let deadline = after(self.shared.config.connect_timeout);
        let mut before = None;
        loop {
            // What changes from here on is compared with this.
            let _since = self.since();
            self.attempted = self.material.as_ref().map(Newest::generation);
            let shared = &self.shared;
            let attempt = connect::connect(&shared.config, shared.pool.freed(), deadline).await;
            let error = match attempt.and_then(|connected| self.connected(connected)) {
                Ok(()) => return,
                Err(error) => error,
            };
            // Nothing was sent yet, so nobody has to fail because a server or its root was replaced at this very moment.
            let again = match error {
                ConnectError::Overtaken { .. } => &mut overtaken,
                _ if error.is_hang_up() => &mut hang_ups,
                // What the rest of the time was too short for says less than what came before.
                ConnectError::TimedOut { .. } => return self.failed(before.unwrap_or(error)),
                _ => return self.failed(error),
            };
            *again = again.saturating_add(1);
            let exhausted = hang_ups > MAX_HANG_UPS || overtaken > MAX_OVERTAKEN;
            if exhausted || Instant::now() >= deadline {
                return self.failed(error);
            }
            self.shared.counting.connect_failed(failure::chain(&error));
            before = Some(error);
        }
    }

    /// Takes a new connection into use, and gives the ones that it replaces no more calls.
    fn connected(&mut self, connected: Connected) -> Result<(), ConnectError> {
        let id = self.last_id.saturating_add(1);
        let trust = connected.trust.clone();
        let config = &self.shared.config;
        let (connection, driver) = Connection::new(id, connected, config.clock.now());
        // The order matters: from here on every change of trust finds it, and the changes before are looked at now.
        self.shared.pool.register(&connection);
        if let (Some(trust), Protection::Tls { watch, .. }) = (trust, &config.protection) {
            let now = watch.current();
            if !Arc::ptr_eq(&trust, now.trust()) {
                shrink::judge_again(config, &connection, now.trust()).map_err(|source| {
                    ConnectError::Overtaken {
                        address: connection.address().to_owned(),
                        source,
                    }
                })?;
            }
        }
        let span = tracing::debug_span!(
            "channel_connection",
            id,
            target = %config.target,
            address = connection.address(),
            generation = connection.generation(),
        );
        span.in_scope(|| tracing::debug!("connected"));
        config
            .events
            .emit(&config.clock, || connection.connected(&config.target));
        self.last_id = id;
        let ended = connection.ended();
        let driving = async move {
            tokio::select! {
                () = driver => {}
                () = ended => {}
            }
            id
        };
        self.drivers.spawn(driving.instrument(span));
        Counting::add(&self.shared.counting.connects);
        self.first.reset();
        self.spare.reset();
        self.demanded = false;
        self.rotate_at = None;
        let through = self.renewals.borrow().through;
        // Material may have changed again meanwhile: what is no older than the new connection stays beside it.
        let since = self.since().min(connection.generation());
        self.shared.pool.install(&connection, |before| {
            before.id() <= through || before.generation() < since
        });
        self.shared.set_phase(Phase::Ready);
        Ok(())
    }

    fn failed(&mut self, error: ConnectError) {
        let goes_on = self.shared.pool.newest().is_some();
        let retry = if goes_on {
            &mut self.spare
        } else {
            &mut self.first
        };
        let wait = retry.failed();
        let reason = failure::chain(&error);
        tracing::warn!(
            target = %self.shared.config.target,
            error = reason,
            again_in = ?wait,
            "cannot connect"
        );
        let config = &self.shared.config;
        config.events.emit(&config.clock, || Event::ChannelRefused {
            target: config.target.to_string(),
            reason: reason.clone(),
        });
        self.shared.counting.connect_failed(reason);
        let error = Arc::new(error);
        if goes_on {
            // The connections before go on serving.
            self.rotate_at = Some(self.spare.at());
        } else {
            self.demanded = false;
            self.shared.set_phase(Phase::Failing(Arc::clone(&error)));
        }
        self.shared.renewal_failed(error);
    }
}
