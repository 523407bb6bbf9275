//! Programs that run to their end, under a deadline and with a bound on what they say.

use std::{
    ffi::OsStr,
    fmt,
    io::{Read, Write},
    process::{Child, Command, ExitStatus, Stdio},
    thread::{self, JoinHandle},
    time::Duration,
};

use crate::wait::try_wait_until;

/// What one stream of a program may say.
const MAX_OUTPUT: u64 = 16 * 1024 * 1024;

/// What a program left behind.
#[derive(Clone, Debug)]
pub struct Output {
    /// The program with its arguments, for messages.
    pub command: String,
    /// How it ended.
    pub status: ExitStatus,
    /// Its standard output.
    pub stdout: Vec<u8>,
    /// Its standard error.
    pub stderr: Vec<u8>,
}

impl Output {
    /// Standard output as text.
    #[must_use]
    pub fn stdout_text(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }

    /// Standard error as text.
    #[must_use]
    pub fn stderr_text(&self) -> String {
        String::from_utf8_lossy(&self.stderr).into_owned()
    }

    /// Itself, if the program ended well.
    ///
    /// # Panics
    ///
    /// When it did not, with both outputs.
    #[track_caller]
    #[expect(
        clippy::must_use_candidate,
        clippy::return_self_not_must_use,
        reason = "called for its check"
    )]
    pub fn success(self) -> Self {
        assert!(self.status.success(), "{self}");
        self
    }
}

impl fmt::Display for Output {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "`{}` ended with {}\n--- stdout\n{}\n--- stderr\n{}",
            self.command,
            self.status,
            self.stdout_text(),
            self.stderr_text()
        )
    }
}

/// Runs `command` with `input` on its standard input.
///
/// # Panics
///
/// When the program isn't there, or has not ended at the deadline (it is killed then).
#[track_caller]
pub fn run(mut command: Command, input: &[u8], deadline: Duration) -> Output {
    let text = describe(&command);
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap_or_else(|error| fail(&format!("cannot start `{text}`: {error}")));
    let stdout = drain(child.stdout.take());
    let stderr = drain(child.stderr.take());
    let feeding = feed(&mut child, input.to_vec());
    let ended = try_wait_until(deadline, || match child.try_wait() {
        Ok(Some(status)) => Ok(status),
        Ok(None) => Err("it runs".to_owned()),
        Err(error) => Err(error.to_string()),
    });
    if ended.is_err() {
        let _gone = child.kill();
        let _reaped = child.wait();
    }
    let _fed = feeding.map(JoinHandle::join);
    let (stdout, stderr) = (collect(stdout), collect(stderr));
    match ended {
        Ok(status) => Output {
            command: text,
            status,
            stdout,
            stderr,
        },
        Err(_) => fail(&format!(
            "`{text}` has not ended after {deadline:?}; it said:\n{}\n{}",
            String::from_utf8_lossy(&stdout),
            String::from_utf8_lossy(&stderr)
        )),
    }
}

/// The program with its arguments, as a person would type them.
pub(crate) fn describe(command: &Command) -> String {
    std::iter::once(command.get_program())
        .chain(command.get_args())
        .map(OsStr::to_string_lossy)
        .collect::<Vec<_>>()
        .join(" ")
}

#[track_caller]
#[expect(clippy::panic, reason = "the test bench lacks what the test needs")]
pub(crate) fn fail(message: &str) -> ! {
    panic!("{message}")
}

fn drain(stream: Option<impl Read + Send + 'static>) -> Option<JoinHandle<Vec<u8>>> {
    stream.map(|stream| {
        thread::spawn(move || {
            let mut bytes = Vec::new();
            let _until_closed = stream.take(MAX_OUTPUT).read_to_end(&mut bytes);
            bytes
        })
    })
}

fn feed(child: &mut Child, input: Vec<u8>) -> Option<JoinHandle<()>> {
    child.stdin.take().map(|mut stdin| {
        thread::spawn(move || {
            // A program may end without reading everything.
            let _written = stdin.write_all(&input);
        })
    })
}

fn collect(stream: Option<JoinHandle<Vec<u8>>>) -> Vec<u8> {
    stream
        .and_then(|thread| thread.join().ok())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gives_output_and_status_of_a_program_that_reads_its_input() {
        let output = run(Command::new("cat"), b"hello", Duration::from_secs(30)).success();
        assert_eq!(output.stdout, b"hello");
    }

    #[test]
    #[should_panic(expected = "has not ended after")]
    fn kills_a_program_that_outstays_its_deadline() {
        let mut command = Command::new("sleep");
        command.arg("1000");
        run(command, b"", Duration::from_millis(50));
    }
}
