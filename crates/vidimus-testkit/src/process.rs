//! A program that runs beside a test: its lines as they come, its end, signals, and never a
//! process left behind.

use std::{
    fmt,
    io::{BufRead, BufReader, Read},
    os::{
        fd::OwnedFd,
        unix::{net::UnixStream, process::CommandExt},
    },
    process::{Child, Command, ExitStatus, Stdio},
    sync::{Arc, Mutex, PoisonError},
    thread::{self, JoinHandle},
    time::Duration,
};

use rustix::process::{Pid, Signal, kill_process, kill_process_group};

use crate::{
    command::{describe, fail},
    wait::{try_wait_until, try_wait_until_async},
};

/// Lines kept of a program; more than these are dropped from the front.
const MAX_LINES: usize = 100_000;
/// The longest line kept.
const MAX_LINE: u64 = 1024 * 1024;
/// How long an ended program's last lines are waited for; a child that outlives it may keep its streams open.
const LAST_LINES: Duration = Duration::from_secs(2);

/// Where a line came from.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Stream {
    /// Standard error.
    Stderr,
    /// Standard output.
    Stdout,
}

/// One line of a program's output.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Line {
    /// Where it came from.
    pub stream: Stream,
    /// The line without its end.
    pub text: String,
}

/// A running program with all its children (it leads a process group of its own).
pub struct Process {
    command: String,
    child: Child,
    lines: Arc<Mutex<Vec<Line>>>,
    followers: Vec<JoinHandle<()>>,
    status: Option<ExitStatus>,
}

impl fmt::Debug for Process {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Process")
            .field("command", &self.command)
            .field("id", &self.child.id())
            .finish_non_exhaustive()
    }
}

impl Process {
    /// Starts `command`, which carries the program, its arguments, folder and environment.
    ///
    /// # Panics
    ///
    /// When it cannot be started.
    #[track_caller]
    #[must_use]
    pub fn spawn(mut command: Command) -> Self {
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        Self::start(command)
    }

    /// Starts `command` with one end of the stream as its standard input and output; the other end is given back. Lines
    /// are those of standard error alone.
    ///
    /// # Panics
    ///
    /// When it cannot be started.
    #[track_caller]
    #[must_use]
    pub fn spawn_as_pipe(mut command: Command) -> (Self, UnixStream) {
        let (ours, theirs) = UnixStream::pair().expect("a pair of sockets");
        let output = theirs.try_clone().expect("a second handle");
        command
            .stdin(OwnedFd::from(theirs))
            .stdout(OwnedFd::from(output));
        (Self::start(command), ours)
    }

    #[track_caller]
    fn start(mut command: Command) -> Self {
        let text = describe(&command);
        let mut child = command
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn()
            .unwrap_or_else(|error| fail(&format!("cannot start `{text}`: {error}")));
        let lines = Arc::new(Mutex::new(Vec::new()));
        let stdout = follow(child.stdout.take(), Stream::Stdout, &lines);
        let stderr = follow(child.stderr.take(), Stream::Stderr, &lines);
        Self {
            command: text,
            child,
            lines,
            followers: stdout.into_iter().chain(stderr).collect(),
            status: None,
        }
    }

    /// The program's process id.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Every line so far.
    #[must_use]
    pub fn lines(&self) -> Vec<Line> {
        self.lines
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Every line of standard output so far.
    #[must_use]
    pub fn stdout(&self) -> Vec<String> {
        self.lines()
            .into_iter()
            .filter(|line| line.stream == Stream::Stdout)
            .map(|line| line.text)
            .collect()
    }

    /// The first line of either stream that contains `pattern`, waiting for it if need be.
    ///
    /// # Panics
    ///
    /// When it has not come at the deadline, with all that was said until then.
    #[track_caller]
    pub fn wait_for_line(&mut self, pattern: &str, deadline: Duration) -> String {
        match try_wait_until(deadline, || self.find_line(pattern)) {
            Ok(line) => line,
            Err(timed_out) => fail(&timed_out.to_string()),
        }
    }

    /// [`wait_for_line`](Self::wait_for_line) for async code.
    ///
    /// # Panics
    ///
    /// When it has not come at the deadline.
    pub async fn wait_for_line_async(&mut self, pattern: &str, deadline: Duration) -> String {
        let waited = try_wait_until_async(deadline, || {
            let found = self.find_line(pattern);
            async move { found }
        });
        match waited.await {
            Ok(line) => line,
            Err(timed_out) => fail(&timed_out.to_string()),
        }
    }

    /// How the program ended, waiting for that and for its last lines.
    ///
    /// # Panics
    ///
    /// When it still runs at the deadline, with all that it said.
    #[track_caller]
    pub fn wait_exit(&mut self, deadline: Duration) -> ExitStatus {
        match try_wait_until(deadline, || {
            self.poll_exit()
                .ok_or_else(|| format!("`{}` runs; it said:\n{self}", self.command))
        }) {
            Ok(status) => {
                let _outlived = try_wait_until(LAST_LINES, || self.said_all());
                status
            }
            Err(timed_out) => fail(&timed_out.to_string()),
        }
    }

    /// [`wait_exit`](Self::wait_exit) for async code.
    ///
    /// # Panics
    ///
    /// When it still runs at the deadline.
    pub async fn wait_exit_async(&mut self, deadline: Duration) -> ExitStatus {
        let waited = try_wait_until_async(deadline, || {
            let ended = self
                .poll_exit()
                .ok_or_else(|| format!("`{}` runs; it said:\n{self}", self.command));
            async move { ended }
        });
        match waited.await {
            Ok(status) => {
                let said = try_wait_until_async(LAST_LINES, || std::future::ready(self.said_all()));
                let _outlived = said.await;
                status
            }
            Err(timed_out) => fail(&timed_out.to_string()),
        }
    }

    /// How it ended, if it has.
    pub fn poll_exit(&mut self) -> Option<ExitStatus> {
        if self.status.is_none() {
            self.status = self.child.try_wait().ok().flatten();
        }
        self.status
    }

    /// Asks it to end (SIGTERM).
    pub fn terminate(&mut self) {
        self.signal(Signal::TERM);
    }

    /// Interrupts it as Ctrl-C does (SIGINT).
    pub fn interrupt(&mut self) {
        self.signal(Signal::INT);
    }

    /// Ends it and its children at once (SIGKILL) and waits until it is gone.
    pub fn kill(&mut self) {
        if self.poll_exit().is_none() {
            if let Some(pid) = self.pid() {
                let _gone = kill_process_group(pid, Signal::KILL);
            }
            self.status = self.child.wait().ok();
        }
    }

    fn said_all(&self) -> Result<(), &'static str> {
        if self.followers.iter().all(JoinHandle::is_finished) {
            Ok(())
        } else {
            Err("a stream is open")
        }
    }

