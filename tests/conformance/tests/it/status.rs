//! `docs/status.md` against the tests that are run.

use std::{path::Path, process::Command, time::Duration};

use serde_json::Value;
use vidimus_conformance::{
    runner::Binary,
    status::{problems, rows},
};
use vidimus_testkit::command;

use crate::repository;

/// A row that says it works names tests that are run: asked of the test binaries themselves, so a test that was
/// renamed, deleted or ignored is found.
#[test]
fn every_row_that_works_names_tests_that_are_run() {
    let rows = rows(&repository::read("docs/status.md"))
        .unwrap_or_else(|problems| panic!("{}", problems.join("\n")));
    let binaries = binaries();
    let found = problems(&rows, &required(), |test| {
        binaries.iter().any(|binary| binary.runs(test))
    });
    assert!(found.is_empty(), "docs/status.md:\n{}", found.join("\n"));
}

/// The requirements: managers and providers, the CA, the two planes.
fn required() -> Vec<String> {
    [("V", 21), ("C", 24), ("K", 17)]
        .into_iter()
        .flat_map(|(letter, last)| (1..=last).map(move |number| format!("{letter}{number}")))
        .collect()
}

/// Every test binary of the workspace, asked for its tests. Builds nothing where `cargo test --workspace` runs this.
fn binaries() -> Vec<Binary> {
    let arguments = [
        "test",
        "--locked",
        "--workspace",
        "--lib",
        "--bins",
        "--tests",
        "--no-run",
        "--message-format=json",
    ];
    let binaries: Vec<_> = repository::cargo(&arguments)
        .lines()
        .filter_map(binary)
        .collect();
    assert!(
        binaries.iter().map(Binary::count).sum::<usize>() > 50,
        "too few tests to be all: {binaries:?}"
    );
    binaries
}

/// The tests of the binary that one of cargo's messages is about.
fn binary(message: &str) -> Option<Binary> {
    let message: Value = serde_json::from_str(message).ok()?;
    let executable = message["executable"].as_str()?;
    let source = Path::new(message["target"]["src_path"].as_str()?);
    let root = source
        .strip_prefix(repository::root())
        .expect("only packages of this repository have tests here");
    Some(Binary::new(
        root,
        &list(executable, &[]),
        &list(executable, &["--ignored"]),
    ))
}

fn list(executable: &str, more: &[&str]) -> String {
    let mut test = Command::new(executable);
    test.args(["--list", "--format", "terse"]).args(more);
    command::run(test, b"", Duration::from_secs(60))
        .success()
        .stdout_text()
}
