//! Memory of connections that stand and do nothing.

use std::{path::Path, time::Duration};

use anyhow::ensure;

use crate::{
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
    report: &mut Report,
) -> anyhow::Result<()> {
    report.say("\nmemory of idle connections, beside a grpc-go server")?;
    let dir = material.dir.join("p-256");
    // Servers of their own: what earlier work left in one's memory would be counted.
    let ours = node::provider(programs, &dir)
        .map_err(|error| format!("{error:#}"))
        .and_then(|server| each(programs, &server, &dir));
    let peer = peers::healthserver(programs, &dir).and_then(|server| each(programs, &server, &dir));
    let figure = Figure {
        name: "idle connection, 10,000 of them".to_owned(),
        metric: Metric::ConnectionMemory,
        keys: "P-256",
        ours,
        peer,
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
fn each(programs: &Programs, server: &Server, dir: &Path) -> Result<Spread, String> {
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
    run()
        .map(Spread::single)
        .map_err(|error| format!("{error:#}"))
}
