//! One look at the source, and whether what it found stands still.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::sleep;

use super::settle::{MAX_ROUNDS, blocking};
use crate::identity::Fingerprint;
use crate::material::{MaterialSource, Snapshot, Units};

/// Tells the versions of the two units from others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Seen {
    pub(super) identity: Option<[Fingerprint; 2]>,
    pub(super) trust: Option<(Fingerprint, Option<Fingerprint>)>,
}

impl Seen {
    fn of(snapshot: &Snapshot) -> Self {
        Self {
            identity: snapshot.identity_digest(),
            trust: snapshot.trust_digest(),
        }
    }

    pub(super) fn differs_from(self, other: Self) -> Units {
        Units {
            identity: self.identity != other.identity,
            trust: self.trust != other.trust,
        }
    }
}

/// What was read, its versions, and which units are complete: those that are swapped whole, and those that a look before
/// found the same.
pub(super) struct Look {
    pub(super) snapshot: Arc<Snapshot>,
    pub(super) seen: Seen,
    pub(super) stands: Units,
}

impl Look {
    /// Reads on a thread that may block, and hashes there too: lists are long.
    pub(super) async fn first(source: &MaterialSource) -> Self {
        let source = source.clone();
        blocking(move || {
            let snapshot = Snapshot::of(&source);
            Self {
                seen: Seen::of(&snapshot),
                stands: snapshot.projected(),
                snapshot: Arc::new(snapshot),
            }
        })
        .await
    }

    /// The next look, after a pause.
    pub(super) async fn again(&self, source: &MaterialSource, pause: Duration) -> Self {
        sleep(pause).await;
        let mut next = Self::first(source).await;
        let same = Units::BOTH.except(next.seen.differs_from(self.seen));
        next.stands = next.stands.or(same);
        next
    }

    /// Looks until both units stand, or have been waited for long enough.
    pub(super) async fn settled(source: &MaterialSource, pause: Duration) -> Self {
        let mut look = Self::first(source).await;
        for _ in 0..MAX_ROUNDS {
            if look.stands == Units::BOTH {
                break;
            }
            look = look.again(source, pause).await;
        }
        look
    }
}
