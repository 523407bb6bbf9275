//! What cargo builds for the tests: asked once, since the answer is long.

use std::{
    path::{Path, PathBuf},
    process::Command,
    sync::OnceLock,
    time::Duration,
};

use serde_json::Value;
use vidimus_conformance::runner::Binary;
use vidimus_testkit::command;

use crate::repository;

/// Every test binary of the workspace, asked for its tests.
pub(crate) fn test_binaries() -> Vec<Binary> {
    let tests = artifacts().iter().filter(|artifact| artifact.is_test);
    let binaries: Vec<_> = tests
        .map(|test| {
            let root = test.source.strip_prefix(repository::root());
            let root = root.expect("only packages of this repository have tests here");
            Binary::new(
                root,
                &list(&test.executable, &[]),
                &list(&test.executable, &["--ignored"]),
            )
        })
        .collect();
    let count: usize = binaries.iter().map(Binary::count).sum();
    assert!(
        count > 50,
        "{count} tests are too few to be all: {binaries:?}"
    );
    binaries
}

/// The command line, as the tests of its package are given it.
pub(crate) fn vidimus() -> Command {
    let named =
        |artifact: &&Artifact| !artifact.is_test && artifact.executable.ends_with("vidimus");
    let built = artifacts()
        .iter()
        .find(named)
        .expect("the binary `vidimus` is built for its own tests");
    Command::new(&built.executable)
}

struct Artifact {
    executable: PathBuf,
    source: PathBuf,
    is_test: bool,
}

/// Builds nothing where `cargo test --workspace` runs this: the same packages, targets and features.
fn artifacts() -> &'static [Artifact] {
    static ARTIFACTS: OnceLock<Vec<Artifact>> = OnceLock::new();
    ARTIFACTS.get_or_init(|| {
        let messages = repository::cargo(&[
            "test",
            "--locked",
            "--workspace",
            "--no-run",
            "--message-format=json",
        ]);
        messages.lines().filter_map(artifact).collect()
    })
}

fn artifact(message: &str) -> Option<Artifact> {
    let message: Value = serde_json::from_str(message).ok()?;
    Some(Artifact {
        executable: Path::new(message["executable"].as_str()?).to_owned(),
        source: Path::new(message["target"]["src_path"].as_str()?).to_owned(),
        is_test: message["profile"]["test"].as_bool()?,
    })
}

fn list(executable: &Path, more: &[&str]) -> String {
    let mut test = Command::new(executable);
    test.args(["--list", "--format", "terse"]).args(more);
    command::run(test, b"", Duration::from_secs(60))
        .success()
        .stdout_text()
}
