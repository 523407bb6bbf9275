//! The `vidimus` command line: arguments, output, hints and exit codes. What it does is in the program crates.

mod admin;
mod cli;
mod command;
mod endpoint;
mod exit;
mod output;
mod quickstart;
mod shutdown;
mod time;

use std::process::ExitCode;

use clap::Parser as _;
use tikv_jemallocator::Jemalloc;
use vidimus_daemon::telemetry;

use crate::{
    cli::{Cli, LogFormat},
    exit::Exit,
};

/// Gives back what a burst of connections needed, as the C library's doesn't.
#[global_allocator]
static ALLOCATOR: Jemalloc = Jemalloc;

fn main() -> ExitCode {
    let cli = Cli::parse();
    let format = match cli.log_format {
        LogFormat::Json => telemetry::Format::Json,
        LogFormat::Text => telemetry::Format::Text,
    };
    let filter = cli
        .log
        .clone()
        .unwrap_or_else(|| cli.command.default_filter().to_owned());
    if let Err(error) = telemetry::init(format, &filter) {
        output::note(&format!("error: {}", telemetry::chain(&error)));
        return Exit::Usage.into();
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build();
    let result = match runtime {
        Ok(runtime) => runtime.block_on(cli.command.run()),
        Err(error) => Err(error.into()),
    };
    match result {
        Ok(()) => Exit::Success.into(),
        Err(error) => {
            exit::explain(&error);
            Exit::of(&error).into()
        }
    }
}
