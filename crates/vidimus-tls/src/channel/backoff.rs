//! How long to wait after a failed attempt to connect: longer each time, and never the same for everybody.

use std::hash::{BuildHasher as _, RandomState};
use std::time::Duration;

use tokio::time::Instant;

use super::deadline::after;

/// Grows by this factor in percent with every failure, as gRPC's own clients do.
const GROWTH_PERCENT: u32 = 160;
/// A wait is shortened by up to this part of it in percent.
const JITTER_PERCENT: u32 = 20;

/// When to try again what may have failed.
#[derive(Clone, Debug)]
pub(super) struct Retry {
    at: Instant,
    backoff: Backoff,
}

impl Retry {
    pub(super) fn new((initial, max): (Duration, Duration)) -> Self {
        Self {
            at: Instant::now(),
            backoff: Backoff::new(initial, max),
        }
    }

    /// No attempt before this.
    pub(super) fn at(&self) -> Instant {
        self.at
    }

    /// An attempt has failed: the wait before the next one.
    pub(super) fn failed(&mut self) -> Duration {
        let wait = self.backoff.after_failure();
        self.at = after(wait);
        wait
    }

    /// The next attempt may be made now.
    pub(super) fn reset(&mut self) {
        self.at = Instant::now();
        self.backoff.reset();
    }
}

#[derive(Clone, Debug)]
struct Backoff {
    initial: Duration,
    max: Duration,
    next: Duration,
}

impl Backoff {
    fn new(initial: Duration, max: Duration) -> Self {
        let max = max.max(initial);
        Self {
            initial,
            max,
            next: initial,
        }
    }

    /// The wait after one more failure.
    fn after_failure(&mut self) -> Duration {
        let wait = self.next;
        self.next = percent(wait, GROWTH_PERCENT).min(self.max);
        let jitter = random_up_to(percent(wait, JITTER_PERCENT));
        wait.saturating_sub(jitter)
    }

    fn reset(&mut self) {
        self.next = self.initial;
    }
}

/// A random duration between zero and `limit`. Spreads load; nothing secret rests on it.
pub(super) fn random_up_to(limit: Duration) -> Duration {
    // Every RandomState has keys of its own, so the hash of nothing is a random number.
    let random = RandomState::new().hash_one(()) % 1001;
    let thousandth = limit.checked_div(1000).unwrap_or_default();
    u32::try_from(random).map_or(limit, |random| thousandth.saturating_mul(random))
}

fn percent(duration: Duration, percent: u32) -> Duration {
    duration
        .checked_mul(percent)
        .and_then(|product| product.checked_div(100))
        .unwrap_or(Duration::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_up_to_the_limit_and_start_again_after_a_success() {
        let mut backoff = Backoff::new(Duration::from_secs(1), Duration::from_secs(120));
        let waits: Vec<_> = (0..20).map(|_| backoff.after_failure()).collect();
        let within = |wait: Duration, full: Duration| wait <= full && wait >= full * 8 / 10;
        assert!(within(waits[0], Duration::from_secs(1)), "{waits:?}");
        assert!(within(waits[1], Duration::from_millis(1600)), "{waits:?}");
        assert!(within(waits[19], Duration::from_secs(120)), "{waits:?}");
        backoff.reset();
        assert!(within(backoff.after_failure(), Duration::from_secs(1)));
    }

    #[test]
    fn jitter_differs_and_stays_below_its_limit() {
        let limit = Duration::from_secs(10);
        let drawn: Vec<_> = (0..50).map(|_| random_up_to(limit)).collect();
        assert!(drawn.iter().all(|wait| *wait <= limit));
        assert!(drawn.iter().any(|wait| *wait != drawn[0]));
    }
}