    fn signal(&mut self, signal: Signal) {
        if self.poll_exit().is_none()
            && let Some(pid) = self.pid()
        {
            let _gone = kill_process(pid, signal);
        }
    }

    fn pid(&self) -> Option<Pid> {
        i32::try_from(self.child.id()).ok().and_then(Pid::from_raw)
    }

    fn find_line(&mut self, pattern: &str) -> Result<String, String> {
        // Asked before the lines are read, so that a program that says its line and ends is heard.
        let ended = self.poll_exit();
        if let Some(line) = self
            .lines()
            .into_iter()
            .find(|line| line.text.contains(pattern))
        {
            return Ok(line.text);
        }
        let state = ended.map_or_else(|| "runs".to_owned(), |status| format!("ended, {status}"));
        Err(format!(
            "`{}` {state} and has not said {pattern:?}; it said:\n{self}",
            self.command
        ))
    }
}

impl fmt::Display for Process {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for line in self.lines() {
            writeln!(f, "  {:?}: {}", line.stream, line.text)?;
        }
        Ok(())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
        // Children that outlived their leader are still in its group.
        if let Some(pid) = self.pid() {
            let _gone = kill_process_group(pid, Signal::KILL);
        }
    }
}

fn follow(
    stream: Option<impl Read + Send + 'static>,
    from: Stream,
    lines: &Arc<Mutex<Vec<Line>>>,
) -> Option<JoinHandle<()>> {
    let stream = stream?;
    let lines = Arc::clone(lines);
    // Ends with the pipe, which the kill on drop closes.
    Some(thread::spawn(move || {
        let mut reader = BufReader::new(stream);
        let mut bytes = Vec::new();
        while let Ok(1..) = reader.by_ref().take(MAX_LINE).read_until(b'\n', &mut bytes) {
            let text = String::from_utf8_lossy(&bytes)
                .trim_end_matches(['\r', '\n'])
                .to_owned();
            bytes.clear();
            let mut lines = lines.lock().unwrap_or_else(PoisonError::into_inner);
            if lines.len() >= MAX_LINES {
                lines.drain(..MAX_LINES / 2);
            }
            lines.push(Line { stream: from, text });
        }
    }))
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    const DEADLINE: Duration = Duration::from_secs(30);

    fn shell(script: &str) -> Process {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        Process::spawn(command)
    }

    #[test]
    fn hears_both_streams_and_the_exit_status() {
        let mut process = shell("echo one; echo two >&2; exit 3");
        assert_eq!(process.wait_for_line("one", DEADLINE), "one");
        assert_eq!(process.wait_for_line("two", DEADLINE), "two");
        assert_eq!(process.wait_exit(DEADLINE).code(), Some(3));
        assert_eq!(process.lines().len(), 2);
    }

    #[test]
    fn a_pipe_carries_both_ways_and_ends_with_the_program() {
        let mut command = Command::new("sh");
        command.args(["-c", "read line; echo \"got $line\"; echo beside >&2"]);
        let (mut process, mut pipe) = Process::spawn_as_pipe(command);
        pipe.write_all(b"one\n").expect("a write");
        let mut answer = String::new();
        pipe.read_to_string(&mut answer).expect("a read");
        assert_eq!(answer, "got one\n");
        process.wait_for_line("beside", DEADLINE);
    }

    #[test]
    fn a_dropped_process_takes_its_children_with_it() {
        let mut process = shell("sleep 1000 & echo child $!; wait");
        let line = process.wait_for_line("child", DEADLINE);
        let child = line.trim_start_matches("child ").to_owned();
        drop(process);
        crate::wait_until(DEADLINE, || {
            // Gone, or a zombie that waits for the reaper of orphans.
            let stat = std::fs::read_to_string(format!("/proc/{child}/stat")).unwrap_or_default();
            if stat.is_empty() || stat.contains(" Z ") {
                Ok(())
            } else {
                Err(stat)
            }
        });
    }

    #[test]
    fn sigterm_reaches_the_program() {
        let mut process =
            shell("trap 'echo bye; exit 0' TERM; echo ready; while :; do sleep 0.05; done");
        process.wait_for_line("ready", DEADLINE);
        process.terminate();
        assert!(process.wait_exit(DEADLINE).success());
        process.wait_for_line("bye", DEADLINE);
    }
}
