//! The work of a watch: notice, read, settle, check, publish.

use std::sync::{Arc, Mutex};
use std::time::SystemTime;

use rustls_pki_types::CertificateDer;
use tokio::sync::Notify;
use tokio::time::{MissedTickBehavior, interval, sleep};
use tokio_util::sync::CancellationToken;

use super::alarms::Alarms;
use super::look::{Look, Seen};
use super::notice::Notices;
use super::own_chain;
use super::report::{IDENTITY, TRUST};
use super::settle::{MAX_ROUNDS, QUIET, blocking};
use super::{MaterialStatus, MaterialWatch, Shared, WatchOptions};
use crate::material::{
    Material, MaterialError, MaterialSource, RevocationCheck, Trust, TrustContext, TrustError,
    Units, Usage, error_chain,
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

impl MaterialDriver {
    pub(super) async fn start(
        source: MaterialSource,
        usage: Usage,
        mut options: WatchOptions,
    ) -> Result<(MaterialWatch, Self), MaterialError> {
        // Watch first and read then: a change in between is an event, not a gap.
        let enabled = options.notices && source.is_files();
        let mut notices = Notices::new(enabled);
        let events = follow(&mut notices, &source).await;
        let look = Look::settled(&source, options.settle).await;
        let snapshot = &look.snapshot;
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
        material.trust().warn(now);
        own_chain::warn(&material, usage, now);
        let mut status = MaterialStatus::of(&material);
        status.events = events;
        let watch = MaterialWatch(Arc::new(Shared {
            sender: tokio::sync::watch::Sender::new(Arc::new(material)),
            status: Mutex::new(status),
            wake: Notify::new(),
        }));
        let driver = Self {
            seen: look.seen,
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
                    let (events, clock) = (&self.options.events, &self.options.clock);
                    self.alarms.raise(&self.watch.current(), events, clock);
                }
            }
            tokio::select! {
                () = shutdown.cancelled() => return,
                () = self.activate() => {}
            }
        }
    }

    /// Compares the files with what was judged last and takes what is new and good into use. Does nothing otherwise.
    ///
    /// Each unit counts as soon as its own files stand still: who is slow to write one never holds up the other.
    async fn activate(&mut self) {
        self.arm().await;
        let mut look = Look::first(&self.source).await;
        // What failed when it was judged last: time may have made it good.
        let mut again = {
            let mut status = self.watch.lock_status();
            status.looks = status.looks.saturating_add(1);
            status.failed()
        };
        for _ in 0..MAX_ROUNDS {
            let ready = look.stands.and(again.or(look.seen.differs_from(self.seen)));
            if ready.any() {
                let done = self.judge(&look, ready).await;
                again = again.except(done);
            }
            if !again.or(look.seen.differs_from(self.seen)).any() {
                break;
            }
            look = look.again(&self.source, self.options.settle).await;
        }
        // What is still being written then, the next tick or event looks at.
        sleep(QUIET).await;
    }

    /// Watches the folders that the files are in by now, before they are read.
    async fn arm(&mut self) {
        let events = follow(&mut self.notices, &self.source).await;
        self.watch.lock_status().events = events;
    }

    /// Judges these units, takes those that are good and new into use, and returns those that are done with.
    ///
    /// A fault counts once everything stands still: the writer of a certificate may write roots before the key.
    async fn judge(&mut self, look: &Look, units: Units) -> Units {
        let (events, clock) = (&self.options.events, &self.options.clock);
        let (now, current) = (clock.now(), self.watch.current());
        let mut done = Units::default();
        let is_early = look.stands != Units::BOTH;
        let mut identity = None;
        if units.identity {
            let files = self.source.files();
            let judged = look.snapshot.identity(files, self.usage, now);
            if judged.is_ok() || !is_early {
                done.identity = true;
                self.seen.identity = look.seen.identity;
                match judged {
                    Ok(good) => {
                        self.watch.accepted(IDENTITY);
                        identity = Some(good);
                    }
                    Err(error) => {
                        let (reason, text) = (error.reason(), error_chain(&error));
                        self.watch.refused(IDENTITY, reason, text, events, clock);
                    }
                }
            }
        }
        let own = identity.as_ref().unwrap_or_else(|| current.identity());
        let mut trust = None;
        if units.trust {
            let judged = self.trust_of(look, own.chain().to_vec(), now).await;
            if judged.is_ok() || !is_early {
                done.trust = true;
                self.seen.trust = look.seen.trust;
                match judged {
                    Ok(good) => {
                        self.watch.accepted_trust(&good, events, clock);
                        trust = Some(good);
                    }
                    Err(error) => {
                        let text = error_chain(&error);
                        self.watch.refused(TRUST, text.clone(), text, events, clock);
                    }
                }
            }
        }
        // Files that went bad and came back as they were are good again but nothing new.
        let identity = identity.filter(|new| {
            new.fingerprint() != current.identity().fingerprint()
                || new.chain() != current.identity().chain()
        });
        let trust = trust.filter(|new| !new.is_same_as(current.trust()));
        if identity.is_some() || trust.is_some() {
            self.watch.publish(identity, trust, events, clock);
            own_chain::warn(&self.watch.current(), self.usage, now);
        }
        self.look_for_idle_lists(look.snapshot.has_lists());
        done
    }

    /// The trust of a look, after that in use. Not on a thread that runs tasks: a list of a hundred thousand entries takes
    /// some tens of milliseconds.
    async fn trust_of(
        &self,
        look: &Look,
        own: Vec<CertificateDer<'static>>,
        now: SystemTime,
    ) -> Result<Trust, TrustError> {
        let (files, current) = (self.source.files().clone(), self.watch.current());
        let (snapshot, revocation) = (Arc::clone(&look.snapshot), self.options.revocation);
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

/// Watches the folders that the source's files are in, and returns whether all of them are watched; `None` for a function.
async fn follow(notices: &mut Notices, source: &MaterialSource) -> Option<bool> {
    if !source.is_files() {
        return None;
    }
    let files = source.files().clone();
    notices.follow(move || files.folders_to_watch()).await;
    Some(notices.is_armed())
}
