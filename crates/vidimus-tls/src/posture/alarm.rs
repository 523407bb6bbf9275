//! The alarm for TLS files that appear after a start in plaintext: somebody meant this listener to be protected.

use std::time::Duration;

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::ExplicitOptOut;
use crate::material::MaterialFiles;

/// How often the directory is looked at.
const INTERVAL: Duration = Duration::from_secs(5);

/// Whether TLS files have appeared under a plaintext posture. Cheap to clone.
#[derive(Clone, Debug)]
pub struct PlaintextAlarm(watch::Receiver<bool>);

impl PlaintextAlarm {
    /// Whether files are there that a restart would use. Falls back to false when they are removed again.
    #[must_use]
    pub fn is_raised(&self) -> bool {
        *self.0.borrow()
    }

    /// Waits until the alarm is raised. Never returns if the driver ended before that.
    pub async fn raised(&mut self) {
        if self.0.wait_for(|raised| *raised).await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

/// The work behind a [`PlaintextAlarm`]; the caller runs it.
#[derive(Debug)]
pub struct AlarmDriver {
    files: MaterialFiles,
    variable: &'static str,
    raised: watch::Sender<bool>,
    interval: Duration,
}

/// Watches the directory of an opt-out for files that appear later.
#[must_use]
pub fn watch_for_material(opt_out: &ExplicitOptOut) -> (PlaintextAlarm, AlarmDriver) {
    let (sender, receiver) = watch::channel(false);
    let driver = AlarmDriver {
        files: MaterialFiles::in_dir(opt_out.directory()),
        variable: opt_out.variable(),
        raised: sender,
        interval: INTERVAL,
    };
    (PlaintextAlarm(receiver), driver)
}

impl AlarmDriver {
    /// Looks every `interval` instead of every five seconds.
    #[must_use]
    pub fn every(mut self, interval: Duration) -> Self {
        self.interval = interval;
        self
    }

    /// Looks until `shutdown`.
    pub async fn run(self, shutdown: CancellationToken) {
        let mut ticks = tokio::time::interval(self.interval);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                () = shutdown.cancelled() => return,
                _ = ticks.tick() => self.look(),
            }
        }
    }

    fn look(&self) {
        let found: Vec<String> = self
            .files
            .paths()
            .into_iter()
            .filter(|path| path.is_file())
            .map(|path| path.display().to_string())
            .collect();
        let raise = !found.is_empty();
        let changed = self.raised.send_if_modified(|raised| {
            let changed = *raised != raise;
            *raised = raise;
            changed
        });
        if changed && raise {
            tracing::warn!(
                audit = true,
                posture = "plaintext",
                variable = self.variable,
                files = found.join(", "),
                "TLS material has appeared but this process still serves PLAINTEXT: restart it to use the files"
            );
        }
    }
}
