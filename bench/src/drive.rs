//! The client program: prepares material, and calls a server while its CPU time is read.

use std::{
    io::{BufRead, BufReader, Write},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::mpsc::{self, Receiver, RecvTimeoutError},
    thread,
    time::Duration,
};

use anyhow::{Context, bail};
use serde::Deserialize;

use crate::{Effort, build::Programs, cpu::CpuSample, server, server::Server};

/// How many requests of each kind are made ahead; a run that would need more ends early.
const REQUESTS: u32 = 6000;
/// How long the client may take to prepare itself.
const READY: Duration = Duration::from_secs(60);
/// How long after the end of a run its last answers may take.
const GRACE: Duration = Duration::from_secs(20);

/// The name in the clients' certificates.
pub(crate) const CLIENT_NAME: &str = "client.bench.example";

/// What one run showed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Run {
    /// CPU time of the server for each call, in microseconds.
    pub(crate) cpu: f64,
    /// Calls a second.
    pub(crate) rate: f64,
    /// Half of all calls took less, in microseconds.
    pub(crate) p50: f64,
    /// All but one in a hundred took less, in microseconds.
    pub(crate) p99: f64,
}

/// The client's own words about a run.
#[derive(Debug, Deserialize)]
struct Words {
    calls: u32,
    errors: u32,
    first_error: String,
    seconds: f64,
    p50_us: f64,
    p99_us: f64,
}

/// A folder with everything that servers and clients read.
#[derive(Debug)]
pub(crate) struct Material {
    /// The folder.
    pub(crate) dir: PathBuf,
    /// Where step-ca must listen: its address is in its configuration.
    pub(crate) step_address: std::net::SocketAddr,
}

impl Material {
    /// Has the client program fill a folder.
    pub(crate) fn prepare(programs: &Programs, dir: &Path) -> anyhow::Result<Self> {
        let step_address = server::free_address()?;
        let status = program(programs)?
            .arg("prepare")
            .arg("-dir")
            .arg(dir)
            .args(["-step-port", &step_address.port().to_string()])
            .args([
                "-p384",
                &REQUESTS.to_string(),
                "-rsa",
                &REQUESTS.to_string(),
            ])
            .status()?;
        if !status.success() {
            bail!("the client program failed to prepare: {status}");
        }
        Ok(Self {
            dir: dir.to_owned(),
            step_address,
        })
    }
}

/// The client program, to be given its arguments.
pub(crate) fn program(programs: &Programs) -> anyhow::Result<Command> {
    let path = programs
        .drive
        .as_ref()
        .map_err(|reason| anyhow::anyhow!("no client program: {reason}"))?;
    Ok(Command::new(path))
}

/// One run of the client against a server.
pub(crate) fn run(
    programs: &Programs,
    server: &Server,
    args: &[String],
    effort: Effort,
) -> anyhow::Result<Run> {
    let mut command = program(programs)?;
    command
        .args(args)
        .arg("-address")
        .arg(server.address().to_string())
        .arg("-for")
        .arg(format!("{}ms", effort.run.as_millis()));
    let mut client = Client::start(command)?;
    client.ready(READY)?;

    let before = CpuSample::of(server.pid())?;
    client.go()?;
    let words = client.line(effort.run + GRACE)?;
    let used = CpuSample::of(server.pid())?.since(&before);

    let words: Words =
        serde_json::from_str(&words).with_context(|| format!("the client says {words:?}"))?;
    if words.errors > 0 || words.calls == 0 {
        bail!(
            "{} calls, {} clients failed: {}",
            words.calls,
            words.errors,
            words.first_error
        );
    }
    Ok(Run {
        cpu: used.as_secs_f64() * 1e6 / f64::from(words.calls),
        rate: f64::from(words.calls) / words.seconds,
        p50: words.p50_us,
        p99: words.p99_us,
    })
}

/// The running client program. Ends with this value.
pub(crate) struct Client {
    child: Child,
    lines: Receiver<String>,
}

impl Client {
    /// Starts it with what it says in hand.
    pub(crate) fn start(mut command: Command) -> anyhow::Result<Self> {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .context("failed to start the client program")?;
        let (sender, lines) = mpsc::channel();
        for stream in [
            child
                .stdout
                .take()
                .map(|out| Box::new(out) as Box<dyn std::io::Read + Send>),
            child.stderr.take().map(|err| Box::new(err) as _),
        ]
        .into_iter()
        .flatten()
        {
            let sender = sender.clone();
            thread::spawn(move || {
                for line in BufReader::new(stream).lines().map_while(Result::ok) {
                    if sender.send(line).is_err() {
                        return;
                    }
                }
            });
        }
        Ok(Self { child, lines })
    }

    /// Waits until it has prepared itself.
    pub(crate) fn ready(&self, deadline: Duration) -> anyhow::Result<()> {
        match self.line(deadline)?.as_str() {
            "ready" => Ok(()),
            other => bail!("the client says {other:?}"),
        }
    }

    /// The next line that it says.
    pub(crate) fn line(&self, deadline: Duration) -> anyhow::Result<String> {
        self.lines
            .recv_timeout(deadline)
            .map_err(|error| match error {
                RecvTimeoutError::Timeout => {
                    anyhow::anyhow!("the client says nothing for {deadline:?}")
                }
                RecvTimeoutError::Disconnected => {
                    anyhow::anyhow!("the client ended without a word")
                }
            })
    }

    /// Lets it begin.
    pub(crate) fn go(&mut self) -> anyhow::Result<()> {
        let input = self
            .child
            .stdin
            .as_mut()
            .context("the client has no input")?;
        Ok(input.write_all(b"go\n")?)
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        let _ended_already = self.child.kill();
        let _reaped = self.child.wait();
    }
}
