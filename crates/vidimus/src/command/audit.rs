//! `vidimus audit`: the audit log, checked without a running node.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::{Args, Subcommand};
use serde::Serialize;
use vidimus_audit::{AuditPublicKey, Head};
use vidimus_store::verify::{self, Verdict};

use crate::{cli::OutputArgs, exit::Stop, output};

/// The subcommands of `vidimus audit`.
#[derive(Debug, Subcommand)]
pub(crate) enum AuditCommand {
    /// Checks every entry's signature and its link to the one before.
    Verify(VerifyArgs),
}

impl AuditCommand {
    pub(crate) async fn run(self) -> anyhow::Result<()> {
        match self {
            Self::Verify(args) => args.run().await,
        }
    }
}

/// Arguments of `vidimus audit verify`.
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  \
    vidimus audit verify /var/lib/vidimus/audit --public-key $(cat audit.pub)\n  \
    vidimus audit verify /var/lib/vidimus/vidimus.db\n\n\
    The public key proves more when it was kept somewhere else than the log. Without --public-key it is read from \
    `audit.pub` beside the log, and the answer says so. A log that was cut at its end looks whole by itself: give the \
    head of an earlier run with --expect-head to notice it.")]
pub(crate) struct VerifyArgs {
    /// A folder of daily files, one such file, a node's database, or its data folder.
    #[arg(value_name = "DIR|FILE|STORE")]
    path: PathBuf,

    /// The log's Ed25519 public key, 64 hex digits.
    #[arg(long, value_name = "HEX")]
    public_key: Option<AuditPublicKey>,

    /// An entry that must be there, as `<sequence>:<hash>` of an earlier answer's `head`.
    #[arg(long, value_name = "SEQ:HASH")]
    expect_head: Option<Head>,

    #[command(flatten)]
    output: OutputArgs,
}

/// What the check found.
#[derive(Serialize)]
struct Answer {
    intact: bool,
    entries: u64,
    first_sequence: u64,
    head: String,
    public_key: String,
    public_key_from: String,
}

impl VerifyArgs {
    async fn run(self) -> anyhow::Result<()> {
        let path = log_of(self.path.clone());
        let (key, key_from) = match self.public_key {
            Some(key) => (key, "the command line".to_owned()),
            None => key_beside(&path)?,
        };
        let shown = path.display().to_string();
        let checked = tokio::task::spawn_blocking(move || {
            verify::path(&path, key, self.expect_head).map(|verified| (verified, key))
        });
        let (verdict, key) = checked
            .await
            .context("check the log")?
            .with_context(|| format!("check {shown}"))?;
        let verified = match verdict {
            Verdict::Intact(verified) => verified,
            Verdict::Broken(broken) => {
                return self.broken(&key, key_from, broken.seq, broken.to_string());
            }
            Verdict::Certificate(fault) => {
                return self.broken(&key, key_from, fault.seq, fault.to_string());
            }
        };
        let answer = Answer {
            intact: true,
            entries: verified.entries,
            first_sequence: verified.start.seq.saturating_add(1),
            head: verified.head.to_string(),
            public_key: key.to_string(),
            public_key_from: key_from,
        };
        let fields = [
            (
                "result",
                "intact: every signature and link holds".to_owned(),
            ),
            (
                "entries",
                format!(
                    "{}, from sequence {}",
                    answer.entries, answer.first_sequence
                ),
            ),
            ("head", answer.head.clone()),
            (
                "public key",
                format!("{} (from {})", answer.public_key, answer.public_key_from),
            ),
        ];
        output::print_fields(self.output.format, &answer, &fields)
    }

    fn broken(
        &self,
        key: &AuditPublicKey,
        key_from: String,
        sequence: u64,
        reason: String,
    ) -> anyhow::Result<()> {
        let answer = Broken {
            intact: false,
            first_bad_sequence: sequence,
            reason,
            public_key: key.to_string(),
            public_key_from: key_from,
        };
        let fields = [
            ("result", "BROKEN".to_owned()),
            (
                "first bad entry",
                format!("sequence {sequence}: {}", answer.reason),
            ),
            (
                "public key",
                format!("{} (from {})", answer.public_key, answer.public_key_from),
            ),
        ];
        output::print_fields(self.output.format, &answer, &fields)?;
        Err(Stop::failure(format!(
            "the audit log does not hold: {}",
            answer.reason
        )))
    }
}

/// What the check found where it found something wrong.
#[derive(Serialize)]
struct Broken {
    intact: bool,
    first_bad_sequence: u64,
    reason: String,
    public_key: String,
    public_key_from: String,
}

/// The log itself, where a node's data folder was named.
fn log_of(path: PathBuf) -> PathBuf {
    let database = path.join("vidimus.db");
    if database.is_file() { database } else { path }
}

fn key_beside(path: &Path) -> anyhow::Result<(AuditPublicKey, String)> {
    let folders = [
        Some(path),
        path.parent(),
        path.parent().and_then(Path::parent),
    ];
    for folder in folders.into_iter().flatten() {
        let file = folder.join("audit.pub");
        if file.is_file() {
            let bytes = vidimus_fs::read::bounded(&file, 1024)?;
            let text = String::from_utf8_lossy(&bytes);
            let key = text.trim().parse::<AuditPublicKey>();
            let key = key.with_context(|| format!("read the public key in {}", file.display()))?;
            return Ok((key, file.display().to_string()));
        }
    }
    Err(Stop::usage(format!(
        "no `audit.pub` beside {}; give the log's public key with --public-key (64 hex digits; `vidimus status` \
         shows it)",
        path.display()
    )))
}
