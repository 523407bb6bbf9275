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

const PEER: &str = "grpc-go";
/// Certificates of both sides: what people read, and the folder's name.
const KEYS: [(&str, &str); 2] = [("P-384", "p-384"), ("P-256", "p-256")];
/// A figure's name, the client's mode and how many at a time.
const WORK: [(&str, &str, u32); 3] = [
    ("connection and call, 4 clients", "connect", 4),
    ("call, 1 in flight", "calls", 1),
    ("call, 32 in flight", "calls", 32),
];

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
        for (name, mode, workers) in WORK {
            // The key type of the certificates is no part of a call on a connection that stands.
            if mode == "calls" && keys != "P-384" {
                continue;
            }
            let args: Vec<String> = [
                "health",
                "-tls",
                &dir.join("client").display().to_string(),
                "-mode",
                mode,
                "-workers",
                &workers.to_string(),
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
            print(report, name, keys, &our_runs, &their_runs)?;
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
        report.figure(&Figure {
            name: format!("{name}{suffix}"),
            metric,
            keys,
            ours: ours.figure(of),
            peer: theirs.figure(of),
            peer_name: PEER,
        })?;
    }
    Ok(())
}
