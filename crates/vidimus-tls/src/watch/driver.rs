//! The work of a watch: notice, read, settle, check, publish.

use std::sync::{Arc, Mutex};
use std::time::SystemTime;

use rustls_pki_types::CertificateDer;
use tokio::sync::Notify;
use tokio::time::{MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;

use super::alarms::{self, Alarms};
use super::notice::Notices;
use super::own_chain;
use super::settle::{blocking, settle};
use super::{MaterialStatus, MaterialWatch, Shared, UnitStatus, WatchOptions};
use crate::events::{Event, Unit};
use crate::identity::Fingerprint;
use crate::material::{
    IdentityError, Layout, Material, MaterialError, MaterialSource, RevocationCheck, Snapshot,
    Trust, TrustContext, TrustError, Usage, error_chain,
};

/// The work behind a [`MaterialWatch`]; the caller runs it.
#[derive(Debug)]
pub struct MaterialDriver {
    source: MaterialSource,
    usage: Usage,
    options: WatchOptions,
    watch: MaterialWatch,
    notices: Notices,
    seen: Seen,
    alarms: Alarms,
    /// Whether nothing needs to be said about lists that don't count.
    idle_lists: bool,
}

/// The versions that were judged last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Seen {
    identity: Option<[Fingerprint; 2]>,
    trust: Option<(Fingerprint, Option<Fingerprint>)>,
}

impl Seen {
    fn of(snapshot: &Snapshot) -> Self {
        Self {
            identity: snapshot.identity_digest(),
            trust: snapshot.trust_digest(),
        }
    }
}

impl MaterialDriver {
    pub(super) async fn start(
        source: MaterialSource,
        usage: Usage,
        mut options: WatchOptions,
    ) -> Result<(MaterialWatch, Self), MaterialError> {
        // Watch first and read then: a change in between is an event, not a gap.
        let directories = source.files().directories();
        let notices = Notices::new(directories, options.notices && source.is_files());
        let snapshot = match read_settled(&source, &options).await {
            Some(snapshot) => snapshot,
            None => read(&source).await,
        };
        let files = source.files();
        let now = options.clock.now();
        let identity = snapshot.identity(files, usage, now)?;
        // Decided once: a list that is dropped in later must not refuse everybody else, nor one that vanishes let all in.
        let is_asked = options.revocation.check.is_some();
        options.revocation = options.revocation.decided(snapshot.has_lists());
        let context = TrustContext {
            revocation: options.revocation,
            own: identity.chain(),
            previous: None,
        };
        let trust = snapshot.trust(files, context, now)?;
        let material = Material::new(1, Arc::new(identity), Arc::new(trust));
        own_chain::warn(&material, usage, now);
        let mut status = MaterialStatus::of(&material);
        status.events = notices.is_armed();
        let watch = MaterialWatch(Arc::new(Shared {
            sender: tokio::sync::watch::Sender::new(Arc::new(material)),
            status: Mutex::new(status),
            wake: Notify::new(),
        }));
        let driver = Self {
            seen: Seen::of(&snapshot),
            source,
            usage,
            options,
            watch: watch.clone(),
            notices,
            alarms: Alarms::default(),
            idle_lists: is_asked,
        };
        Ok((watch, driver))
    }

