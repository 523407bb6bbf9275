//! Memory of connections that stand and do nothing.

use std::{path::Path, time::Duration};

use anyhow::ensure;

use crate::{
    Effort,
    build::Programs,
    connections::PEER,
    cpu,
    drive::{self, Client, Material},
    node, peers,
    report::{Figure, Metric, Report},
    server::Server,
    stats::Spread,
};

/// How many connections stand.
const COUNT: u32 = 10_000;
/// How long opening them may take.
const OPENING: Duration = Duration::from_secs(300);
/// How long they may take to say that all of them still stand.
const ANSWER: Duration = Duration::from_secs(30);

/// Measures what 10,000 idle connections add to a server's memory.
pub(crate) fn measure(
    programs: &Programs,
    material: &Material,
    effort: Effort,
    report: &mut Report,
) -> anyhow::Result<()> {
    report.say("\nmemory of idle connections, beside a grpc-go server")?;
    let dir = material.dir.join("p-256");
    // Servers of their own each time: what earlier work left in one's memory would be counted.
    let ours = || {
        let server = node::provider(programs, &dir).map_err(|error| format!("{error:#}"))?;
        each(programs, &server, &dir)
    };
    let theirs = || each(programs, &peers::healthserver(programs, &dir)?, &dir);
    let rounds = 0..effort.rounds;
    let ours = rounds.clone().map(|_| ours()).collect::<Result<_, _>>();
    let peer = rounds.map(|_| theirs()).collect::<Result<_, _>>();
    let spread = |all| Spread::of(all).ok_or_else(|| "no run".to_owned());
    let figure = Figure {
        name: "idle connection, 10,000 of them".to_owned(),
        metric: Metric::ConnectionMemory,
        keys: "P-256",
        ours: ours.and_then(spread),
        peer: peer.and_then(spread),
        peer_name: PEER,
    };
    report.figure(&figure)?;
    report.goal(
        "a third of grpc-go's memory for an idle connection".to_owned(),
        &figure,
        3.0,
    );
    Ok(())
}

/// Kilobytes for each connection.
fn each(programs: &Programs, server: &Server, dir: &Path) -> Result<f64, String> {
    let run = || -> anyhow::Result<f64> {
        let before = cpu::resident(server.pid())?;
        let mut command = drive::program(programs)?;
        command
            .args(["idle", "-address", &server.address().to_string()])
            .args(["-count", &COUNT.to_string()])
            .arg("-tls")
            .arg(dir.join("client"));
        let mut client = Client::start(command)?;
        client.ready(OPENING)?;
        let after = cpu::resident(server.pid())?;
        client.go()?;
        let held = client.line(ANSWER)?;
        ensure!(held == "held", "the client says {held:?}");
        Ok((after - before) * 1000.0 / f64::from(COUNT))
    };
    run().map_err(|error| format!("{error:#}"))
}
