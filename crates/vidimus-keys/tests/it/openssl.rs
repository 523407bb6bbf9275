//! The openssl program as a second opinion.

use std::{
    ffi::OsStr,
    io::Write,
    process::{Command, Output, Stdio},
};

/// Runs openssl with some input; it must succeed.
pub(crate) fn run<A: AsRef<OsStr>>(args: &[A], input: &[u8]) -> Vec<u8> {
    let output = try_run(args, input);
    let shown: Vec<_> = args
        .iter()
        .map(|arg| arg.as_ref().to_string_lossy())
        .collect();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success(),
        "openssl {}: {stderr}",
        shown.join(" ")
    );
    output.stdout
}

/// Runs openssl with some input.
pub(crate) fn try_run<A: AsRef<OsStr>>(args: &[A], input: &[u8]) -> Output {
    let mut child = Command::new("openssl")
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("these tests need the openssl program");
    let mut stdin = child.stdin.take().unwrap();
    // What it doesn't want to read it needn't.
    let _written = stdin.write_all(input);
    drop(stdin);
    child.wait_with_output().unwrap()
}
