//! Who may connect to a UNIX socket.

use std::collections::BTreeSet;

use crate::identity::UnixPeer;

/// The users and groups that may connect to a UNIX socket, as the kernel reports them at the moment of connecting. The
/// process id is logged and never judged: ids are reused.
///
/// A group is the peer's primary (effective) one. Supplementary groups are not looked at: for those, give the socket its
/// group and mode by [`crate::server::UnixOptions`] and admit the users.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LocalPeers {
    uids: BTreeSet<u32>,
    gids: BTreeSet<u32>,
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
            gids: BTreeSet::new(),
        }
    }

    /// And every user whose primary group is one of these.
    #[must_use]
    pub fn and_groups(mut self, gids: impl IntoIterator<Item = u32>) -> Self {
        self.gids.extend(gids);
        self
    }

    /// Whether the peer's user or group is one of them.
    #[must_use]
    pub fn admit(&self, peer: &UnixPeer) -> bool {
        self.uids.contains(&peer.uid) || self.gids.contains(&peer.gid)
    }
}
