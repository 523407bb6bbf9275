//! Where a connection's verifier leaves its result for whoever drives the handshake.

use std::future::Future;
use std::sync::{Arc, OnceLock};

use rustls::Error;

use super::{Refusal, VerifiedChain};

tokio::task_local! {
    /// The slot of the handshake that is going on here.
    static CURRENT: Arc<HandshakeSlot>;
}

/// What came of verifying one connection's peer. Empty until the peer's certificate was seen.
#[derive(Debug, Default)]
pub struct HandshakeSlot(OnceLock<Result<VerifiedChain, Refusal>>);

impl HandshakeSlot {
    /// The accepted chain.
    #[must_use]
    pub fn accepted(&self) -> Option<&VerifiedChain> {
        self.0.get().and_then(|outcome| outcome.as_ref().ok())
    }

    /// Why the peer's certificate was refused.
    #[must_use]
    pub fn refusal(&self) -> Option<&Refusal> {
        self.0.get().and_then(|outcome| outcome.as_ref().err())
    }

    /// Runs one handshake, whose verifier finds this slot by [`Self::keep_here`].
    pub(crate) async fn during<F: Future>(self: &Arc<Self>, handshake: F) -> F::Output {
        CURRENT.scope(Arc::clone(self), handshake).await
    }

    /// The same where nothing waits.
    pub(super) fn within<T>(self: &Arc<Self>, verify: impl FnOnce() -> T) -> T {
        CURRENT.sync_scope(Arc::clone(self), verify)
    }

    /// Keeps `outcome` in the slot of the handshake that is going on here. Without one the peer is refused.
    pub(crate) fn keep_here(outcome: Result<VerifiedChain, Refusal>) -> Result<(), Error> {
        let kept = CURRENT.try_with(|slot| slot.keep(outcome));
        kept.unwrap_or_else(|_| {
            Err(Error::General(
                "a connection's peer was verified outside its handshake".to_owned(),
            ))
        })
    }

    /// Keeps `outcome` and turns it into what rustls wants to hear. A second outcome on one connection is refused: the
    /// first one is what the connection is served under.
    pub(crate) fn keep(&self, outcome: Result<VerifiedChain, Refusal>) -> Result<(), Error> {
        let answer = match &outcome {
            Ok(_) => Ok(()),
            Err(refusal) => Err(refusal.to_rustls()),
        };
        match self.0.set(outcome) {
            Ok(()) => answer,
            Err(_) => Err(Error::General(
                "a connection's peer was verified twice".to_owned(),
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal() -> Refusal {
        Refusal::Unreadable {
            position: 1,
            reason: "it is not a certificate".to_owned(),
        }
    }

    /// V17. A verifier that doesn't know whose handshake it is in lets nobody in.
    #[test]
    fn an_outcome_without_a_handshake_is_a_refusal() {
        let outcome = HandshakeSlot::keep_here(Err(refusal()));
        assert!(outcome.is_err_and(|error| error.to_string().contains("outside its handshake")));
    }

    /// V17. What one handshake's verifier says is no other's.
    #[tokio::test]
    async fn an_outcome_stays_in_its_own_handshake() {
        let (one, other) = (
            Arc::new(HandshakeSlot::default()),
            Arc::new(HandshakeSlot::default()),
        );
        let refused = one.during(async {
            tokio::task::yield_now().await;
            HandshakeSlot::keep_here(Err(refusal()))
        });
        let waiting = other.during(tokio::task::yield_now());
        let (refused, ()) = tokio::join!(refused, waiting);
        assert!(refused.is_err());
        assert!(one.refusal().is_some());
        assert!(other.refusal().is_none() && other.accepted().is_none());
    }
}
