//! Another process: this test program again, running one test that does something only when it is started like this.

use std::ffi::{OsStr, OsString};
use std::io::{BufRead, BufReader, Write};
use std::process::{ChildStdout, Command, Stdio};

const ARGUMENT: &str = "VIDIMUS_TEST_CHILD";
const READY: &str = "child ready: ";

/// Killed when dropped.
pub(crate) struct Child {
    process: std::process::Child,
    output: BufReader<ChildStdout>,
}

impl Child {
    /// Starts the named test of this program with an argument.
    pub(crate) fn start(test: &str, argument: impl AsRef<OsStr>) -> Self {
        let mut command = Command::new(Self::program());
        command.args(Self::arguments(test)).env(ARGUMENT, argument);
        Self::spawn(&mut command)
    }

    /// Runs a command that starts this program in some way of its own.
    pub(crate) fn spawn(command: &mut Command) -> Self {
        let spawned = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn();
        let mut process = spawned.expect("a process");
        let output = BufReader::new(process.stdout.take().expect("a pipe"));
        Self { process, output }
    }

    pub(crate) fn program() -> OsString {
        std::env::current_exe().expect("this program").into()
    }

    pub(crate) fn arguments(test: &str) -> [&str; 3] {
        [test, "--exact", "--nocapture"]
    }

    /// In the child: the argument. `None` in an ordinary run of the tests.
    pub(crate) fn argument() -> Option<OsString> {
        std::env::var_os(ARGUMENT)
    }

    /// In the child: says that it is ready, with one word.
    pub(crate) fn ready(word: &str) {
        println!("{READY}{word}");
        std::io::stdout().flush().expect("a pipe");
    }

    /// Waits for the child's word.
    pub(crate) fn wait_ready(&mut self) -> String {
        let mut before = String::new();
        loop {
            let mut line = String::new();
            let read = self.output.read_line(&mut line).expect("its output");
            assert!(read > 0, "the child ended without being ready: {before}");
            // The test harness writes its own words first, without ending the line.
            if let Some((_, word)) = line.split_once(READY) {
                return word.trim().to_owned();
            }
            before.push_str(&line);
        }
    }

    pub(crate) fn id(&self) -> u32 {
        self.process.id()
    }

    /// Kills it without giving it a chance to clean up.
    pub(crate) fn kill(&mut self) {
        self.process.kill().expect("it lives");
        self.process.wait().expect("it ends");
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        let _ended_already = self.process.kill();
        let _reaped_already = self.process.wait();
    }
}
