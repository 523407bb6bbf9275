//! `vidimus node`: making and running a CA node.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use anyhow::Context as _;
use clap::{Args, Subcommand, ValueEnum};
use vidimus_daemon::telemetry;
use vidimus_fs::{
    durable::{self, Mode},
    read,
};
use vidimus_keys::Secret;
use vidimus_node::{
    ceremony::{self, Ceremony, Initialised},
    config::Role,
    data::DataDir,
    run::RunConfig,
};

use crate::{cli::UnlockArgs, command::config, endpoint, exit::Stop, output, shutdown};

/// Where a system's services keep their state.
const DEFAULT_DATA_DIR: &str = "/var/lib/vidimus";
/// A chain of a few certificates.
const MAX_CHAIN: u64 = 1024 * 1024;

/// The subcommands of `vidimus node`.
#[derive(Debug, Subcommand)]
pub(crate) enum NodeCommand {
    /// Makes a CA: a root signs itself; a subordinate writes its request, then takes its signed chain.
    Init(InitArgs),
    /// Runs a CA that was made with `init`.
    Run(RunArgs),
}

impl NodeCommand {
    pub(crate) async fn run(self) -> anyhow::Result<()> {
        match self {
            Self::Init(args) => args.run().await,
            Self::Run(args) => args.run().await,
        }
    }

    /// Whether it goes on until it is told to stop.
    pub(crate) fn runs_on(&self) -> bool {
        matches!(self, Self::Run(_))
    }
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum RoleArg {
    Intermediate,
    Issuing,
    Root,
}

impl From<RoleArg> for Role {
    fn from(role: RoleArg) -> Self {
        match role {
            RoleArg::Intermediate => Self::Intermediate,
            RoleArg::Issuing => Self::Issuing,
            RoleArg::Root => Self::Root,
        }
    }
}

/// Arguments of `vidimus node init`.
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  \
    vidimus node init --role root --config root.yaml --data-dir ./root --create-unlock-file ./root.unlock\n  \
    vidimus node init --role issuing --config node.yaml --data-dir ./node --create-unlock-file ./node.unlock \\\n    \
    --csr-out node.csr\n  \
    vidimus ca sign-subordinate --csr node.csr --profile sub-ca --data-dir ./root --unlock-file ./root.unlock \\\n    \
    > chain.pem\n  \
    vidimus node init --role issuing --config node.yaml --data-dir ./node --unlock-file ./node.unlock \\\n    \
    --chain chain.pem")]
pub(crate) struct InitArgs {
    /// What the CA is for; the config must say the same.
    #[arg(long, value_enum)]
    role: RoleArg,

    /// The machine config.
    #[arg(long, value_name = "FILE")]
    config: PathBuf,

    /// The CA's data folder; made if it isn't there.
    #[arg(long, value_name = "DIR")]
    data_dir: PathBuf,

    #[command(flatten)]
    unlock: UnlockArgs,

    /// Makes a new unlock file with random content and uses it.
    #[arg(long, value_name = "FILE", conflicts_with = "unlock")]
    create_unlock_file: Option<PathBuf>,

    /// Where a subordinate's request goes; stdout if absent.
    #[arg(long, value_name = "FILE", conflicts_with = "chain")]
    csr_out: Option<PathBuf>,

    /// The signed chain for the request, PEM, this CA first: the second step of a subordinate.
    #[arg(long, value_name = "FILE")]
    chain: Option<PathBuf>,
}

impl InitArgs {
    async fn run(self) -> anyhow::Result<()> {
        let role = Role::from(self.role);
        let (config, _) = config::load(&self.config)?;
        if config.role != role {
            return Err(Stop::usage(format!(
                "{} is for role `{}`, the command line says `{role}`",
                self.config.display(),
                config.role
            )));
        }
        if role == Role::Root && (self.chain.is_some() || self.csr_out.is_some()) {
            return Err(Stop::usage(
                "a root signs itself: it has no request and takes no chain",
            ));
        }
        let data = DataDir::new(&self.data_dir);
        let secret = Arc::new(self.secret()?);
        let done = match &self.chain {
            None => ceremony::init(&data, &config, &secret, &endpoint::clock()).await?,
            Some(file) => {
                let chain = read::bounded(file, MAX_CHAIN)?;
                ceremony::complete(&data, &chain, &secret, &endpoint::clock()).await?
            }
        };
        self.tell(&data, &done)
    }

    fn secret(&self) -> anyhow::Result<Secret> {
        match &self.create_unlock_file {
            Some(file) => Ok(Secret::create_key_file(file)?),
            None => endpoint::secret(&self.unlock),
        }
    }

    fn tell(&self, data: &DataDir, done: &Initialised) -> anyhow::Result<()> {
        match &done.outcome {
            Ceremony::Established { .. } => {
                output::note(&format!("the CA in {} is ready", data.path().display()));
                output::note(&format!(
                    "its administrator: certificate with SHA-256 {}",
                    done.admin.to_hex()
                ));
                Ok(())
            }
            Ceremony::AwaitingCertificate { csr_pem } => {
                self.deliver(csr_pem)?;
                output::note(
                    "have the request signed by the parent (`vidimus ca sign-subordinate`), then repeat this command with --chain FILE",
                );
                Ok(())
            }
        }
    }

    fn deliver(&self, csr_pem: &str) -> anyhow::Result<()> {
        match &self.csr_out {
            None => output::bytes(csr_pem.as_bytes()),
            Some(file) => {
                durable::write(file, csr_pem.as_bytes(), Mode::Public)?;
                output::note(&format!("the request is in {}", file.display()));
                Ok(())
            }
        }
    }
}

/// Arguments of `vidimus node run`.
#[derive(Args, Debug)]
#[command(
    after_help = "Example:\n  vidimus node run --data-dir /var/lib/vidimus --unlock-file /etc/vidimus/unlock\n\n\
    Where it listens stands in `endpoints.json` in the data folder and in its log."
)]
pub(crate) struct RunArgs {
    /// A machine config to take first, as `config apply` would; without it the stored one is used.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,

    /// The CA's data folder.
    #[arg(long, value_name = "DIR", default_value = DEFAULT_DATA_DIR)]
    data_dir: PathBuf,

    #[command(flatten)]
    unlock: UnlockArgs,

    #[command(flatten)]
    stop: shutdown::StopArgs,
}

impl RunArgs {
    async fn run(self) -> anyhow::Result<()> {
        let secret = endpoint::secret(&self.unlock)?;
        let config = self
            .config
            .as_deref()
            .map(config::load)
            .transpose()?
            .map(|(config, _)| config);
        let run = RunConfig {
            data_dir: DataDir::new(&self.data_dir),
            secret,
            config,
            metrics: Some(telemetry::init_metrics()?),
        };
        let shutdown = self.stop.token()?;
        vidimus_node::run::run(run, shutdown)
            .await
            .with_context(|| in_folder(&self.data_dir))
    }
}

fn in_folder(folder: &Path) -> String {
    format!("run the node in {}", folder.display())
}
