//! `vidimus quickstart`: the whole thread on one machine.

use std::path::PathBuf;

use clap::Args;

use crate::{
    cli::{Format, OutputArgs},
    quickstart,
};

/// Arguments of `vidimus quickstart`.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  vidimus quickstart\n  vidimus quickstart --once -o json\n\n\
    Without a terminal it ends by itself after the rotations, as with --once. Exit code 1: a call or a stream failed, \
    or a step took the wrong turn. With `-o json` the last line of stdout is one object."
)]
pub(crate) struct QuickstartArgs {
    /// Where everything is kept; a second run goes on with the CA that is there.
    #[arg(long, value_name = "DIR", default_value = "./vidimus-data")]
    data: PathBuf,

    /// Ends after the rotations.
    #[arg(long)]
    once: bool,

    /// The provider's port; the next free one if it is taken.
    #[arg(long, value_name = "PORT", default_value_t = vidimus_provider::server::GRPC_PORT)]
    port: u16,

    /// The port of the provider's health pages; the next free one if it is taken.
    #[arg(long, value_name = "PORT", default_value_t = vidimus_provider::server::HEALTH_PORT)]
    health_port: u16,

    /// The port of the issuing node's management API; the next free one if it is taken.
    #[arg(long, value_name = "PORT", default_value_t = vidimus_node::config::DEFAULT_LISTEN.port())]
    node_port: u16,

    #[command(flatten)]
    output: OutputArgs,
}

impl QuickstartArgs {
    pub(crate) async fn run(self) -> anyhow::Result<()> {
        let options = quickstart::Options {
            data: self.data,
            once: self.once,
            port: self.port,
            health_port: self.health_port,
            node_port: self.node_port,
            format: self.output.format,
        };
        quickstart::run(options).await
    }
}

/// Whether the answer is for a program.
pub(crate) fn for_programs(format: Format) -> bool {
    match format {
        Format::Json | Format::Yaml => true,
        Format::Table => false,
    }
}
