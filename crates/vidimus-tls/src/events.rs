//! What happens to connections and material, as a stream for programs: an agent's log, a console.
//!
//! Bounded and lossy: a listener that is slow loses the oldest events and is told how many. Nothing ever waits for a
//! listener, and without one no event is even made.
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() {
//! use vidimus_tls::clock::Clock;
//! use vidimus_tls::events::{Event, Events, Unit};
//!
//! let events = Events::bounded(1024);
//! let mut listener = events.subscribe();
//! events.emit(&Clock::system(), || Event::Reloaded { unit: Unit::Trust, generation: 2 });
//! let record = listener.next().await.expect("the event");
//! assert_eq!(record.missed, 0);
//! # }
//! ```

mod event;

use std::fmt;
use std::time::SystemTime;

use serde::Serialize;
use tokio::sync::broadcast::{self, error::RecvError};

pub use event::{DrainCause, Event, Unit};

use crate::clock::{Clock, serialize_time};

/// Where events are sent to. Clones send to the same listeners; the default has none and costs nothing.
#[derive(Clone, Default)]
pub struct Events(Option<broadcast::Sender<(SystemTime, Event)>>);

impl Events {
    /// Keeps at most `capacity` events (rounded up to a power of two, at least 1) for listeners that have not read them.
    #[must_use]
    pub fn bounded(capacity: usize) -> Self {
        // Half of the address space is what tokio would panic at.
        Self(Some(broadcast::Sender::new(capacity.clamp(1, 1 << 20))))
    }

    /// Listens from here on. A listener of [`Events::default`] hears nothing: its stream is over at once.
    #[must_use]
    pub fn subscribe(&self) -> EventReceiver {
        EventReceiver(self.0.as_ref().map(broadcast::Sender::subscribe))
    }

    /// Sends what `event` makes, which is not asked for if nobody listens. Never waits.
    pub fn emit(&self, clock: &Clock, event: impl FnOnce() -> Event) {
        if let Some(sender) = &self.0
            && sender.receiver_count() > 0
        {
            // The last listener may have left meanwhile, which is as good as none.
            drop(sender.send((clock.now(), event())));
        }
    }
}

impl fmt::Debug for Events {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let listeners = self.0.as_ref().map(broadcast::Sender::receiver_count);
        f.debug_struct("Events")
            .field("listeners", &listeners)
            .finish()
    }
}

/// One event with its time, and with what was lost before it. As JSON one flat object.
#[derive(Clone, Debug, Serialize)]
pub struct EventRecord {
    /// When it happened, by the clock of whoever reported it.
    #[serde(serialize_with = "serialize_time")]
    pub at: SystemTime,
    /// Events that this listener lost immediately before this one, because it was slow.
    pub missed: u64,
    /// What happened.
    #[serde(flatten)]
    pub event: Event,
}

/// Hears events. Dropping it ends the listening.
#[derive(Debug)]
pub struct EventReceiver(Option<broadcast::Receiver<(SystemTime, Event)>>);

impl EventReceiver {
    /// The next event; `None` once every [`Events`] of this stream is gone. Cancel-safe.
    pub async fn next(&mut self) -> Option<EventRecord> {
        let receiver = self.0.as_mut()?;
        let mut missed = 0_u64;
        loop {
            match receiver.recv().await {
                Ok((at, event)) => return Some(EventRecord { at, missed, event }),
                // What was lost is counted before the next await, which then finds an event at once.
                Err(RecvError::Lagged(count)) => missed = missed.saturating_add(count),
                Err(RecvError::Closed) => return None,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reloaded(generation: u64) -> impl FnOnce() -> Event {
        move || Event::Reloaded {
            unit: Unit::Trust,
            generation,
        }
    }

    /// The sender never waits: the oldest are lost, and the listener learns how many.
    #[tokio::test]
    async fn a_slow_listener_loses_the_oldest_and_is_told_how_many() {
        let (events, clock) = (Events::bounded(4), Clock::system());
        let mut slow = events.subscribe();
        for generation in 0..10 {
            events.emit(&clock, reloaded(generation));
        }
        drop(events);
        let mut seen = Vec::new();
        while let Some(record) = slow.next().await {
            seen.push((record.missed, record.event));
        }
        let expected: Vec<_> = [(6, 6), (0, 7), (0, 8), (0, 9)]
            .map(|(missed, generation)| (missed, reloaded(generation)()))
            .into();
        assert_eq!(seen, expected);
    }

    #[tokio::test]
    async fn without_a_listener_no_event_is_made() {
        let clock = Clock::system();
        for events in [Events::default(), Events::bounded(4)] {
            events.emit(&clock, || unreachable!("nobody listens"));
        }
        assert!(Events::default().subscribe().next().await.is_none());
    }

    #[tokio::test]
    async fn a_record_is_one_flat_json_object() {
        let events = Events::bounded(4);
        let mut listener = events.subscribe();
        let noon = Clock::from_fn(|| SystemTime::UNIX_EPOCH);
        events.emit(&noon, reloaded(3));
        let record = listener.next().await.expect("the event");
        let json = serde_json::to_value(&record).expect("JSON");
        let expected = serde_json::json!({
            "at": "1970-01-01T00:00:00Z", "missed": 0,
            "event": "reloaded", "unit": "trust", "generation": 3
        });
        assert_eq!(json, expected);
    }
}
