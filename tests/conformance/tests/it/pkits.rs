//! NIST's Public Key Interoperability Test Suite (PKITS) through the acceptor's verifier: every path of it, with its CAs
//! presented beside the certificate it ends in, with the suite's revocation lists beside the root and without them.

mod data;
mod differences;

use std::{sync::Arc, time::SystemTime};

use jiff::Timestamp;
use rustls_pki_types::CertificateDer;
use vidimus_tls::{
    material::{RevocationCheck, RevocationGap, RevocationOptions, Trust},
    verify::{self, Judge},
};
use vidimus_x509::{crl::RevocationList, pem};

use self::{
    data::Suite,
    differences::{
        POLICY_SETTINGS, REFUSED_LISTS, REVOKED, differences, differences_without_lists,
    },
};
use crate::verdicts::{self, Judged, Verdict, with_causes};

/// Within the suite's dates, 2010 to 2030, and past those of the certificates that should have expired.
const NOW: &str = "2026-06-29T00:00:00Z";

/// V5, V18.
#[test]
fn every_path_of_pkits_is_judged_as_expected_or_for_a_stated_reason_otherwise() {
    let suite = data::suite();
    let judged = judge_all(&suite, with_lists(root(&suite), &suite));
    for case in judged.iter().filter(|case| REVOKED.contains(&case.id)) {
        let refused = case.verdict.as_ref().expect_err(case.id);
        assert!(refused.contains("was revoked"), "{}: {refused}", case.id);
    }
    verdicts::hold("PKITS", &judged, &differences());
}

/// V5. No path that is bad in itself is refused for the sake of a missing list alone.
#[test]
fn without_lists_every_path_of_pkits_is_judged_the_same_unless_it_is_about_them() {
    let suite = data::suite();
    let judged = judge_all(&suite, root(&suite));
    verdicts::hold("PKITS without lists", &judged, &differences_without_lists());
}

fn judge_all(suite: &Suite, trust: Trust) -> Vec<Judged<'_>> {
    let trust = Arc::new(trust);
    let (mut judged, mut without_verdict) = (Vec::new(), Vec::new());
    for (id, end) in &suite.ends {
        // The suite says in the name what should come of a path.
        let good = id.starts_with("Valid");
        if !good && !id.starts_with("Invalid") {
            without_verdict.push(id.as_str());
            continue;
        }
        judged.push(Judged {
            id,
            about: "",
            good,
            verdict: judge(suite, end, &trust),
        });
    }
    assert_eq!(
        judged.len(),
        203,
        "the suite has so many paths with a verdict"
    );
    assert_eq!(without_verdict, POLICY_SETTINGS);
    judged
}

fn root(suite: &Suite) -> Trust {
    let pem = pem::encode("CERTIFICATE", &suite.root);
    Trust::from_pem(pem.as_bytes(), now()).expect("the suite's root")
}

/// Every list that can be read, at once; those that can't are named in the table.
fn with_lists(trust: Trust, suite: &Suite) -> Trust {
    let (mut text, mut refused) = (String::new(), Vec::new());
    for (name, der) in &suite.lists {
        match RevocationList::parse(der) {
            Ok(_) => text.push_str(&pem::encode(pem::X509_CRL, der)),
            Err(error) => refused.push((name.as_str(), with_causes(&error))),
        }
    }
    let names: Vec<_> = refused.iter().map(|(name, _)| *name).collect();
    assert_eq!(names, REFUSED_LISTS.map(|(name, _)| name));
    for ((name, reason), (_, part)) in refused.iter().zip(REFUSED_LISTS) {
        assert!(reason.contains(part), "{name}: {reason}");
    }
    let options = RevocationOptions {
        check: Some(RevocationCheck::Chain),
        stale: RevocationGap::Refuse,
        missing: RevocationGap::Refuse,
    };
    trust
        .with_revocation(text.as_bytes(), options, &[], now())
        .expect("lists that can be read")
}

fn judge(suite: &Suite, end: &[u8], trust: &Arc<Trust>) -> Verdict {
    let mut presented = vec![CertificateDer::from(end)];
    presented.extend(suite.above(end).into_iter().map(CertificateDer::from));
    let judged = verify::judge(Judge::Acceptor, trust, &presented, now());
    judged.map(drop).map_err(|refusal| with_causes(&refusal))
}

fn now() -> SystemTime {
    let now: Timestamp = NOW.parse().expect("RFC 3339");
    now.into()
}
