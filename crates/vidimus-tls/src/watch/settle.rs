//! Reading files that somebody may be writing.

use std::future::Future;
use std::time::Duration;

use tokio::time::sleep;

/// Re-reads of files that keep changing before it is given up for now.
pub(super) const MAX_ROUNDS: usize = 40;

/// A pause after each look, so that a folder where something happens all the time isn't read all the time.
pub(crate) const QUIET: Duration = Duration::from_millis(50);

/// Reads until two reads `pause` apart agree; `None` if they never do.
pub(crate) async fn settle<T: PartialEq, F: Future<Output = T>>(
    first: T,
    pause: Duration,
    read: impl Fn() -> F,
) -> Option<T> {
    let mut last = first;
    for _ in 0..MAX_ROUNDS {
        sleep(pause).await;
        let again = read().await;
        if again == last {
            return Some(again);
        }
        last = again;
    }
    None
}

/// Reads on a thread that may block: a network file system can hang.
pub(crate) async fn blocking<T: Send + 'static>(read: impl FnOnce() -> T + Send + 'static) -> T {
    match tokio::task::spawn_blocking(read).await {
        Ok(read) => read,
        Err(failed) if failed.is_panic() => std::panic::resume_unwind(failed.into_panic()),
        // The runtime is shutting down.
        Err(_) => std::future::pending().await,
    }
}
