//! Connections and calls: our provider beside a grpc-go server, with the same certificates, called
//! by the same client (`grpc.health.v1` `Check`, TLS 1.3 with client certificates, no resumption).

use crate::{
    Effort,
    build::Programs,
    drive::{self, Material, Run},
    issuing::resident,
    node, peers,
    report::{Figure, Metric, Report},
    server::Server,
    stats::Runs,
};

pub(crate) const PEER: &str = "grpc-go";
/// Certificates of both sides: what people read, and the folder's name.
const KEYS: [(&str, &str); 2] = [("P-384", "p-384"), ("P-256", "p-256")];
/// What is measured.
struct Work {
    name: &'static str,
    /// The client's mode.
    mode: &'static str,
    /// How many at a time.
    workers: u32,
    /// How many connections they share, if those stand.
    connections: u32,
}

const fn work(name: &'static str, mode: &'static str, workers: u32, connections: u32) -> Work {
    Work {
        name,
        mode,
        workers,
        connections,
    }
}

const WORK: [Work; 5] = [
    work("connection and call, 4 clients", "connect", 4, 1),
    work("call, 1 in flight", "calls", 1, 1),
    work("call, 32 in flight", "calls", 32, 1),
    work("call, 32 connections, 8 each", "calls", 256, 32),
    work("call, 256 connections, 1 each", "calls", 256, 256),
];
/// Server CPU of grpc-go is at least this many times ours.
const GOAL: f64 = 2.0;

/// A suffix of the name, what it measures, and where that stands in a run.
type FigureOf = (&'static str, Metric, fn(&Run) -> f64);

/// Measures all of it.
pub(crate) fn measure(
    programs: &Programs,
    material: &Material,
    effort: Effort,
    report: &mut Report,
) -> anyhow::Result<()> {
    report.say("\nconnections and calls of a provider, beside a grpc-go server")?;
    for (keys, folder) in KEYS {
        let dir = material.dir.join(folder);
        let ours = node::provider(programs, &dir).map_err(|error| format!("{error:#}"));
        let theirs = peers::healthserver(programs, &dir);
        for work in WORK {
            // The key type of the certificates is no part of a call on a connection that stands.
            if work.mode == "calls" && keys != "P-384" {
                continue;
            }
            let args: Vec<String> = [
                "health",
                "-tls",
                &dir.join("client").display().to_string(),
                "-mode",
                work.mode,
                "-workers",
                &work.workers.to_string(),
                "-connections",
                &work.connections.to_string(),
            ]
            .map(str::to_owned)
            .to_vec();
            let run = |server: &Result<Server, String>| {
                let server = server
                    .as_ref()
                    .map_err(|reason| anyhow::anyhow!("{reason}"))?;
                drive::run(programs, server, &args, effort)
            };
            let (mut our_runs, mut their_runs) = (Runs::default(), Runs::default());
            for _ in 0..effort.rounds {
                our_runs.add(|| run(&ours));
                their_runs.add(|| run(&theirs));
            }
            print(report, work.name, keys, &our_runs, &their_runs)?;
        }
        if keys == "P-384" {
            report.figure(&Figure {
                name: "provider, after all runs".to_owned(),
                metric: Metric::Memory,
                keys,
                ours: resident(&ours),
                peer: resident(&theirs),
                peer_name: PEER,
            })?;
        }
    }
    Ok(())
}

fn print(
    report: &mut Report,
    name: &str,
    keys: &'static str,
    ours: &Runs,
    theirs: &Runs,
) -> anyhow::Result<()> {
    let figures: [FigureOf; 4] = [
        ("", Metric::ServerCpu, |run| run.cpu),
        ("", Metric::Rate, |run| run.rate),
        (", p50", Metric::Latency, |run| run.p50),
        (", p99", Metric::Latency, |run| run.p99),
    ];
    for (suffix, metric, of) in figures {
        let figure = Figure {
            name: format!("{name}{suffix}"),
            metric,
            keys,
            ours: ours.figure(of),
            peer: theirs.figure(of),
            peer_name: PEER,
        };
        report.figure(&figure)?;
        if metric == Metric::ServerCpu {
            report.goal(
                format!("half of grpc-go's CPU, {name}, {keys}"),
                &figure,
                GOAL,
            );
        }
    }
    Ok(())
}
