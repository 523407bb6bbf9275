//! Waiting for a state with a deadline: the test says what it waits for, and when that doesn't
//! come, the failure says how things stood last.

use std::{
    error::Error,
    fmt,
    future::Future,
    thread,
    time::{Duration, Instant},
};

/// How long to rest between two looks.
const REST: Duration = Duration::from_millis(10);

/// The deadline passed; the last status seen is the message.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct TimedOut {
    /// How long the wait was to take at most.
    pub deadline: Duration,
    /// What the closure answered last.
    pub last: String,
}

impl fmt::Display for TimedOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "still not so after {:?}: {}", self.deadline, self.last)
    }
}

impl Error for TimedOut {}

/// Asks `look` again and again until it answers `Ok`; `Err` holds the status so far.
///
/// # Panics
///
/// When `deadline` has passed, with the last status.
#[track_caller]
pub fn wait_until<T, S: fmt::Display>(deadline: Duration, look: impl FnMut() -> Result<T, S>) -> T {
    match try_wait_until(deadline, look) {
        Ok(value) => value,
        Err(timed_out) => panicking(&timed_out),
    }
}

/// Like [`wait_until`], with the timeout as an error.
///
/// # Errors
///
/// When `deadline` has passed.
pub fn try_wait_until<T, S: fmt::Display>(
    deadline: Duration,
    mut look: impl FnMut() -> Result<T, S>,
) -> Result<T, TimedOut> {
    let start = Instant::now();
    loop {
        match look() {
            Ok(value) => return Ok(value),
            Err(status) if start.elapsed() >= deadline => {
                return Err(TimedOut {
                    deadline,
                    last: status.to_string(),
                });
            }
            Err(_) => thread::sleep(REST),
        }
    }
}

/// [`wait_until`] for async code: `look` gives a future.
///
/// # Panics
///
/// When `deadline` has passed, with the last status.
pub async fn wait_until_async<T, S, F>(deadline: Duration, look: impl FnMut() -> F) -> T
where
    S: fmt::Display,
    F: Future<Output = Result<T, S>>,
{
    match try_wait_until_async(deadline, look).await {
        Ok(value) => value,
        Err(timed_out) => panicking(&timed_out),
    }
}

/// [`try_wait_until`] for async code. A look that never answers ends with the deadline, too.
///
/// # Errors
///
/// When `deadline` has passed.
pub async fn try_wait_until_async<T, S, F>(
    deadline: Duration,
    mut look: impl FnMut() -> F,
) -> Result<T, TimedOut>
where
    S: fmt::Display,
    F: Future<Output = Result<T, S>>,
{
    let mut last = "the first look has not answered".to_owned();
    let looking = async {
        loop {
            match look().await {
                Ok(value) => return value,
                Err(status) => last = status.to_string(),
            }
            tokio::time::sleep(REST).await;
        }
    };
    match tokio::time::timeout(deadline, looking).await {
        Ok(value) => Ok(value),
        Err(_elapsed) => Err(TimedOut { deadline, last }),
    }
}

#[track_caller]
#[expect(clippy::panic, reason = "a test that waited in vain has failed")]
fn panicking(timed_out: &TimedOut) -> ! {
    panic!("{timed_out}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_as_soon_as_the_state_is_there() {
        let mut looks = 0;
        let value = wait_until(Duration::from_secs(30), || {
            looks += 1;
            if looks == 3 {
                Ok("there")
            } else {
                Err("not yet")
            }
        });
        assert_eq!((value, looks), ("there", 3));
    }

    #[test]
    fn a_timeout_carries_the_last_status() {
        let mut looks = 0;
        let result = try_wait_until(Duration::from_millis(30), || -> Result<(), _> {
            looks += 1;
            Err(format!("look {looks}"))
        });
        let last = result.expect_err("it never comes").last;
        assert_eq!(last, format!("look {looks}"));
    }

    #[tokio::test]
    async fn an_async_look_that_hangs_ends_with_the_deadline() {
        let result = try_wait_until_async(
            Duration::from_millis(30),
            std::future::pending::<Result<(), &str>>,
        )
        .await;
        assert_eq!(
            result.expect_err("it hangs").last,
            "the first look has not answered"
        );
    }
}
