//! The work of a watch: notice, read, settle, check, publish.

use std::sync::{Arc, Mutex};
use std::time::SystemTime;

use tokio::time::{MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;

use super::notice::Notices;
use super::settle::{blocking, settle};
use super::{MaterialStatus, MaterialWatch, Shared, UnitStatus, WatchOptions};
use crate::events::{Event, Unit};
use crate::identity::Fingerprint;
use crate::material::{
    IdentityError, Layout, Material, MaterialError, MaterialFiles, Snapshot, TrustContext, Usage,
    error_chain,
};

/// The work behind a [`MaterialWatch`]; the caller runs it.
#[derive(Debug)]
pub struct MaterialDriver {
    files: MaterialFiles,
    usage: Usage,
    options: WatchOptions,
    watch: MaterialWatch,
    notices: Notices,
    seen: Seen,
    leaf_alarm: bool,
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
        files: MaterialFiles,
        usage: Usage,
        mut options: WatchOptions,
    ) -> Result<(MaterialWatch, Self), MaterialError> {
        // Watch first and read then: a change in between is an event, not a gap.
        let notices = Notices::new(files.directories(), options.notices);
        let snapshot = match read_settled(&files, &options).await {
            Some(snapshot) => snapshot,
            None => read(&files).await,
        };
        let now = options.clock.now();
        let identity = snapshot.identity(&files, usage, now)?;
        // Decided once: a list that is dropped in later must not refuse everybody else, nor one that vanishes let all in.
        options.revocation = options.revocation.decided(snapshot.has_lists());
        let context = TrustContext {
            revocation: options.revocation,
            own: identity.chain(),
            previous: None,
        };
        let trust = snapshot.trust(&files, context, now)?;
        let material = Material::new(1, Arc::new(identity), Arc::new(trust));
        let mut status = MaterialStatus::of(&material);
        status.events = notices.is_armed();
        let watch = MaterialWatch(Arc::new(Shared {
            sender: tokio::sync::watch::Sender::new(Arc::new(material)),
            status: Mutex::new(status),
        }));
        let driver = Self {
            seen: Seen::of(&snapshot),
            files,
            usage,
            options,
            watch: watch.clone(),
            notices,
            leaf_alarm: false,
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
                _ = ticks.tick() => {
                    self.notices.arm();
                    self.watch.lock_status().events = self.notices.is_armed();
                    self.look_at_leaf();
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
        let snapshot = read(&self.files).await;
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
            match settle(snapshot, self.options.settle, || read(&self.files)).await {
                Some(settled) => settled,
                // Still being written: the next tick or event looks again.
                None => return,
            }
        };
        self.judge(&snapshot);
    }

    fn has_error(&self) -> bool {
        self.watch.lock_status().last_error().is_some()
    }

    /// Judges each unit that changed, or that failed when it was judged last: time may have made it good.
    fn judge(&mut self, snapshot: &Snapshot) {
        let now = self.options.clock.now();
        let new = Seen::of(snapshot);
        let (failed_identity, failed_trust) = {
            let status = self.watch.lock_status();
            (
                status.identity.last_error.is_some(),
                status.trust.last_error.is_some(),
            )
        };
        let current = self.watch.current();
        let identity = (new.identity != self.seen.identity || failed_identity)
            .then(|| snapshot.identity(&self.files, self.usage, now));
        let own = match &identity {
            Some(Ok(identity)) => identity.chain(),
            Some(Err(_)) | None => current.identity().chain(),
        };
        let context = TrustContext {
            revocation: self.options.revocation,
            own,
            previous: Some(current.trust()),
        };
        let trust = (new.trust != self.seen.trust || failed_trust)
            .then(|| snapshot.trust(&self.files, context, now));
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
            self.leaf_alarm &= identity.is_none();
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
        }
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

    /// Says once that the certificate in use has expired.
    fn look_at_leaf(&mut self) {
        let material = self.watch.current();
        let leaf = material.identity().names();
        if !self.leaf_alarm && self.options.clock.now() > leaf.not_after() {
            self.leaf_alarm = true;
            self.report(|| Event::LeafExpired {
                subject: leaf.subject().to_owned(),
                not_after: leaf.not_after(),
            });
            tracing::error!(
                subject = leaf.subject(),
                not_after = crate::clock::rfc3339(leaf.not_after()),
                "the certificate in use has EXPIRED: peers refuse it until the files are renewed"
            );
        }
    }
}

async fn read(files: &MaterialFiles) -> Snapshot {
    let files = files.clone();
    blocking(move || Snapshot::read(&files)).await
}

async fn read_settled(files: &MaterialFiles, options: &WatchOptions) -> Option<Snapshot> {
    let first = read(files).await;
    match first.layout() {
        Layout::Projected => Some(first),
        Layout::Plain => settle(first, options.settle, || read(files)).await,
    }
}
