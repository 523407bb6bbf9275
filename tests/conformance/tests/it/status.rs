//! `docs/status.md` against the tests that are run.

use vidimus_conformance::status::{problems, rows};

use crate::{build, repository};

/// A row that says it works names tests that are run: asked of the test binaries themselves, so a test that was
/// renamed, deleted or ignored is found.
#[test]
fn every_row_that_works_names_tests_that_are_run() {
    let rows = rows(&repository::read("docs/status.md"))
        .unwrap_or_else(|problems| panic!("{}", problems.join("\n")));
    let binaries = build::test_binaries();
    let is_run = |test: &_| binaries.iter().any(|binary| binary.runs(test));
    let found = problems(&rows, &required(), is_run);
    assert!(found.is_empty(), "docs/status.md:\n{}", found.join("\n"));
}

/// The requirements: managers and providers, the CA, the two planes.
fn required() -> Vec<String> {
    [("V", 21), ("C", 24), ("K", 17)]
        .into_iter()
        .flat_map(|(letter, last)| (1..=last).map(move |number| format!("{letter}{number}")))
        .collect()
}
