//! The how-to pages do what they say: their shell blocks are run, one page after the other, in one folder.

use std::{env, ffi::OsString, path::PathBuf, process::Command, time::Duration};

use vidimus_testkit::{command, free_port};

use crate::{build, markdown, repository};

/// The pages that follow each other, in this order.
const PAGES: [&str; 8] = [
    "set-up-a-ca",
    "issue-a-leaf",
    "sign-a-subordinate",
    "check-tls-files",
    "run-a-provider",
    "restrict-callers",
    "rotate-the-ca",
    "verify-the-audit-log",
];

/// What a reader has at hand: a shell that stops at the first error. `! command` alone would let a success pass, so it
/// is spelled as a function. What was left running ends with the script.
const PRELUDE: &str = "\
set -euo pipefail
must_fail() { if \"$@\"; then echo \"should have failed: $*\" >&2; exit 1; fi; }
trap 'kill $(jobs -p) 2> /dev/null' EXIT
set -x
";

#[test]
fn the_how_to_pages_can_be_followed() {
    let folder = tempfile::tempdir().expect("a folder to work in");
    let mut script = String::from(PRELUDE);
    for page in PAGES {
        let text = repository::read(&format!("docs/src/how-to/{page}.md"));
        let blocks = markdown::blocks(&text, "sh");
        assert!(!blocks.is_empty(), "{page} has nothing to run");
        for line in blocks.iter().flat_map(|block| block.lines()) {
            script.push_str(
                &line
                    .strip_prefix("! ")
                    .map_or_else(|| line.to_owned(), |rest| format!("must_fail {rest}")),
            );
            script.push('\n');
        }
    }
    // The book names the usual ports; here they may be taken.
    for port in ["9550", "9443", "9444", "8080"] {
        script = script.replace(port, &free_port().to_string());
    }
    // `timeout` reaches the whole group of processes.
    let mut bash = Command::new("timeout");
    bash.args(["120", "bash", "-c"])
        .arg(script)
        .current_dir(&folder)
        .env("PATH", path());
    bash.env_remove("VIDIMUS_LOG")
        .env_remove("CREDENTIALS_DIRECTORY");
    command::run(bash, b"", Duration::from_secs(180)).success();
}

/// The program first, then what this machine has.
fn path() -> OsString {
    let vidimus = PathBuf::from(build::vidimus().get_program());
    let folder = vidimus
        .parent()
        .expect("the program lies in a folder")
        .to_owned();
    let others = env::var_os("PATH").unwrap_or_default();
    env::join_paths([folder].into_iter().chain(env::split_paths(&others)))
        .expect("folders without colons")
}

/// What a page shows of Rust stands in an example that the tests of its crate run.
#[test]
fn the_rust_of_the_pages_is_run_elsewhere() {
    let page = repository::read("docs/src/how-to/mutual-tls-for-tonic.md");
    let blocks = markdown::blocks(&page, "rust");
    let examples = ["tonic_server", "tonic_client"]
        .map(|name| repository::read(&format!("crates/vidimus-tls/examples/{name}.rs")));
    assert_eq!(blocks.len(), examples.len());
    for (block, example) in blocks.iter().zip(examples) {
        assert!(example.contains(block.as_str()), "no longer so:\n{block}");
    }
}
