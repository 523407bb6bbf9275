//! `vidimus tls`: TLS files, who is connected by them, and the roots in them.

mod check;
mod page;
mod peers;
mod roots;

use clap::Subcommand;

/// The subcommands of `vidimus tls`.
#[derive(Debug, Subcommand)]
pub(crate) enum TlsCommand {
    /// Says what is right and what is wrong about `tls.crt`, `tls.key` and `ca.crt`, and until when.
    Check(check::CheckArgs),
    /// Shows who is connected to a running program, and under which root.
    Peers(peers::PeersArgs),
    /// Shows, adds and removes the roots in a folder's `ca.crt`.
    #[command(subcommand)]
    Roots(roots::RootsCommand),
}

impl TlsCommand {
    pub(crate) async fn run(self) -> anyhow::Result<()> {
        match self {
            Self::Check(args) => args.run(),
            Self::Peers(args) => args.run().await,
            Self::Roots(command) => command.run().await,
        }
    }
}