    /// Follows the files until `shutdown`.
    pub async fn run(mut self, shutdown: CancellationToken) {
        let mut ticks = interval(self.options.poll);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                () = shutdown.cancelled() => return,
                () = self.notices.next() => {}
                () = self.watch.0.wake.notified() => {}
                _ = ticks.tick() => {
                    self.notices.arm();
                    self.watch.lock_status().events = self.notices.is_armed();
                    self.raise_alarms();
                }
            }
            tokio::select! {
                () = shutdown.cancelled() => return,
                () = self.activate() => {}
            }
        }
    }

    /// Compares the files with what was judged last and takes what is new and good into use. Does nothing otherwise.
    async fn activate(&mut self) {
        let snapshot = read(&self.source).await;
        {
            let mut status = self.watch.lock_status();
            status.looks = status.looks.saturating_add(1);
        }
        if Seen::of(&snapshot) == self.seen && !self.has_error() {
            return;
        }
        let snapshot = if snapshot.layout() == Layout::Projected {
            snapshot
        } else {
            match settle(snapshot, self.options.settle, || read(&self.source)).await {
                Some(settled) => settled,
                // Still being written: the next tick or event looks again.
                None => return,
            }
        };
        self.judge(snapshot).await;
    }

    fn has_error(&self) -> bool {
        self.watch.lock_status().last_error().is_some()
    }

    /// Judges each unit that changed, or that failed when it was judged last: time may have made it good.
    async fn judge(&mut self, snapshot: Snapshot) {
        let now = self.options.clock.now();
        let new = Seen::of(&snapshot);
        let (failed_identity, failed_trust) = {
            let status = self.watch.lock_status();
            (
                status.identity.last_error.is_some(),
                status.trust.last_error.is_some(),
            )
        };
        let current = self.watch.current();
        let identity = (new.identity != self.seen.identity || failed_identity)
            .then(|| snapshot.identity(self.source.files(), self.usage, now));
        let own = match &identity {
            Some(Ok(identity)) => identity.chain(),
            Some(Err(_)) | None => current.identity().chain(),
        };
        let has_lists = snapshot.has_lists();
        let trust = if new.trust != self.seen.trust || failed_trust {
            Some(self.trust_of(snapshot, own.to_vec(), now).await)
        } else {
            None
        };
        self.seen = new;

        let identity = identity.and_then(|judged| {
            self.outcome(judged, IdentityError::reason, Unit::Identity, |status| {
                &mut status.identity
            })
        });
        let trust = trust.and_then(|judged| {
            self.outcome(
                judged,
                |error| error_chain(error),
                Unit::Trust,
                |status| &mut status.trust,
            )
        });
        // Files that went bad and came back as they were are good again but nothing new.
        let identity = identity.filter(|new| {
            new.fingerprint() != current.identity().fingerprint()
                || new.chain() != current.identity().chain()
        });
        let trust = trust.filter(|new| !new.is_same_as(current.trust()));
        if identity.is_some() || trust.is_some() {
            let units = [
                identity.as_ref().map(|_| Unit::Identity),
                trust.as_ref().map(|_| Unit::Trust),
            ];
            self.watch.publish(identity, trust, &self.options.clock);
            let generation = self.watch.current().generation();
            for unit in units.into_iter().flatten() {
                self.report(|| Event::Reloaded { unit, generation });
            }
            self.log_reload(now);
            own_chain::warn(&self.watch.current(), self.usage, now);
        }
        self.look_for_idle_lists(has_lists);
    }

    /// The trust of a read, after that in use. Not on a thread that runs tasks: a list of a hundred thousand entries takes
    /// some tens of milliseconds.
    async fn trust_of(
        &self,
        snapshot: Snapshot,
        own: Vec<CertificateDer<'static>>,
        now: SystemTime,
    ) -> Result<Trust, TrustError> {
        let (files, current) = (self.source.files().clone(), self.watch.current());
        let revocation = self.options.revocation;
        blocking(move || {
            let context = TrustContext {
                revocation,
                own: &own,
                previous: Some(current.trust()),
            };
            snapshot.trust(&files, context, now)
        })
        .await
    }

    /// Keeps the good unit, or the reason why it isn't; the reason is logged once until it changes.
    fn outcome<T, E: std::error::Error>(
        &self,
        judged: Result<T, E>,
        reason: impl Fn(&E) -> String,
        unit: Unit,
        select: impl Fn(&mut MaterialStatus) -> &mut UnitStatus,
    ) -> Option<T> {
        let mut status = self.watch.lock_status();
        let slot = select(&mut status);
        match judged {
            Ok(good) => {
                slot.last_error = None;
                slot.reason = None;
                Some(good)
            }
            Err(error) => {
                let reason = Some(reason(&error));
                if slot.reason == reason {
                    return None;
                }
                let text = error_chain(&error);
                slot.reason = reason;
                slot.failures = slot.failures.saturating_add(1);
                slot.last_error = Some(text.clone());
                status.failures = status.failures.saturating_add(1);
                let generation = status.generation;
                drop(status);
                self.report(|| Event::ReloadRefused {
                    unit,
                    generation,
                    reason: text.clone(),
                });
                tracing::warn!(
                    unit = unit.name(),
                    generation,
                    error = text,
                    "TLS material on disk is not usable; the last good one stays in use"
                );
                None
            }
        }
    }

    fn report(&self, event: impl FnOnce() -> Event) {
        self.options.events.emit(&self.options.clock, event);
    }

    fn log_reload(&self, now: SystemTime) {
        let material = self.watch.current();
        let leaf = material.identity().names();
        tracing::info!(
            generation = material.generation(),
            subject = leaf.subject(),
            serial = leaf.serial(),
            not_after = crate::clock::rfc3339(leaf.not_after()),
            roots = material.trust().roots().len(),
            valid_for_seconds = leaf
                .not_after()
                .duration_since(now)
                .unwrap_or_default()
                .as_secs(),
            "TLS material reloaded"
        );
    }

    /// Says what time has made wrong with the material in use.
    fn raise_alarms(&mut self) {
        let material = self.watch.current();
        for alarm in self.alarms.look(&material, self.options.clock.now()) {
            alarms::log(&alarm);
            self.report(|| alarm);
        }
    }

    /// Lists that have come after the start count from the next one on: they must not refuse everybody unasked.
    fn look_for_idle_lists(&mut self, has_lists: bool) {
        let is_off = self.options.revocation.check() == RevocationCheck::Off;
        if is_off && has_lists && !self.idle_lists {
            self.idle_lists = true;
            tracing::warn!(
                "revocation lists have appeared, but there were none at the start and no setting asks for them: restart \
                 to use them"
            );
        }
    }
}

async fn read(source: &MaterialSource) -> Snapshot {
    let source = source.clone();
    blocking(move || Snapshot::of(&source)).await
}

async fn read_settled(source: &MaterialSource, options: &WatchOptions) -> Option<Snapshot> {
    let first = read(source).await;
    match first.layout() {
        Layout::Projected => Some(first),
        Layout::Plain => settle(first, options.settle, || read(source)).await,
    }
}
