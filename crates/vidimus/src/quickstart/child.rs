//! The programs that a quickstart runs beside itself: the node and the provider, as processes of their own.

use std::{
    fs::{File, OpenOptions},
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use anyhow::{Context as _, bail};
use serde_json::Value;
use tokio::{
    process::{Child, Command},
    time::{Instant, sleep, timeout},
};

use crate::admin;
use crate::exit::Stop;

const START_DEADLINE: Duration = Duration::from_secs(30);
const STOP_DEADLINE: Duration = Duration::from_secs(20);
const POLL: Duration = Duration::from_millis(50);

/// A running program of this binary. It ends when the quickstart does, however that ends: its standard input is a
/// pipe that it watches.
#[derive(Debug)]
pub(crate) struct Program {
    name: &'static str,
    child: Child,
    admin_socket: PathBuf,
    log: PathBuf,
}

impl Program {
    /// Starts `vidimus ARGS` and waits until its admin endpoint says that it is ready.
    pub(crate) async fn start(
        name: &'static str,
        args: &[String],
        env: &[(&str, String)],
        admin_socket: PathBuf,
        log: PathBuf,
    ) -> anyhow::Result<Self> {
        let program = std::env::current_exe().context("find the running program's own file")?;
        let output = append_to(&log)?;
        let mut command = Command::new(program);
        command
            .args(args)
            .args(["--stop-with-stdin", "--log-format", "json"])
            .envs(env.iter().map(|(name, value)| (*name, value.as_str())))
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(output)
            // Ctrl-C on the terminal is for the quickstart, which ends the calls before the programs.
            .process_group(0)
            .kill_on_drop(true);
        let child = command
            .spawn()
            .with_context(|| format!("start the {name}"))?;
        let mut program = Self {
            name,
            child,
            admin_socket,
            log,
        };
        program.wait_ready().await?;
        Ok(program)
    }

    /// What the program's admin endpoint shows at `path`.
    pub(crate) async fn page(&self, path: &str) -> anyhow::Result<Value> {
        admin::json(&self.admin_socket, path)
            .await
            .with_context(|| format!("ask the {}", self.name))
    }

    /// Ends the program and waits for it to drain.
    pub(crate) async fn stop(mut self) -> anyhow::Result<()> {
        drop(self.child.stdin.take());
        match timeout(STOP_DEADLINE, self.child.wait()).await {
            Ok(status) => {
                let status = status.with_context(|| format!("wait for the {}", self.name))?;
                if !status.success() {
                    bail!(
                        "the {} ended with {status}; see {}",
                        self.name,
                        self.log.display()
                    );
                }
                Ok(())
            }
            Err(_) => bail!(
                "the {} did not end within {} s",
                self.name,
                STOP_DEADLINE.as_secs()
            ),
        }
    }

    async fn wait_ready(&mut self) -> anyhow::Result<()> {
        let deadline = Instant::now() + START_DEADLINE;
        loop {
            if let Some(status) = self
                .child
                .try_wait()
                .context("look after a child process")?
            {
                let last = last_line(&self.log);
                return Err(Stop::failure(format!(
                    "the {} ended at its start with {status}: {last} (all of it in {})",
                    self.name,
                    self.log.display()
                )));
            }
            if admin::ready(&self.admin_socket).await {
                return Ok(());
            }
            if Instant::now() > deadline {
                bail!(
                    "the {} was not ready within {} s",
                    self.name,
                    START_DEADLINE.as_secs()
                );
            }
            sleep(POLL).await;
        }
    }
}

fn append_to(log: &Path) -> anyhow::Result<File> {
    if let Some(folder) = log.parent() {
        std::fs::create_dir_all(folder).with_context(|| format!("make {}", folder.display()))?;
    }
    OpenOptions::new()
        .create(true)
        .append(true)
        .mode(0o600)
        .open(log)
        .with_context(|| format!("open {}", log.display()))
}

/// The end of a log, for an error's text.
fn last_line(log: &Path) -> String {
    let text = std::fs::read_to_string(log).unwrap_or_default();
    text.lines()
        .last()
        .unwrap_or("it said nothing")
        .chars()
        .take(2000)
        .collect()
}
