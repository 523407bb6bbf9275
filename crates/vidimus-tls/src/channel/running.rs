//! The channel's background work as one future, and what its end means for calls.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::core::{Phase, Shared};
use super::manager;

/// How long a channel that is told to stop waits for calls to end and says goodbye to its servers.
const GOODBYE: Duration = Duration::from_secs(1);

/// Everything the channel does by itself. Ends when the channel was closed, when its last clone is gone, and soon after
/// `stop`; from then on calls fail.
pub(super) fn work(
    shared: Arc<Shared>,
    stop: CancellationToken,
) -> impl Future<Output = ()> + Send + 'static {
    let ending = Ending(shared);
    async move {
        let shared = &ending.0;
        let mut managing = pin!(manager::run(Arc::clone(shared)));
        tokio::select! {
            () = managing.as_mut() => {}
            () = shared.gone.cancelled() => {}
            () = stop.cancelled() => {
                shared.closing.cancel();
                let ended = timeout(GOODBYE, managing).await;
                if ended.is_err() {
                    tracing::debug!(target = %shared.config.target, "calls were cut off when the channel was stopped");
                }
            }
        }
    }
}

/// Ends the channel however its work ends, also if that was dropped before it began: nobody waits for a connection that
/// nobody opens.
struct Ending(Arc<Shared>);

impl Drop for Ending {
    fn drop(&mut self) {
        self.0.pool.clear();
        self.0.set_phase(Phase::Closed);
        self.0.ended.cancel();
    }
}
