//! The one place that reads the wall clock; everything below a program takes `now`.

use std::{fmt::Debug, time::SystemTime};

/// Where a program's idea of the time of day comes from.
pub trait Clock: Debug + Send + Sync {
    /// The present time of day.
    fn now(&self) -> SystemTime;
}

/// The operating system's clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[expect(
        clippy::disallowed_methods,
        reason = "this is the clock that everybody else is to take"
    )]
    fn now(&self) -> SystemTime {
        SystemTime::now()
    }
}
