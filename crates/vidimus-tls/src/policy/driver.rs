//! Following a policy file: notice, read, settle, check, publish.

use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::time::{Instant, MissedTickBehavior, interval, sleep};
use tokio_util::sync::CancellationToken;

use super::sources::Sources;
use super::{Policy, PolicyError, PolicyWatch};
use crate::events::{Event, Unit};
use crate::material::{error_chain, folders_to_watch};
use crate::watch::{Notices, QUIET, WatchOptions, blocking, settle};

/// How often the log is reminded of a policy that only reports.
const REMINDER: Duration = Duration::from_secs(10 * 60);

/// The work behind a [`PolicyWatch`] of a file; the caller runs it.
#[derive(Debug)]
pub struct PolicyDriver {
    path: PathBuf,
    options: WatchOptions,
    watch: PolicyWatch,
    notices: Notices,
    /// What was judged last.
    seen: Sources,
    reminded: Instant,
}

impl PolicyDriver {
    pub(super) async fn start(
        path: PathBuf,
        options: WatchOptions,
    ) -> Result<(PolicyWatch, Self), PolicyError> {
        let first = read(&path).await;
        // Watch first and read then: a change in between is an event, not a gap.
        let mut notices = Notices::new(options.notices);
        follow(&mut notices, &first).await;
        let first = read(&path).await;
        let seen = match settled(first, &path, &options).await {
            Some(settled) => settled,
            None => read(&path).await,
        };
        let policy = seen.policy()?;
        if policy.allow_list().is_permissive() {
            tracing::warn!(
                file = %path.display(),
                methods = policy.methods().is_some(),
                "the policy's allow is empty: every verified peer may call"
            );
        }
        let watch = PolicyWatch::first(policy, true);
        watch.lock_status().events = Some(notices.is_armed());
        let driver = Self {
            path,
            options,
            watch: watch.clone(),
            notices,
            seen,
            reminded: Instant::now(),
        };
        Ok((watch, driver))
    }

    /// Follows the file until `shutdown`.
    pub async fn run(mut self, shutdown: CancellationToken) {
        let mut ticks = interval(self.options.poll);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                () = shutdown.cancelled() => return,
                () = self.notices.next() => {}
                _ = ticks.tick() => self.remind(),
            }
            tokio::select! {
                () = shutdown.cancelled() => return,
                () = self.activate() => {}
            }
        }
    }

    /// Compares the files with what was judged last and takes what is new and good into use. Does nothing otherwise.
    async fn activate(&mut self) {
        self.arm().await;
        let sources = read(&self.path).await;
        {
            let mut status = self.watch.lock_status();
            status.looks = status.looks.saturating_add(1);
        }
        let is_new = sources != self.seen;
        // What is still being written after a while, the next tick or event looks at.
        if is_new
            && let Some(sources) = settled(sources, &self.path, &self.options).await
            && sources != self.seen
        {
            self.judge(sources);
            // The bundles that it names may be in folders that nobody has watched.
            self.arm().await;
        }
        sleep(QUIET).await;
    }

    /// Watches the folders that the files are in by now.
    async fn arm(&mut self) {
        follow(&mut self.notices, &self.seen).await;
        let mut status = self.watch.lock_status();
        status.events = Some(self.notices.is_armed());
    }

    fn judge(&mut self, sources: Sources) {
        let judged = sources.policy().and_then(|policy| self.keep_closed(policy));
        self.seen = sources;
        match judged {
            Ok(policy) => {
                let generation = self.watch.publish(policy, self.options.clock.now());
                let policy = self.watch.current();
                tracing::info!(
                    audit = true,
                    file = %self.path.display(),
                    generation,
                    mode = %policy.mode(),
                    allowed = %policy.allow_list(),
                    rules = policy.methods().map_or(0, |rules| rules.iter().len()),
                    "policy reloaded"
                );
                self.report(|| Event::Reloaded {
                    unit: Unit::Policy,
                    generation,
                });
            }
            Err(error) => self.refuse(&error),
        }
    }

    /// A list that is gone would open what it closed.
    fn keep_closed(&self, policy: Policy) -> Result<Policy, PolicyError> {
        match policy.emptied_since(&self.watch.current()) {
            None => Ok(policy),
            Some(field) => Err(PolicyError::Emptied {
                path: self.path.clone(),
                field,
            }),
        }
    }

    /// Keeps the policy in force, and says why once until the reason changes.
    fn refuse(&self, error: &PolicyError) {
        let text = error_chain(error);
        let generation = {
            let mut status = self.watch.lock_status();
            if status.last_error.as_ref() == Some(&text) {
                return;
            }
            status.failures = status.failures.saturating_add(1);
            status.last_error = Some(text.clone());
            status.generation
        };
        tracing::warn!(
            audit = true,
            file = %self.path.display(),
            generation,
            error = text,
            "the policy on disk is not usable; the last good one stays in force"
        );
        self.report(|| Event::ReloadRefused {
            unit: Unit::Policy,
            generation,
            reason: text,
        });
    }

    fn remind(&mut self) {
        if self.reminded.elapsed() >= REMINDER {
            self.reminded = Instant::now();
            self.watch.current().warn_of_report_mode();
        }
    }

    fn report(&self, event: impl FnOnce() -> Event) {
        self.options.events.emit(&self.options.clock, event);
    }
}

async fn follow(notices: &mut Notices, sources: &Sources) {
    let paths: Vec<PathBuf> = sources.paths().map(Path::to_path_buf).collect();
    let folders = move || folders_to_watch(paths.iter().map(PathBuf::as_path));
    notices.follow(folders).await;
}

async fn read(path: &Path) -> Sources {
    let path = path.to_path_buf();
    blocking(move || Sources::read(&path)).await
}

async fn settled(first: Sources, path: &Path, options: &WatchOptions) -> Option<Sources> {
    if first.is_projected() {
        return Some(first);
    }
    settle(first, options.settle, || read(path)).await
}
