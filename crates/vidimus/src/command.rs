//! One module a subcommand: its arguments, and how it calls the program crates.

pub(crate) mod audit;
pub(crate) mod ca;
pub(crate) mod config;
pub(crate) mod generate;
pub(crate) mod identity;
pub(crate) mod node;
pub(crate) mod policy;
pub(crate) mod provider;
pub(crate) mod quickstart;
pub(crate) mod status;
pub(crate) mod tls;

use crate::cli::Command;

/// The log filter of commands that answer once: warnings, but not those that the error repeats.
const ONE_ANSWER: &str = "warn,vidimus_tls::channel::manager=error";

impl Command {
    /// Does what the user typed.
    pub(crate) async fn run(self) -> anyhow::Result<()> {
        match self {
            Self::Audit(command) => command.run().await,
            Self::Ca(command) => command.run().await,
            Self::Completion(args) => args.run(),
            Self::Config(command) => command.run().await,
            Self::Identity(command) => command.run().await,
            Self::Man(args) => args.run(),
            Self::Node(command) => Box::pin(command.run()).await,
            Self::Policy(command) => command.run(),
            Self::Provider(command) => Box::pin(command.run()).await,
            Self::Quickstart(args) => Box::pin(args.run()).await,
            Self::Status(args) => args.run().await,
            Self::Tls(command) => command.run().await,
        }
    }

    /// The log filter where the user named none: programs that run on tell what they do, commands that
    /// answer once only warn.
    pub(crate) fn default_filter(&self) -> &'static str {
        match self {
            Self::Node(command) if command.runs_on() => "info",
            Self::Provider(command) if command.runs_on() => "info",
            Self::Audit(_)
            | Self::Ca(_)
            | Self::Completion(_)
            | Self::Config(_)
            | Self::Identity(_)
            | Self::Man(_)
            | Self::Node(_)
            | Self::Policy(_)
            | Self::Provider(_)
            | Self::Quickstart(_)
            | Self::Status(_)
            | Self::Tls(_) => ONE_ANSWER,
        }
    }
}
