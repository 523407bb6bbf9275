//! Every case of x509-limbo (<https://x509-limbo.com>) through the verifiers that connections get: those with a server's
//! name through the channel's, the others through the acceptor's.

mod cases;
mod differences;

use std::sync::Arc;

use rustls_pki_types::ServerName;
use vidimus_tls::{
    material::{RevocationCheck, RevocationOptions, Trust},
    verify::{self, Judge},
};

use self::{
    cases::{Case, Peer},
    differences::DIFFERENCES,
};
use crate::verdicts::{self, Judged, Verdict, with_causes};

/// V5, V18.
#[test]
#[cfg_attr(
    not(x509_limbo),
    ignore = "x509-limbo.json was not there when this was built: set VIDIMUS_CONFORMANCE to its folder"
)]
fn every_case_of_x509_limbo_is_judged_as_expected_or_for_a_stated_reason_otherwise() {
    let cases = cases::read(env!("X509_LIMBO"));
    assert!(cases.len() >= 208, "{} cases are not all", cases.len());
    let judged: Vec<_> = cases
        .iter()
        .map(|case| Judged {
            id: &case.id,
            about: &case.description,
            good: case.success,
            verdict: judge(case),
        })
        .collect();
    verdicts::hold("x509-limbo", &judged, DIFFERENCES);
}

/// Reads the roots and the lists as a process would at that time and has the connection's verifier judge what the peer
/// presents.
fn judge(case: &Case) -> Verdict {
    let now = case.at;
    let trust = Arc::new(trust(case)?);
    let presented = cases::presented(case)?;
    match &case.peer {
        Peer::Server(name) => {
            let name = ServerName::try_from(name.as_str())
                .map_err(|error| format!("server name {name:?}: {error}"))?;
            verify::judge(Judge::Channel(&name), &trust, &presented, now)
                .map_err(|refusal| with_causes(&refusal))?;
        }
        Peer::Client(emails) => {
            let chain = verify::judge(Judge::Acceptor, &trust, &presented, now)
                .map_err(|refusal| with_causes(&refusal))?;
            let found = chain.identity().email_names();
            if let Some(missing) = emails.iter().find(|email| !found.contains(email)) {
                return Err(format!("{missing:?} is not among {found:?}"));
            }
        }
    }
    Ok(())
}

fn trust(case: &Case) -> Result<Trust, String> {
    let trust = Trust::from_pem(case.roots.as_bytes(), case.at)
        .map_err(|error| format!("roots: {}", with_causes(&error)))?;
    if case.lists.is_empty() {
        return Ok(trust);
    }
    let options = RevocationOptions {
        check: Some(RevocationCheck::Leaf),
        ..RevocationOptions::default()
    };
    trust
        .with_revocation(case.lists.as_bytes(), options, &[], case.at)
        .map_err(|error| format!("lists: {}", with_causes(&error)))
}
