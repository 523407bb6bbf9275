//! `vidimus config`: machine configs.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::{Args, Subcommand};
use serde::Serialize;
use vidimus_fs::read;
use vidimus_node::config::{self, Config};

use crate::{
    cli::{NodeArgs, OutputArgs},
    endpoint, output,
};

/// The subcommands of `vidimus config`.
#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Checks a machine config and has a node take it, whole or not at all.
    Apply(ApplyArgs),
    /// Prints the machine config that a node uses.
    Get(GetArgs),
    /// Checks a machine config and tells everything that is wrong with it.
    Validate(ValidateArgs),
}

impl ConfigCommand {
    pub(crate) async fn run(self) -> anyhow::Result<()> {
        match self {
            Self::Apply(args) => args.run().await,
            Self::Get(args) => args.run().await,
            Self::Validate(args) => args.run(),
        }
    }
}

/// Arguments of `vidimus config validate`.
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  vidimus config validate node.yaml")]
pub(crate) struct ValidateArgs {
    /// The machine config.
    #[arg(value_name = "FILE")]
    file: PathBuf,

    #[command(flatten)]
    output: OutputArgs,
}

#[derive(Serialize)]
struct Valid {
    file: String,
    role: String,
    profiles: Vec<String>,
    digest_sha256: String,
}

impl ValidateArgs {
    fn run(self) -> anyhow::Result<()> {
        let (config, _) = load(&self.file)?;
        let answer = Valid {
            file: self.file.display().to_string(),
            role: config.role.to_string(),
            profiles: config
                .pki
                .profiles
                .iter()
                .map(|profile| profile.name.clone())
                .collect(),
            digest_sha256: config.digest_sha256().to_owned(),
        };
        let fields = [
            ("result", format!("{} is valid", answer.file)),
            ("role", answer.role.clone()),
            ("profiles", answer.profiles.join(", ")),
            ("digest", answer.digest_sha256.clone()),
        ];
        output::print_fields(self.output.format, &answer, &fields)
    }
}

/// Arguments of `vidimus config apply`.
#[derive(Args, Debug)]
#[command(
    after_help = "Example:\n  vidimus config apply -f node.yaml --socket /var/lib/vidimus/node.sock"
)]
pub(crate) struct ApplyArgs {
    /// The machine config.
    #[arg(short = 'f', long = "file", value_name = "FILE")]
    file: PathBuf,

    #[command(flatten)]
    node: NodeArgs,

    #[command(flatten)]
    output: OutputArgs,
}

#[derive(Serialize)]
struct Applied {
    generation: u64,
    requires_reboot: bool,
    digest_sha256: String,
    warnings: Vec<String>,
}

impl ApplyArgs {
    async fn run(self) -> anyhow::Result<()> {
        let (_, text) = load(&self.file)?;
        let client = endpoint::connect(&self.node).await?;
        let answer = client.apply_config(&text).await?;
        for warning in &answer.warnings {
            output::note(&format!("warning: {warning}"));
        }
        let answer = Applied {
            generation: answer.generation,
            requires_reboot: answer.requires_reboot,
            digest_sha256: answer.digest_sha256,
            warnings: answer.warnings,
        };
        let fields = [
            ("generation", answer.generation.to_string()),
            (
                "restart needed",
                if answer.requires_reboot { "yes" } else { "no" }.to_owned(),
            ),
            ("digest", answer.digest_sha256.clone()),
        ];
        output::print_fields(self.output.format, &answer, &fields)
    }
}

/// Arguments of `vidimus config get`.
#[derive(Args, Debug)]
#[command(
    after_help = "Example:\n  vidimus config get --socket /var/lib/vidimus/node.sock > node.yaml"
)]
pub(crate) struct GetArgs {
    #[command(flatten)]
    node: NodeArgs,
}

impl GetArgs {
    async fn run(self) -> anyhow::Result<()> {
        let client = endpoint::connect(&self.node).await?;
        let config = client.config().await?;
        output::bytes(config.config_yaml.as_bytes())
    }
}

/// Reads and checks a machine config; answers it with its text.
pub(crate) fn load(file: &Path) -> anyhow::Result<(Config, String)> {
    let limit = u64::try_from(config::MAX_BYTES).unwrap_or(u64::MAX);
    let bytes = read::bounded(file, limit)?;
    let text = String::from_utf8(bytes)
        .map_err(|error| error.utf8_error())
        .with_context(|| format!("{} is not UTF-8 text", file.display()))?;
    let config = config::parse(&file.display().to_string(), &text)?;
    Ok((config, text))
}
