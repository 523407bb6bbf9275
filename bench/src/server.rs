//! A server that runs as a child while it is measured.

use std::{
    fs::{self, File},
    net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, bail};
use rustix::process::{Pid, Signal, kill_process};

/// How long a server may take to listen.
const START: Duration = Duration::from_secs(30);
/// How long it may take to end when asked to.
const STOP: Duration = Duration::from_secs(10);

/// A running server. Ends with this value.
#[derive(Debug)]
pub(crate) struct Server {
    child: Child,
    address: SocketAddr,
    log: PathBuf,
}

impl Server {
    /// Starts it with its output in a file, and waits until it listens.
    pub(crate) fn start(
        mut command: Command,
        address: SocketAddr,
        log: &Path,
    ) -> anyhow::Result<Self> {
        let file = File::create(log)?;
        let child = command
            .stdin(Stdio::null())
            .stdout(file.try_clone()?)
            .stderr(file)
            .spawn()
            .with_context(|| format!("failed to start {}", command.get_program().display()))?;
        let mut server = Self {
            child,
            address,
            log: log.to_owned(),
        };
        let deadline = Instant::now() + START;
        while TcpStream::connect_timeout(&address, Duration::from_secs(1)).is_err() {
            if let Some(status) = server.child.try_wait()? {
                bail!("it ended at once with {status}: {}", server.last_words());
            }
            if Instant::now() > deadline {
                bail!("it doesn't listen after {START:?}: {}", server.last_words());
            }
            thread::sleep(Duration::from_millis(20));
        }
        Ok(server)
    }

    /// Its process.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Where it listens.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    fn last_words(&self) -> String {
        let text = fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<&str> = text.lines().rev().take(3).collect();
        lines.into_iter().rev().collect::<Vec<_>>().join(" | ")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(pid) = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw) {
            let _ended_already = kill_process(pid, Signal::TERM);
        }
        let deadline = Instant::now() + STOP;
        while matches!(self.child.try_wait(), Ok(None)) {
            if Instant::now() > deadline {
                let _ended_meanwhile = self.child.kill();
                let _reaped = self.child.wait();
                return;
            }
            thread::sleep(Duration::from_millis(10));
        }
    }
}

/// A loopback address that was free a moment ago.
pub(crate) fn free_address() -> anyhow::Result<SocketAddr> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("no free port")?;
    Ok(listener.local_addr()?)
}
