//! The `openssl` program: an oracle that nobody here wrote.

use std::{ffi::OsStr, process::Command, time::Duration};

use crate::command::{Output, run};

/// Key generation for RSA 4096 takes a while on a busy machine.
const DEADLINE: Duration = Duration::from_secs(120);

/// Runs `openssl` with `args`; ask the output for [`success`](Output::success).
///
/// # Panics
///
/// When the program is missing or doesn't end within two minutes.
#[track_caller]
pub fn openssl<A: AsRef<OsStr>>(args: impl IntoIterator<Item = A>) -> Output {
    openssl_with_input(args, b"")
}

/// [`openssl`] with `input` on its standard input.
///
/// # Panics
///
/// When the program is missing or doesn't end within two minutes.
#[track_caller]
pub fn openssl_with_input<A: AsRef<OsStr>>(
    args: impl IntoIterator<Item = A>,
    input: &[u8],
) -> Output {
    let mut command = Command::new("openssl");
    command.args(args);
    run(command, input, DEADLINE)
}
