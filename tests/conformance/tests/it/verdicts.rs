//! Verdicts beside those of a suite that others wrote: each that differs stands in a table with its reason, and nothing
//! else does.

use std::{collections::BTreeMap, error::Error};

/// What came of one case: the reason of a refusal is for the test's output.
pub(crate) type Verdict = Result<(), String>;

/// One case with what it should come to and what it did.
#[derive(Debug)]
pub(crate) struct Judged<'a> {
    /// Its name in the suite.
    pub(crate) id: &'a str,
    /// What it shows, where the suite says so.
    pub(crate) about: &'a str,
    /// Whether the suite has it accepted.
    pub(crate) good: bool,
    /// Whether it was.
    pub(crate) verdict: Verdict,
}

/// One case that is judged otherwise.
#[derive(Debug)]
pub(crate) struct Difference {
    id: &'static str,
    side: Side,
    reason: &'static str,
}

/// Which way a verdict differs.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Side {
    /// It should be accepted and is refused.
    Stricter,
    /// It should be refused and is accepted.
    Looser,
}

/// A row of a table of differences.
pub(crate) const fn row(id: &'static str, side: Side, reason: &'static str) -> Difference {
    Difference { id, side, reason }
}

/// Holds the verdicts against the suite's and the table, and prints each.
#[track_caller]
#[expect(
    clippy::print_stdout,
    reason = "the verdicts are what one reads when one differs"
)]
pub(crate) fn hold(suite: &str, judged: &[Judged<'_>], rows: &[Difference]) {
    for case in judged {
        println!("{}: {:?}", case.id, case.verdict);
    }
    let on = |side| {
        judged
            .iter()
            .filter(|case| case.side() == Some(side))
            .count()
    };
    let (stricter, looser) = (on(Side::Stricter), on(Side::Looser));
    let all = judged.len();
    let agree = all - stricter - looser;
    println!("{suite}: {agree} of {all} agree, {stricter} stricter, {looser} looser");
    let problems = problems(judged, rows);
    assert!(problems.is_empty(), "{suite}:\n{}", problems.join("\n"));
}

/// An error with its causes on one line.
pub(crate) fn with_causes(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}

impl Judged<'_> {
    fn side(&self) -> Option<Side> {
        match (self.good, &self.verdict) {
            (true, Err(_)) => Some(Side::Stricter),
            (false, Ok(())) => Some(Side::Looser),
            (true, Ok(())) | (false, Err(_)) => None,
        }
    }
}

/// Cases that differ without a row, rows without a case that differs that way, and rows that stand twice.
fn problems(judged: &[Judged<'_>], rows: &[Difference]) -> Vec<String> {
    let mut problems = Vec::new();
    let mut open = BTreeMap::new();
    for row in rows {
        if open.insert(row.id, row).is_some() {
            problems.push(format!("{}: stands in the table twice", row.id));
        }
    }
    for case in judged {
        let Some(side) = case.side() else { continue };
        match open.remove(case.id) {
            Some(row) if row.side == side => {}
            Some(row) => problems.push(format!(
                "{}: {side:?}, the table says {:?}",
                case.id, row.side
            )),
            None => problems.push(format!(
                "{}: {side:?} and not in the table: {:?}\n    {}",
                case.id, case.verdict, case.about
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

#[test]
fn a_difference_without_a_row_and_a_row_without_a_difference_are_both_found() {
    use Side::{Looser, Stricter};
    let case = |id, good, accepted: bool| Judged {
        id,
        about: "",
        good,
        verdict: accepted.then_some(()).ok_or_else(String::new),
    };
    let row = |id, side| row(id, side, "");

    let same = [case("good", true, true), case("bad", false, false)];
    assert_eq!(problems(&same, &[]).len(), 0);
    assert_eq!(problems(&same, &[row("good", Stricter)]).len(), 1);
    assert_eq!(problems(&same, &[row("unknown", Stricter)]).len(), 1);

    let other = [case("good", true, false), case("bad", false, true)];
    let (good, bad) = (|side| row("good", side), || row("bad", Looser));
    assert_eq!(problems(&other, &[]).len(), 2);
    assert_eq!(problems(&other, &[good(Stricter), bad()]).len(), 0);
    assert_eq!(problems(&other, &[good(Stricter)]).len(), 1);
    assert_eq!(problems(&other, &[good(Looser), bad()]).len(), 1);
    let twice = [good(Stricter), good(Stricter), bad()];
    assert_eq!(problems(&other, &twice).len(), 1);
}
