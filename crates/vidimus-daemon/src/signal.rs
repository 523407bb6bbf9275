//! From SIGINT and SIGTERM to cancellation tokens.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// What the process was asked to do by signals.
///
/// The first SIGINT or SIGTERM cancels [`Self::token`]: finish what runs, then end. The second one
/// cancels [`Self::immediate`]: whoever asks twice doesn't want to wait for a drain.
#[derive(Clone, Debug)]
pub struct Shutdown {
    token: CancellationToken,
    immediate: CancellationToken,
}

impl Shutdown {
    /// Cancelled by the first signal.
    #[must_use]
    pub const fn token(&self) -> &CancellationToken {
        &self.token
    }

    /// Cancelled by the second signal.
    #[must_use]
    pub const fn immediate(&self) -> &CancellationToken {
        &self.immediate
    }

    /// Runs a program until it ends, or drops it where it stands when the second signal comes
    /// (`None`).
    pub async fn run<T>(&self, program: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            biased;
            () = self.immediate.cancelled() => None,
            output = program => Some(output),
        }
    }
}

/// Starts to listen for SIGINT and SIGTERM; from here on they no longer end the process by
/// themselves.
///
/// # Errors
///
/// The operating system refused the handlers.
pub fn shutdown() -> io::Result<Shutdown> {
    let shutdown = Shutdown {
        token: CancellationToken::new(),
        immediate: CancellationToken::new(),
    };
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let tokens = shutdown.clone();
    #[expect(
        clippy::disallowed_methods,
        reason = "lives exactly as long as the process, owns nothing and cannot fail"
    )]
    tokio::spawn(async move {
        either(&mut interrupt, &mut terminate).await;
        tracing::info!("shutting down; a second signal ends at once");
        tokens.token.cancel();
        either(&mut interrupt, &mut terminate).await;
        tracing::warn!("second signal: ending at once");
        tokens.immediate.cancel();
    });
    Ok(shutdown)
}

/// [`shutdown`]'s token alone, for programs that ignore a second signal.
///
/// # Errors
///
/// As [`shutdown`].
pub fn shutdown_token() -> io::Result<CancellationToken> {
    Ok(shutdown()?.token)
}

async fn either(interrupt: &mut Signal, terminate: &mut Signal) {
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
}
