//! What happens to live connections when the roots or the revocation lists change, and when certificates expire.
//!
//! A long-lived connection would keep a peer's access for as long as it likes: every chain is judged again, along any
//! path, and a connection whose chain no longer holds is ended. Others never notice.

use std::time::{Instant, SystemTime};

use super::registry::{ConnectionId, Entry};
use super::verdict::apply;
use super::{ExpiredPeers, Inner, Security};
use crate::events::DrainCause;
use crate::identity::Fingerprint;
use crate::material::Material;
use crate::verify::VerifiedChain;

/// Judges every connection again after the roots or the revocation lists changed; those that fail end at the deadline.
pub(super) fn sweep(server: &Inner, material: &Material, deadline: Option<Instant>) {
    for entry in server.registry.entries() {
        judge(server, &entry, material, deadline);
    }
}

/// Ends the connections whose chain has expired meanwhile, unless that is to be ignored.
///
/// Judged by a look at the wall clock now and then: one long sleep would miss a clock that is set and a machine that was
/// suspended.
pub(super) fn expire(server: &Inner) {
    if server.limits.expired_peers == ExpiredPeers::Ignore {
        return;
    }
    let now = server.clock.now();
    for entry in server.registry.entries() {
        let chain = entry.chain();
        let expired = chain.filter(|chain| now > chain.earliest_not_after());
        if let Some(chain) = expired
            && !entry.is_refusing()
            && !holds_otherwise(server, &entry, &chain, now)
        {
            entry.refuse_calls();
            tracing::info!(
                audit = true,
                connection = %entry.id,
                remote = entry.remote,
                peer = entry.peer.label(),
                "connection asked to end: its peer's certificate has expired"
            );
            let deadline = Instant::now().checked_add(server.limits.expired_peer_grace);
            server.drain(&entry, DrainCause::Expired, deadline);
            server.counters.expired.add();
        }
    }
}

/// Whether a chain, a certificate of whose path has expired, holds along another path.
fn holds_otherwise(server: &Inner, entry: &Entry, chain: &VerifiedChain, now: SystemTime) -> bool {
    let Security::Mutual { material, .. } = &server.security else {
        return false;
    };
    let material = material.current();
    // Pinned peers have one certificate and no path.
    let anew = chain
        .anchor()
        .and_then(|_| chain.judge(material.trust(), now).ok());
    let holds = anew.is_some();
    if holds {
        stand(server, entry, &material, anew, server.withdrawal_deadline());
    }
    holds
}

/// Notes that a connection's chain holds. Along another path the policy may say otherwise: a SPIFFE ID has to be under a
/// root of its own trust domain, and a CA with name constraints takes names away.
fn stand(
    server: &Inner,
    entry: &Entry,
    material: &Material,
    anew: Option<VerifiedChain>,
    deadline: Option<Instant>,
) {
    let moved = anew.is_some();
    entry.stands(material.generation(), anew);
    if moved {
        apply(server, entry, deadline);
    }
}

/// The connections whose chain would not hold along any path if this root left.
pub(super) fn needing(server: &Inner, material: &Material, root: Fingerprint) -> Vec<ConnectionId> {
    let remaining = material.trust().without(root);
    let now = server.clock.now();
    let needs = |entry: &Entry| match entry.chain() {
        // Other connections rest on a root that stays.
        Some(chain) if chain.anchor() == Some(root) => chain.judge(&remaining, now).is_err(),
        Some(_) | None => false,
    };
    let entries = server.registry.entries();
    let needing = entries.iter().filter(|entry| needs(entry));
    needing.map(|entry| entry.id).collect()
}

/// Whether the connection's peer is still trusted, along any path; if not, the connection ends at the deadline.
pub(super) fn judge(
    server: &Inner,
    entry: &Entry,
    material: &Material,
    deadline: Option<Instant>,
) -> bool {
    if entry.is_withdrawn() {
        return false;
    }
    let Some(chain) = entry.chain() else {
        return true;
    };
    // Pinned peers have no anchor, and no root that could be taken away.
    if chain.anchor().is_none() {
        return true;
    }
    match chain.judge_again(material.trust(), server.clock.now()) {
        Ok(anew) => {
            stand(server, entry, material, anew, deadline);
            true
        }
        // Newer material than this vouches for the peer; whether that still does is for the next sweep to find.
        Err(_) if entry.standing().generation > material.generation() => true,
        Err(refusal) => {
            tracing::warn!(
                audit = true,
                connection = %entry.id,
                remote = entry.remote,
                peer = entry.peer.label(),
                error = %refusal,
                "connection ended: its peer is no longer trusted"
            );
            server.withdraw(entry, &refusal, deadline);
            // Last, so that whoever sees the count finds it done.
            server.counters.withdrawn.add();
            false
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use rustls_pki_types::CertificateDer;
    use vidimus_testkit::Pki;

    use super::*;
    use crate::clock::Clock;
    use crate::identity::PeerIdentity;
    use crate::material::{Identity, Trust, Usage};
    use crate::server::registry::NewConnection;
    use crate::server::{Security, Server};
    use crate::verify::{Judge, judge as verify};
    use crate::watch::MaterialWatch;

    /// V14. Who connects under a root that was added while the change before it is still being swept for is not cut off:
    /// that sweep doesn't know the root.
    #[test]
    fn a_sweep_ends_only_what_no_newer_trust_vouches_for() {
        let (server, added) = (Pki::new("Server"), Pki::new("Added"));
        let now = Clock::system().now();
        let roots = |pem: String| Arc::new(Trust::from_pem(pem.as_bytes(), now).expect("roots"));
        let (without, with) = (
            roots(server.root.pem()),
            roots(server.root.pem() + &added.root.pem()),
        );
        let own = server.leaf("server").dns("server.test").server().issue();
        let (chain, key) = (own.chain_pem(), own.key_pem());
        let own = Identity::from_pem(chain.as_bytes(), key.as_bytes(), Usage::Server, now);
        let own = Arc::new(own.expect("an identity"));
        let swept = Material::new(2, Arc::clone(&own), without);
        let current = Material::new(3, own, Arc::clone(&with));
        let watch = MaterialWatch::fixed(current);
        let server = Server::builder(Security::mutual(watch)).build();

        let leaf = added.leaf("client").dns("client.test").client().issue();
        let presented = vidimus_x509::pem::certificates(leaf.chain_pem().as_bytes());
        let presented = presented.expect("certificates").into_iter();
        let presented: Vec<_> = presented.map(CertificateDer::from).collect();
        let chain = verify(Judge::Acceptor, &with, &presented, now).expect("a chain");
        let connect = |generation| {
            server.0.registry.register(NewConnection {
                peer: PeerIdentity::Certificate(Arc::clone(chain.identity())),
                address: None,
                generation,
                chain: Some(chain.clone()),
                policy: server.policy().generation(),
                since: now,
            })
        };
        let (before, after) = (connect(1), connect(3));
        sweep(&server.0, &swept, None);
        assert!(before.entry().is_withdrawn());
        assert!(!after.entry().is_withdrawn());
        assert_eq!(server.stats().withdrawn, 1);
    }
}
