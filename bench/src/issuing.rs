//! Issuing: `IssueLeaf` over mutual TLS, stored and audited, beside the bare computation and the
//! signing endpoints of step-ca (one-time tokens made ahead; stored) and cfssl (nothing stored).
//!
//! Every client has a connection of its own, as each caller of a CA has: HTTP/2 to ours, HTTP/1.1
//! to the others, TLS 1.3 with client certificates everywhere. The CAs' keys are P-384. Requests
//! are distinct and made ahead.

use std::path::Path;

use crate::{
    Effort,
    build::Programs,
    cpu,
    drive::{self, Material, Run},
    node, peers,
    raw::Raw,
    report::{Figure, Metric, Report},
    server::Server,
    stats::{Runs, Spread},
};

/// Subject keys: what people read, and the file's name.
const KEYS: [(&str, &str); 2] = [("P-384", "p-384"), ("RSA 3072", "rsa-3072")];
/// How many clients at a time.
const CLIENTS: [u32; 3] = [1, 8, 64];
/// Server CPU of ours may be this many times the bare computation.
const GOAL_RAW: f64 = 0.5;
/// Server CPU of step-ca is at least this many times ours.
const GOAL_STEP: f64 = 8.0;
/// Server CPU of cfssl is at least this many times ours.
const GOAL_CFSSL: f64 = 3.0;

/// A CA with what the client program must be told about it.
struct Authority {
    name: &'static str,
    server: Result<Server, String>,
    args: Vec<String>,
}

/// Measures all of it.
pub(crate) fn measure(
    programs: &Programs,
    material: &Material,
    effort: Effort,
    report: &mut Report,
) -> anyhow::Result<()> {
    report.say("\nissuing, beside the bare computation, step-ca and cfssl")?;
    let authorities = authorities(programs, material);
    for (keys, file) in KEYS {
        let raw = Raw::open(&material.dir.join(format!("{file}.csr")));
        let requests = material.dir.join(format!("{file}.requests"));
        for clients in CLIENTS {
            let mut computed = Runs::default();
            let mut runs: Vec<Runs> = authorities.iter().map(|_| Runs::default()).collect();
            for _ in 0..effort.rounds {
                computed.add(|| {
                    raw.as_ref()
                        .map_err(|error| anyhow::anyhow!("{error:#}"))?
                        .run()
                });
                for (authority, runs) in authorities.iter().zip(&mut runs) {
                    runs.add(|| authority.run(programs, &requests, clients, effort));
                }
            }
            if let [ours, step, cfssl] = runs.as_slice() {
                print(report, keys, clients, [ours, &computed, step, cfssl])?;
            }
        }
    }
    memory(&authorities, report)
}

fn authorities(programs: &Programs, material: &Material) -> [Authority; 3] {
    let dir = |name: &str| material.dir.join(name).display().to_string();
    let args = |args: &[&str]| args.iter().map(|&arg| arg.to_owned()).collect();
    let (ours, node_args) = match node::issuing(programs, &material.dir.join("node")) {
        Ok(node) => (Ok(node.server), node.client_args),
        Err(error) => (Err(format!("{error:#}")), Vec::new()),
    };
    [
        Authority {
            name: "vidimus",
            server: ours,
            args: node_args,
        },
        Authority {
            name: "step-ca",
            server: peers::step(programs, material),
            args: args(&[
                "-api",
                "step",
                "-tls",
                &dir("step/client"),
                "-step",
                &dir("step"),
            ]),
        },
        Authority {
            name: "cfssl",
            server: peers::cfssl(programs, material),
            args: args(&["-api", "cfssl", "-tls", &dir("cfssl/client")]),
        },
    ]
}

impl Authority {
    fn run(
        &self,
        programs: &Programs,
        requests: &Path,
        clients: u32,
        effort: Effort,
    ) -> anyhow::Result<Run> {
        let server = self
            .server
            .as_ref()
            .map_err(|reason| anyhow::anyhow!("{reason}"))?;
        let mut args = vec!["issue".to_owned()];
        args.extend(self.args.iter().cloned());
        args.extend(["-requests".to_owned(), requests.display().to_string()]);
        args.extend(["-clients".to_owned(), clients.to_string()]);
        drive::run(programs, server, &args, effort)
    }
}

fn print(
    report: &mut Report,
    keys: &'static str,
    clients: u32,
    [ours, computed, step, cfssl]: [&Runs; 4],
) -> anyhow::Result<()> {
    let name = match clients {
        1 => "issue_leaf, 1 client".to_owned(),
        many => format!("issue_leaf, {many} clients"),
    };
    let figure = |suffix: &str, metric, of: fn(&Run) -> f64, peer: &Runs, peer_name| Figure {
        name: format!("{name}{suffix}"),
        metric,
        keys,
        ours: ours.figure(of),
        peer: peer.figure(of),
        peer_name,
    };
    let goals = keys == "P-384" && clients > 1;
    for (peer, peer_name, goal) in [
        (computed, "raw cost", GOAL_RAW),
        (step, "step-ca", GOAL_STEP),
        (cfssl, "cfssl", GOAL_CFSSL),
    ] {
        let cpu = figure("", Metric::ServerCpu, |run| run.cpu, peer, peer_name);
        report.figure(&cpu)?;
        if goals {
            report.goal(
                format!("{name}, {keys}: server CPU beside {peer_name}"),
                &cpu,
                goal,
            );
        }
    }
    for (peer, peer_name) in [(step, "step-ca"), (cfssl, "cfssl")] {
        report.figure(&figure("", Metric::Rate, |run| run.rate, peer, peer_name))?;
        report.figure(&figure(
            ", p50",
            Metric::Latency,
            |run| run.p50,
            peer,
            peer_name,
        ))?;
        report.figure(&figure(
            ", p99",
            Metric::Latency,
            |run| run.p99,
            peer,
            peer_name,
        ))?;
    }
    Ok(())
}

/// What each CA holds after all of its runs.
fn memory(authorities: &[Authority; 3], report: &mut Report) -> anyhow::Result<()> {
    let [ours, peers @ ..] = authorities;
    for peer in peers {
        report.figure(&Figure {
            name: "issue_leaf, after all runs".to_owned(),
            metric: Metric::Memory,
            keys: "P-384",
            ours: resident(&ours.server),
            peer: resident(&peer.server),
            peer_name: peer.name,
        })?;
    }
    Ok(())
}

/// Memory of a server in megabytes.
pub(crate) fn resident(server: &Result<Server, String>) -> Result<Spread, String> {
    let server = server.as_ref().map_err(Clone::clone)?;
    cpu::resident(server.pid())
        .map(Spread::single)
        .map_err(|error| format!("{error:#}"))
}
