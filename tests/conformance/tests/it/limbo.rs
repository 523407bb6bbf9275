//! Every case of x509-limbo (<https://x509-limbo.com>) through the verifiers that connections get: those with a server's
//! name through the channel's, the others through the acceptor's.

mod cases;
mod differences;

use std::{collections::BTreeMap, sync::Arc};

use rustls_pki_types::ServerName;
use vidimus_tls::{
    material::Trust,
    verify::{self, Judge},
};

use self::{
    cases::{Case, Peer},
    differences::{DIFFERENCES, Difference, Side},
};

/// What came of one case: the reason of a refusal is for the test's output.
type Verdict = Result<(), String>;

/// V5, K15.
#[test]
#[cfg_attr(
    not(x509_limbo),
    ignore = "x509-limbo.json was not there when this was built: set VIDIMUS_CONFORMANCE to its folder"
)]
fn every_case_of_x509_limbo_is_judged_as_expected_or_for_a_stated_reason_otherwise() {
    let cases = cases::read(env!("X509_LIMBO"));
    assert!(cases.len() >= 208, "{} cases are not all", cases.len());
    let judged: Vec<_> = cases.iter().map(|case| (case, judge(case))).collect();
    for (case, verdict) in &judged {
        println!("{}: {verdict:?}", case.id);
    }
    let agree = judged
        .iter()
        .filter(|(case, verdict)| verdict.is_ok() == case.success)
        .count();
    let on = |side| DIFFERENCES.iter().filter(|row| row.side == side).count();
    println!(
        "{agree} of {} agree; {} stricter and {} looser, as the table says",
        judged.len(),
        on(Side::Stricter),
        on(Side::Looser)
    );
    let problems = problems(&judged, DIFFERENCES);
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

#[test]
fn a_difference_without_a_row_and_a_row_without_a_difference_are_both_found_in_limbo() {
    let case = |id: &str, success| Case::named(id, success);
    let row = |id, side| Difference {
        id,
        side,
        reason: "test",
    };
    let refused = || Err("test".to_owned());
    let (good, bad) = (case("good", true), case("bad", false));
    let found = |judged: &[(&Case, Verdict)], rows: &[Difference]| problems(judged, rows).len();

    let same = [(&good, Ok(())), (&bad, refused())];
    assert_eq!(found(&same, &[]), 0);
    assert_eq!(found(&same, &[row("good", Side::Stricter)]), 1);
    assert_eq!(found(&same, &[row("unknown", Side::Stricter)]), 1);
    let other = [(&good, refused()), (&bad, Ok(()))];
    assert_eq!(found(&other, &[]), 2);
    let rows = [row("good", Side::Stricter), row("bad", Side::Looser)];
    assert_eq!(found(&other, &rows), 0);
    let twice = [
        row("good", Side::Stricter),
        row("good", Side::Stricter),
        row("bad", Side::Looser),
    ];
    assert_eq!(found(&other, &twice), 1);
    let wrong_side = [row("good", Side::Looser), row("bad", Side::Looser)];
    assert_eq!(found(&other, &wrong_side), 1);
}

/// Reads the roots as a process would at that time and has the connection's verifier judge what the peer presents.
fn judge(case: &Case) -> Verdict {
    let now = case.at;
    let trust = Trust::from_pem(case.roots.as_bytes(), now)
        .map_err(|error| format!("roots: {}", with_causes(&error)))?;
    let trust = Arc::new(trust);
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

/// Cases that differ without a row, rows without a case that differs that way, and rows that stand twice.
fn problems(judged: &[(&Case, Verdict)], rows: &[Difference]) -> Vec<String> {
    let mut problems = Vec::new();
    let mut open = BTreeMap::new();
    for row in rows {
        if open.insert(row.id, row).is_some() {
            problems.push(format!("{}: stands in the table twice", row.id));
        }
    }
    for (case, verdict) in judged {
        let side = match (case.success, verdict) {
            (true, Err(_)) => Side::Stricter,
            (false, Ok(())) => Side::Looser,
            (true, Ok(())) | (false, Err(_)) => continue,
        };
        match open.remove(case.id.as_str()) {
            Some(row) if row.side == side => {}
            Some(row) => problems.push(format!(
                "{}: {side:?}, the table says {:?}",
                case.id, row.side
            )),
            None => problems.push(format!(
                "{}: {side:?} and not in the table: {verdict:?}\n    {}",
                case.id, case.description
            )),
        }
    }
    let stale = open.values().map(|row| {
        format!(
            "{}: in the table ({}), but no longer differs",
            row.id, row.reason
        )
    });
    problems.extend(stale);
    problems
}

fn with_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}
