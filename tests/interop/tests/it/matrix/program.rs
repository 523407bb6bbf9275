//! Foreign programs that are run for one case each.

use std::future::ready;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use vidimus_testkit::{Process, command, free_port, wait_until_async};

use super::Attempt;
use crate::support::DEADLINE;

/// How often a program may find that the port it was given has been taken meanwhile.
const PORTS: usize = 5;

/// A program from a Debian package.
///
/// # Panics
///
/// When it isn't installed, with the package's name.
pub(crate) fn program(name: &str, package: &str) -> Command {
    let path = std::env::var("PATH").unwrap_or_default() + ":/usr/sbin";
    let found = path
        .split(':')
        .map(|dir| Path::new(dir).join(name))
        .find(|path| path.is_file());
    let Some(found) = found else {
        panic!(
            "{name} is not installed; `scripts/setup.sh test` installs Debian's package {package}"
        );
    };
    Command::new(found)
}

/// Runs a program to its end beside the test's own tasks.
pub(crate) async fn finish(command: Command) -> command::Output {
    finish_within(command, DEADLINE).await
}

/// [`finish`] for a program that takes its time.
pub(crate) async fn finish_within(command: Command, deadline: Duration) -> command::Output {
    let running = tokio::task::spawn_blocking(move || command::run(command, b"", deadline));
    running.await.unwrap()
}

/// Ends a program and gives everything that it said.
pub(crate) async fn last_words(mut process: Process) -> String {
    process.kill();
    process.wait_exit_async(DEADLINE).await;
    process.to_string()
}

/// Starts a program that cannot choose a port by itself, and waits until it listens on the one it was given.
pub(crate) async fn listening(
    attempt: &Attempt,
    mut command: impl AsyncFnMut(u16) -> Process,
) -> (u16, Process) {
    let mut said = String::new();
    for _ in 0..PORTS {
        let port = free_port();
        let mut process = command(port).await;
        let listens = wait_until_async(DEADLINE, || {
            let ended = process.poll_exit();
            // not by connecting: that would be the one connection that some of them serve
            ready(match (ended, listens(process.id(), port)) {
                (Some(status), _) => Ok(Err(format!("{status}\n{process}"))),
                (None, true) => Ok(Ok(())),
                (None, false) => Err(format!("it runs and says\n{process}")),
            })
        });
        match listens.await {
            Ok(()) => return (port, process),
            Err(ended) => said = ended,
        }
    }
    panic!("{}: the program does not listen: {said}", attempt.case);
}

/// Whether the process listens on this port of 127.0.0.1. Whoever else seems to is a child of this very test that has not
/// yet let go of a socket that [`free_port`] had open.
fn listens(process: u32, port: u16) -> bool {
    const LISTEN: &str = "0A";
    let address = format!("0100007F:{port:04X}");
    let table = std::fs::read_to_string("/proc/net/tcp").unwrap();
    table.lines().any(|line| {
        let fields: Vec<_> = line.split_whitespace().collect();
        matches!(fields[..], [_, local, _, state, _, _, _, _, _, inode, ..]
            if local == address && state == LISTEN && holds(process, inode))
    })
}

fn holds(process: u32, inode: &str) -> bool {
    let socket = format!("socket:[{inode}]");
    let files = std::fs::read_dir(format!("/proc/{process}/fd"));
    files.into_iter().flatten().flatten().any(|file| {
        std::fs::read_link(file.path()).is_ok_and(|target| target.as_os_str() == &*socket)
    })
}
