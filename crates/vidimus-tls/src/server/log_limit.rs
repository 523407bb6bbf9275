//! A bound on how fast a kind of message may be logged, so that a flood of bad peers doesn't become a flood of lines.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Lines per window.
const BURST: u32 = 20;
/// The window.
const WINDOW: Duration = Duration::from_secs(1);

#[derive(Debug, Default)]
pub(super) struct LogLimit(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    window: Option<Instant>,
    lines: u32,
    suppressed: u64,
}

impl LogLimit {
    /// Whether a line may be written now; if so, with the number of lines left out since the last one.
    pub(super) fn permit(&self, now: Instant) -> Option<u64> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let fresh = state
            .window
            .is_none_or(|began| now.saturating_duration_since(began) >= WINDOW);
        if fresh {
            state.window = Some(now);
            state.lines = 0;
        }
        if state.lines >= BURST {
            state.suppressed = state.suppressed.saturating_add(1);
            return None;
        }
        state.lines = state.lines.saturating_add(1);
        Some(std::mem::take(&mut state.suppressed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_is_cut_and_counted() {
        let limit = LogLimit::default();
        let start = Instant::now();
        let written = (0..100).filter(|_| limit.permit(start).is_some()).count();
        assert_eq!(written, 20);
        assert_eq!(limit.permit(start + WINDOW), Some(80));
        assert_eq!(limit.permit(start + WINDOW), Some(0));
    }
}
