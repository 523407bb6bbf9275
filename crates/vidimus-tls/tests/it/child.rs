//! Another process: this test program again, running one test that does something only when it is started like this.

use std::ffi::{OsStr, OsString};
use std::io::Write;
use std::process::Command;

use vidimus_testkit::Process;

use crate::support::DEADLINE;

/// The variable that a child's argument is in.
pub(crate) const ARGUMENT: &str = "VIDIMUS_TEST_CHILD";
const READY: &str = "child ready: ";

/// Starts the named test of this program with an argument.
pub(crate) fn start(test: &str, argument: impl AsRef<OsStr>) -> Process {
    let mut command = Command::new(program());
    command.args(arguments(test)).env(ARGUMENT, argument);
    Process::spawn(command)
}

pub(crate) fn program() -> OsString {
    std::env::current_exe().expect("this program").into()
}

pub(crate) fn arguments(test: &str) -> [&str; 3] {
    [test, "--exact", "--nocapture"]
}

/// The same in a network of its own, with which the child may do as it likes; nothing if there is none to be had, or
/// no `ip` to set it up.
pub(crate) fn start_in_own_network(test: &str, argument: impl AsRef<OsStr>) -> Option<Process> {
    let unshare = || {
        let mut command = Command::new("unshare");
        command.args(["--map-root-user", "--net"]);
        command
    };
    let possible = unshare().args(["ip", "link", "set", "lo", "up"]).status();
    if !possible.is_ok_and(|status| status.success()) {
        untested("no network namespace, or no `ip` to set one up");
        return None;
    }
    let mut command = unshare();
    command.arg(program()).args(arguments(test));
    command.env(ARGUMENT, argument);
    Some(Process::spawn(command))
}

/// Says that a test can't be run here. Where `VIDIMUS_TEST_ALL` is set it has to be.
pub(crate) fn untested(why: &str) {
    assert!(std::env::var_os("VIDIMUS_TEST_ALL").is_none(), "{why}");
    eprintln!("not tested: {why}");
}

/// Waits for a word of the child that begins like this, and gives the rest of its line.
pub(crate) async fn word(process: &mut Process, word: &str) -> String {
    let pattern = format!("{READY}{word}");
    let line = process.wait_for_line_async(&pattern, DEADLINE).await;
    // The test harness writes its own words first, without ending the line.
    let (_, rest) = line.split_once(&pattern).expect("what was waited for");
    rest.trim().to_owned()
}

/// In the child: the argument. `None` in an ordinary run of the tests.
pub(crate) fn argument() -> Option<OsString> {
    std::env::var_os(ARGUMENT)
}

/// In the child: says a word to the test that started it.
pub(crate) fn say(word: &str) {
    println!("{READY}{word}");
    std::io::stdout().flush().expect("a pipe");
}
