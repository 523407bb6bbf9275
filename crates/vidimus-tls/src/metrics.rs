//! What servers, channels and material count, through the `metrics` facade: for whichever recorder the program has installed.
//!
//! Nothing is added to the work of a connection or a call: the counters that are there anyway are copied when
//! [`ServerMetrics::record`] is called, before a page is rendered or every few seconds. The labels are few and fixed: a
//! root's fingerprint, a reason, never a peer's name. [`ServerMetrics`] copies what concerns its material, too; a program
//! that only calls takes [`MaterialMetrics`] and one [`ChannelMetrics`] for each channel.
//!
//! Of a server:
//!
//! | metric | kind, unit | labels |
//! |---|---|---|
//! | `vidimus_tls_sockets_accepted_total` | counter | `listener` |
//! | `vidimus_tls_accept_errors_total` | counter | `listener` |
//! | `vidimus_tls_handshakes_total` | counter | `listener`, `result` (`ok`, `failed`), `reason` |
//! | `vidimus_tls_calls_total` | counter | `listener`, `result` (`passed`, `refused`) |
//! | `vidimus_tls_calls_would_be_refused_total` | counter: passed by a policy that only reports | `listener` |
//! | `vidimus_tls_calls_ended_total` | counter: running when a new policy ended them | `listener` |
//! | `vidimus_tls_connections_ended_total` | counter | `listener`, `cause` (`withdrawn`, `expired`, `closed_hard`, `turned_away`) |
//! | `vidimus_tls_connections` | gauge | `listener`, `anchor`, `generation` (`current`, `older`) |
//! | `vidimus_tls_policy_generation` | gauge | `listener` |
//! | `vidimus_tls_policy_reloads_total` | counter | `listener`, `result` (`ok`, `refused`) |
//!
//! Of material; the last three say how long, negative once it is over, and NaN where what they were about is gone:
//!
//! | metric | kind, unit | labels |
//! |---|---|---|
//! | `vidimus_tls_material_generation` | gauge | `listener` |
//! | `vidimus_tls_reloads_total` | counter | `listener`, `result` (`ok`, `refused`) |
//! | `vidimus_tls_last_reload_timestamp_seconds` | gauge, seconds since 1970 | `listener` |
//! | `vidimus_tls_file_events` | gauge: 1, or 0 if only the poll notices changes; absent without files | `listener` |
//! | `vidimus_tls_leaf_expiry_seconds` | gauge, seconds | `listener` |
//! | `vidimus_tls_root_expiry_seconds` | gauge, seconds | `listener`, `anchor` |
//! | `vidimus_tls_crl_expiry_seconds` | gauge, seconds until nextUpdate, of the first list to end | `listener`, `issuer` |
//!
//! Of a channel:
//!
//! | metric | kind, unit | labels |
//! |---|---|---|
//! | `vidimus_tls_channel_ready` | gauge: 1 if there is a connection for the next call | `channel` |
//! | `vidimus_tls_channel_connections` | gauge | `channel`, `anchor`, `state` (`current`, `ending`) |
//! | `vidimus_tls_channel_connects_total` | counter | `channel`, `result` (`ok`, `failed`) |
//! | `vidimus_tls_channel_calls_total` | counter | `channel` |
//! | `vidimus_tls_channel_resends_total` | counter: requests sent again that were never processed | `channel` |
//! | `vidimus_tls_channel_connections_ended_total` | counter | `channel`, `cause` (`withdrawn`, `expired`) |

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
