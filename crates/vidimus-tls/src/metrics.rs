//! What servers, channels and material count, through the `metrics` facade: for whichever recorder the program has installed.
//!
//! Nothing is added to the work of a connection or a call: the counters that are there anyway are copied when
//! [`ServerMetrics::record`] is called, before a page is rendered or every few seconds. The labels are few and fixed: a
//! root's fingerprint, a reason, never a peer's name. [`ServerMetrics`] copies what concerns its material, too; a program
//! that only calls takes [`MaterialMetrics`] and one [`ChannelMetrics`] for each channel.
//!
//! All of them, with their labels and units, are on the [page of metrics].
//!
//! [page of metrics]: https://github.com/vidimus/vidimus/blob/main/docs/src/reference/metrics.md

#[cfg(feature = "tonic")]
mod channel;
mod gauges;
mod material;
mod server;

use std::time::{Duration, SystemTime};

use tokio::time::{MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;

use crate::identity::Fingerprint;

#[cfg(feature = "tonic")]
pub use channel::ChannelMetrics;
pub use material::MaterialMetrics;
pub use server::ServerMetrics;

/// Calls `record` every so often until `shutdown`.
async fn repeat(record: impl Fn(), every: Duration, shutdown: CancellationToken) {
    let mut ticks = interval(every.max(Duration::from_millis(1)));
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            () = shutdown.cancelled() => return,
            _ = ticks.tick() => record(),
        }
    }
}

/// From `now` to `then`; negative if that has passed.
fn seconds_until(then: SystemTime, now: SystemTime) -> f64 {
    match then.duration_since(now) {
        Ok(left) => left.as_secs_f64(),
        Err(passed) => -passed.duration().as_secs_f64(),
    }
}

/// The label for a root, or for none.
fn anchor_label(anchor: Option<Fingerprint>) -> String {
    anchor.map_or_else(|| "none".to_owned(), |print| print.to_string())
}
