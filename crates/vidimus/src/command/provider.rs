//! `vidimus provider`: running one, and checking one as a manager would meet it.

mod run;
mod validate;

use clap::Subcommand;

/// The subcommands of `vidimus provider`.
#[derive(Debug, Subcommand)]
pub(crate) enum ProviderCommand {
    /// Runs the in-memory provider behind the server kit.
    Run(run::RunArgs),
    /// Connects to a provider as a manager does and says what comes back.
    Validate(validate::ValidateArgs),
}

impl ProviderCommand {
    pub(crate) async fn run(self) -> anyhow::Result<()> {
        match self {
            Self::Run(args) => args.run().await,
            Self::Validate(args) => args.run().await,
        }
    }

    /// Whether it goes on until it is told to stop.
    pub(crate) fn runs_on(&self) -> bool {
        matches!(self, Self::Run(_))
    }
}
