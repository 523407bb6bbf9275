//! Go programs as oracles and as foreign peers.

use std::{
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use crate::command::{Output, run};

/// The `go` command in `dir`, with the toolchain that is installed and no other.
#[must_use]
pub fn command(dir: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(program());
    command
        .current_dir(dir)
        .args(args)
        .env("GOTOOLCHAIN", "local")
        .env("GOWORK", "off");
    command
}

/// Runs `go <args>` in `dir`: `&["test", "./..."]`, `&["run", ".", "argument"]`,
/// `&["build", "-o", "binary", "."]`.
///
/// # Panics
///
/// When Go is missing or has not ended at the deadline.
#[track_caller]
#[must_use]
pub fn go(dir: &Path, args: &[&str], deadline: Duration) -> Output {
    run(command(dir, args), b"", deadline)
}

fn program() -> PathBuf {
    let usual = Path::new("/usr/local/go/bin/go");
    if usual.exists() {
        usual.to_owned()
    } else {
        PathBuf::from("go")
    }
}
