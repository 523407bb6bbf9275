//! Revocation lists: who is refused by which list (V18), and what becomes of live connections (V14).

mod files;
mod following;
mod lists;
mod live;

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use rustls_pki_types::CertificateDer;
use vidimus_testkit::{Authority, Credential};
use vidimus_tls::clock::Clock;
use vidimus_tls::material::{RevocationCheck, RevocationGap, RevocationOptions, Trust};
use vidimus_tls::verify::{Judge, Refusal, judge};

const LEAF: RevocationOptions = RevocationOptions {
    check: Some(RevocationCheck::Leaf),
    stale: RevocationGap::Refuse,
    missing: RevocationGap::Refuse,
};

fn now() -> SystemTime {
    Clock::system().now()
}

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

fn roots(roots: &[&Authority]) -> Trust {
    let pem: String = roots.iter().map(|root| root.pem()).collect();
    Trust::from_pem(pem.as_bytes(), now()).expect("good roots")
}

/// Roots with lists.
fn trust(of: &[&Authority], lists: &[String], options: RevocationOptions) -> Arc<Trust> {
    let trust = roots(of).with_revocation(lists.concat().as_bytes(), options, &[], now());
    Arc::new(trust.expect("good lists"))
}

/// What an acceptor says about a client, as the word for metrics.
fn verdict(trust: &Arc<Trust>, of: &Credential, at: SystemTime) -> Result<(), &'static str> {
    refusal(trust, of, at).map_or(Ok(()), |refusal| Err(refusal.reason()))
}

fn refusal(trust: &Arc<Trust>, of: &Credential, at: SystemTime) -> Option<Refusal> {
    let chain: Vec<CertificateDer<'_>> = of
        .chain_der()
        .iter()
        .map(|der| CertificateDer::from(der.as_slice()))
        .collect();
    judge(Judge::Acceptor, trust, &chain, at).err()
}

fn leaf(of: &Authority, serial: &[u8]) -> Credential {
    of.leaf("client").dns("client.test").serial(serial).issue()
}
