//! Where a connection's verifier leaves its result for whoever drives the handshake.

use std::sync::OnceLock;

use rustls::Error;

use super::{Refusal, VerifiedChain};

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
