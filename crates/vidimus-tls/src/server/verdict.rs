//! What the policy in force says of a connection's peer, worked out once per connection and policy.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use super::registry::Entry;
use super::{Inner, Security};
use crate::identity::PeerIdentity;
use crate::policy::{Judgement, Policy, PolicyRefusal, Refused};
use crate::verify::VerifiedChain;

/// The policy, the peer as it stands, and what the one says of the other.
#[derive(Debug)]
pub(super) struct Verdict {
    policy: Arc<Policy>,
    /// The entry's, when it was worked out.
    epoch: u64,
    pub(super) peer: PeerIdentity,
    /// `None` where no policy applies.
    judgement: Option<Judgement>,
}

/// The policy's generation and the entry's epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Basis {
    generation: u64,
    epoch: u64,
}

impl Verdict {
    /// Whether the peer may call `path`.
    pub(super) fn permit(&self, path: &str) -> Result<(), PolicyRefusal> {
        match &self.judgement {
            Some(judgement) => self.policy.permit(judgement, path),
            None => Ok(()),
        }
    }

    /// Whether the peer may call at all; only what is carried out counts.
    pub(super) fn admitted(&self) -> Result<(), PolicyRefusal> {
        match self.judgement.as_ref().map(Judgement::admitted) {
            Some(Err(refusal)) if self.policy.enforces(refusal) => Err(refusal),
            _ => Ok(()),
        }
    }

    pub(super) fn enforces(&self, refusal: PolicyRefusal) -> bool {
        self.policy.enforces(refusal)
    }

    pub(super) fn generation(&self) -> u64 {
        self.policy.generation()
    }

    /// What it was worked out from: while both are the entry's and the policy's own, it holds.
    pub(super) fn basis(&self) -> Basis {
        Basis {
            generation: self.generation(),
            epoch: self.epoch,
        }
    }

    /// Whether a peer that may call may still not call everything.
    pub(super) fn has_rules(&self) -> bool {
        self.policy.methods().is_some()
    }
}

impl Entry {
    /// What a verdict of this moment would be worked out from.
    pub(super) fn basis(&self, server: &Inner) -> Basis {
        Basis {
            generation: server.policy.generation(),
            epoch: self.epoch.load(Ordering::Acquire),
        }
    }

    /// The verdict by the policy in force and the path that the peer is trusted by at present.
    pub(super) fn verdict(&self, server: &Inner) -> Arc<Verdict> {
        let basis = self.basis(server);
        if let Some(verdict) = self.verdict.load_full()
            && verdict.basis() == basis
        {
            return verdict;
        }
        let policy = server.policy.current();
        let chain = self.chain();
        let peer = match chain.as_ref().map(VerifiedChain::identity) {
            Some(identity) => PeerIdentity::Certificate(Arc::clone(identity)),
            None => self.peer.clone(),
        };
        let judgement = match &server.security {
            Security::Mutual { .. } => Some(policy.judge(Some(&peer))),
            Security::Local(_) => Some(policy.judge_local(&peer)),
            Security::Plaintext(_) => None,
        };
        let verdict = Arc::new(Verdict {
            policy,
            epoch: basis.epoch,
            peer,
            judgement,
        });
        self.verdict.store(Some(Arc::clone(&verdict)));
        verdict
    }
}

/// Counts, reports and logs a call that the policy doesn't permit; for a whole connection `path` is empty.
pub(super) fn report(server: &Inner, entry: &Entry, refusal: PolicyRefusal, path: &str) {
    let verdict = entry.verdict(server);
    if verdict.enforces(refusal) {
        server.counters.refused_by_policy.add();
        server.report_call_refused(entry, path, &refusal);
    } else {
        server.counters.would_be_refused.add();
    }
    if let Some(suppressed) = server.refusal_log.permit(Instant::now()) {
        if suppressed > 0 {
            tracing::warn!(suppressed, "refused calls were not logged one by one");
        }
        let refused = Refused {
            refusal,
            peer: Some(&verdict.peer),
            remote: &entry.remote,
            path,
            policy: &verdict.policy,
        };
        refused.log();
    }
}

/// Applies a new policy to what is under way; connections that it ends do so at the deadline. Those that came under this
/// policy stay: their peers are told by the refusal of each call.
pub(super) fn tighten(server: &Inner, deadline: Option<Instant>) {
    let generation = server.policy.generation();
    for entry in server.registry.entries() {
        if entry.policy < generation {
            apply(server, &entry, deadline);
        }
    }
}

/// Applies the policy to what is under way on a connection, after either has changed: that of a peer that may no longer
/// call ends as one does whose root is gone, and running calls look again whether they may go on.
pub(super) fn apply(server: &Inner, entry: &Entry, deadline: Option<Instant>) {
    let verdict = entry.verdict(server);
    if let Err(refusal) = verdict.admitted()
        && !entry.is_withdrawn()
    {
        tracing::warn!(
            audit = true,
            connection = %entry.id,
            remote = entry.remote,
            peer = entry.peer.label(),
            policy_generation = verdict.generation(),
            error = %refusal,
            "connection ended: its peer is no longer allowed"
        );
        server.withdraw(entry, &refusal, deadline);
        // Last, so that whoever sees the count finds it done.
        server.counters.withdrawn.add();
    }
    entry.recheck.notify_waiters();
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use super::*;
    use crate::identity::UnixPeer;
    use crate::policy::{AllowList, PolicyWatch};
    use crate::server::registry::{NewConnection, Registration};
    use crate::server::{LocalPeers, Server};

    fn connect(server: &Inner) -> Registration<'_> {
        server.registry.register(NewConnection {
            peer: PeerIdentity::Unix(UnixPeer {
                uid: 2,
                gid: 2,
                pid: None,
            }),
            address: None,
            generation: 0,
            chain: None,
            policy: server.policy.generation(),
            since: SystemTime::UNIX_EPOCH,
        })
    }

    /// V17. Whoever connects between a policy and the sweep for it hears from each call why not, and is not cut off.
    #[test]
    fn a_new_policy_ends_only_what_came_before_it() {
        let list = |text| AllowList::parse(text).expect("a list");
        let (policy, mut publisher) = PolicyWatch::from_memory(list("uid:1, uid:2"));
        let security = Security::Local(LocalPeers::users([1, 2]));
        let server = Server::builder(security).policy(policy).build();
        let before = connect(&server.0);
        publisher.replace(list("uid:1"));
        let after = connect(&server.0);
        tighten(&server.0, None);
        assert!(before.entry().is_withdrawn());
        assert!(!after.entry().is_withdrawn());
        assert!(after.entry().verdict(&server.0).admitted().is_err());
    }
}
