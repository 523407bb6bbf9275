//! Benchmarks beside real peers, as ratios in one run on one machine.
//!
//! Every figure is measured in short alternating runs (ours, a peer, the next peer, ours again) by
//! one client program, and reported as the median with the lowest and the highest run. What is
//! compared is the CPU time of the server's process, which the client on the same cores doesn't
//! touch; rates and latencies share the cores with the client and say less. A peer that can't be
//! built or started makes its figures "not measured" and never ends the run; nothing here passes
//! or fails by a time.

mod bare;
mod build;
mod checks;
mod connections;
mod cpu;
mod drive;
mod idle;
mod issuing;
mod node;
mod peers;
mod raw;
mod reaction;
mod report;
mod serve;
mod server;
mod stats;

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::Context;
use clap::{Parser, ValueEnum};

use crate::{build::Programs, report::Report};

/// Measures issuing and connections beside other programs.
#[derive(Debug, Parser)]
#[command(version, about)]
struct Options {
    /// How often each figure is measured.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=100))]
    rounds: u32,

    /// How long one run takes, in seconds.
    #[arg(long, default_value_t = 2.0)]
    seconds: f64,

    /// Measure this part alone.
    #[arg(long, value_enum)]
    only: Option<Part>,

    #[command(subcommand)]
    command: Option<Command>,

    /// Where the JSON lines go; `target/bench.jsonl` in the project if absent.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// What this program does for itself.
#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Serve with our acceptor, to be measured.
    #[command(hide = true)]
    Serve(serve::Options),
}

/// A part of the benchmark.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
enum Part {
    /// Certificates.
    Issuing,
    /// Connections and calls.
    Connections,
    /// Connections without gRPC.
    Bare,
    /// What single checks cost.
    Checks,
    /// From a change of the files until it shows.
    Reaction,
    /// Memory of connections that do nothing.
    Idle,
}

/// How long and how often.
#[derive(Clone, Copy, Debug)]
struct Effort {
    rounds: u32,
    run: Duration,
}

fn main() -> anyhow::Result<()> {
    let options = Options::parse();
    if let Some(Command::Serve(how)) = &options.command {
        return serve::run(how);
    }
    let effort = Effort {
        rounds: options.rounds,
        run: Duration::try_from_secs_f64(options.seconds).context("--seconds")?,
    };
    let target = build::workspace().join("target");
    let mut report = Report::create(&options.json.unwrap_or_else(|| target.join("bench.jsonl")))?;
    report.machine()?;
    let wanted = |part| options.only.is_none_or(|only| only == part);
    if wanted(Part::Checks) {
        checks::measure(&mut report)?;
    }
    if wanted(Part::Reaction) {
        reaction::measure(&mut report)?;
    }
    if !matches!(options.only, Some(Part::Checks | Part::Reaction)) {
        beside_others(wanted, &target, effort, &mut report)?;
    }
    report.finish()
}

/// What is measured beside other programs, which are built first.
fn beside_others(
    wanted: impl Fn(Part) -> bool,
    target: &Path,
    effort: Effort,
    report: &mut Report,
) -> anyhow::Result<()> {
    let programs = Programs::build(target, report)?;
    let scratch = tempfile::Builder::new()
        .prefix("bench-")
        .tempdir_in(target)
        .context("failed to make a scratch folder")?;
    let material = drive::Material::prepare(&programs, scratch.path())?;
    if wanted(Part::Issuing) {
        issuing::measure(&programs, &material, effort, report)?;
    }
    if wanted(Part::Connections) {
        connections::measure(&programs, &material, effort, report)?;
    }
    if wanted(Part::Bare) {
        bare::measure(&programs, &material, effort, report)?;
    }
    if wanted(Part::Idle) {
        idle::measure(&programs, &material, effort, report)?;
    }
    Ok(())
}
