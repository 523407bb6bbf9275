//! Who may connect to a UNIX socket.

use std::collections::BTreeSet;

use crate::identity::UnixPeer;

/// The users that may connect to a UNIX socket. The process id is logged and never judged: ids are reused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LocalPeers {
    uids: BTreeSet<u32>,
}

impl LocalPeers {
    /// Only the user that this process runs as.
    #[must_use]
    pub fn owner() -> Self {
        Self::users([rustix::process::geteuid().as_raw()])
    }

    /// These users.
    #[must_use]
    pub fn users(uids: impl IntoIterator<Item = u32>) -> Self {
        Self {
            uids: uids.into_iter().collect(),
        }
    }

    /// Whether the peer's user is one of them.
    #[must_use]
    pub fn admit(&self, peer: &UnixPeer) -> bool {
        self.uids.contains(&peer.uid)
    }
}
