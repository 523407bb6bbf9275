//! `vidimus tls check`: looking at TLS files.

use std::path::PathBuf;

use anyhow::Context as _;
use clap::{Args, ValueEnum};
use serde::Serialize;
use vidimus_daemon::clock::{Clock as _, SystemClock};
use vidimus_tls::{
    check::{self, Expectation, Finding, Level, Report},
    material::{MaterialFiles, Usage},
};

use crate::{cli::OutputArgs, exit::Stop, output};

/// Arguments of `vidimus tls check`.
#[derive(Args, Debug)]
#[command(
    after_help = "Example:\n  vidimus tls check /etc/virtrigaud/tls --as server \\\n    \
    --server-name virtrigaud-provider-ns-name.ns.svc.cluster.local\n\n\
    Exit code 0: a process can use the files; 1: something is wrong."
)]
pub(crate) struct CheckArgs {
    /// The folder with `tls.crt`, `tls.key` and `ca.crt`.
    #[arg(value_name = "DIR")]
    folder: PathBuf,

    /// What the files are for; at least one of the two must work where this is absent.
    #[arg(long = "as", value_enum, value_name = "USE")]
    usage: Option<UsageArg>,

    /// The name that clients will ask the server for.
    #[arg(long, value_name = "NAME")]
    server_name: Option<String>,

    #[command(flatten)]
    output: OutputArgs,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum UsageArg {
    Both,
    Client,
    Server,
}

#[derive(Serialize)]
#[serde(transparent)]
struct Answer(Report);

impl output::Tabular for Answer {
    fn columns(&self) -> Vec<&'static str> {
        vec!["", "about", "finding"]
    }

    fn rows(&self) -> Vec<Vec<String>> {
        let row = |finding: &Finding| {
            let mark = match finding.level {
                Level::Right => "ok",
                Level::Warning => "warning",
                Level::Wrong => "WRONG",
            };
            vec![
                mark.to_owned(),
                finding.about.to_owned(),
                finding.text.clone(),
            ]
        };
        self.0.findings.iter().map(row).collect()
    }
}

impl CheckArgs {
    pub(super) fn run(self) -> anyhow::Result<()> {
        std::fs::read_dir(&self.folder)
            .with_context(|| format!("read the folder {}", self.folder.display()))?;
        let expected = Expectation {
            usage: self.usage.map(|usage| match usage {
                UsageArg::Both => Usage::Both,
                UsageArg::Client => Usage::Client,
                UsageArg::Server => Usage::Server,
            }),
            server_name: self.server_name,
        };
        let report = check::files(
            &MaterialFiles::in_dir(&self.folder),
            &expected,
            SystemClock.now(),
        );
        let answer = Answer(report);
        output::print(self.output.format, &answer)?;
        if answer.0.usable {
            Ok(())
        } else {
            Err(Stop::failure(format!(
                "the files in {} can't be used as they are",
                self.folder.display()
            )))
        }
    }
}
