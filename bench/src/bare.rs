//! New mutual connections without gRPC: our acceptor beside `HAProxy` and stunnel.
//!
//! `HAProxy` answers one HTTP/1.1 request by itself, and so does ours. stunnel can only forward, so ours forwards there too,
//! to the same echo. The client offers X25519 alone, which all three know.

use std::{fs, path::Path, process::Command};

use anyhow::Context;

use crate::{
    Effort,
    build::Programs,
    drive::{self, Material},
    peers::Started,
    report::{Figure, Metric, Report},
    server::{self, Server},
    stats::Runs,
};

const KEYS: [(&str, &str); 2] = [("P-384", "p-384"), ("P-256", "p-256")];
/// How many clients at a time.
const WORKERS: &str = "4";
/// Server CPU of the peer is at least this many times ours.
const GOAL: f64 = 1.0;

/// Measures all of it.
pub(crate) fn measure(
    programs: &Programs,
    material: &Material,
    effort: Effort,
    report: &mut Report,
) -> anyhow::Result<()> {
    report.say("\nnew mutual connections of our acceptor, beside HAProxy and stunnel")?;
    for (keys, folder) in KEYS {
        let dir = material.dir.join(folder);
        let pair = Pair {
            name: "connection and HTTP/1.1 request",
            mode: "http",
            keys,
            peer_name: "haproxy",
            ours: ours(&dir, &[]),
            peer: haproxy(&dir),
        };
        pair.measure(programs, &dir, effort, report)?;

        let echo = echo(programs, &dir);
        let backend = match &echo {
            Ok(server) => server.address().to_string(),
            Err(reason) => {
                report.say(&format!("no echo to forward to: {reason}"))?;
                continue;
            }
        };
        let pair = Pair {
            name: "connection and forwarded byte",
            mode: "echo",
            keys,
            peer_name: "stunnel",
            ours: ours(&dir, &["--forward", &backend]),
            peer: stunnel(&dir, &backend),
        };
        pair.measure(programs, &dir, effort, report)?;
    }
    Ok(())
}

/// Ours and a peer that do the same.
struct Pair {
    name: &'static str,
    /// The client's mode.
    mode: &'static str,
    keys: &'static str,
    peer_name: &'static str,
    ours: Started,
    peer: Started,
}

impl Pair {
    fn measure(
        &self,
        programs: &Programs,
        dir: &Path,
        effort: Effort,
        report: &mut Report,
    ) -> anyhow::Result<()> {
        let tls = dir.join("client").display().to_string();
        let args = [
            "bare", "-tls", &tls, "-mode", self.mode, "-workers", WORKERS,
        ]
        .map(str::to_owned);
        let run = |server: &Started| {
            let server = server
                .as_ref()
                .map_err(|reason| anyhow::anyhow!("{reason}"))?;
            drive::run(programs, server, &args, effort)
        };
        let (mut ours, mut peer) = (Runs::default(), Runs::default());
        for _ in 0..effort.rounds {
            ours.add(|| run(&self.ours));
            peer.add(|| run(&self.peer));
        }
        for (metric, of) in [
            (Metric::ServerCpu, (|run| run.cpu) as fn(&drive::Run) -> f64),
            (Metric::Rate, |run| run.rate),
            (Metric::Latency, |run| run.p99),
        ] {
            let figure = Figure {
                name: self.name.to_owned(),
                metric,
                keys: self.keys,
                ours: ours.figure(of),
                peer: peer.figure(of),
                peer_name: self.peer_name,
            };
            report.figure(&figure)?;
            if metric == Metric::ServerCpu {
                let goal = format!(
                    "at most {}'s CPU, {}, {}",
                    self.peer_name, self.name, self.keys
                );
                report.goal(goal, &figure, GOAL);
            }
        }
        Ok(())
    }
}

/// This very program, as a server.
fn ours(dir: &Path, args: &[&str]) -> Started {
    start(dir, "ours", |address| {
        let mut command = Command::new(std::env::current_exe()?);
        command
            .args(["serve", "--address", address])
            .arg("--tls-dir")
            .arg(dir.join("server"))
            .args(args);
        Ok(command)
    })
}

fn haproxy(dir: &Path) -> Started {
    start(dir, "haproxy", |address| {
        let tls = dir.join("server");
        let both = dir.join("haproxy.pem");
        let mut pem = fs::read(tls.join("tls.crt"))?;
        pem.extend(fs::read(tls.join("tls.key"))?);
        write(&both, &pem)?;
        let config = format!(
            "global
    nbthread 2
    tune.ssl.cachesize 0
    ssl-default-bind-options ssl-min-ver TLSv1.3 no-tls-tickets
defaults
    mode http
    timeout client 30s
    timeout server 30s
    timeout connect 5s
frontend bare
    bind {address} ssl crt {} ca-file {} verify required
    http-request return status 200
",
            both.display(),
            tls.join("ca.crt").display(),
        );
        let path = dir.join("haproxy.cfg");
        write(&path, config.as_bytes())?;
        let mut command = Command::new("haproxy");
        command.arg("-f").arg(path);
        Ok(command)
    })
}

fn stunnel(dir: &Path, backend: &str) -> Started {
    start(dir, "stunnel", |address| {
        let tls = dir.join("server").display().to_string();
        let config = format!(
            "foreground = yes
pid =
debug = err
socket = l:TCP_NODELAY=1
socket = r:TCP_NODELAY=1
[bare]
accept = {address}
connect = {backend}
cert = {tls}/tls.crt
key = {tls}/tls.key
CAfile = {tls}/ca.crt
verifyChain = yes
requireCert = yes
sslVersionMin = TLSv1.3
sessionResume = no
"
        );
        let path = dir.join("stunnel.conf");
        write(&path, config.as_bytes())?;
        let mut command = Command::new("stunnel");
        command.arg(path);
        Ok(command)
    })
}

/// What is forwarded to.
fn echo(programs: &Programs, dir: &Path) -> Started {
    start(dir, "echo", |address| {
        let mut command = drive::program(programs)?;
        command.args(["echo", "-address", address]);
        Ok(command)
    })
}

fn start(dir: &Path, name: &str, command: impl FnOnce(&str) -> anyhow::Result<Command>) -> Started {
    let run = || -> anyhow::Result<Server> {
        let address = server::free_address()?;
        let command = command(&address.to_string())?;
        Server::start(command, address, &dir.join(format!("{name}.log")))
    };
    run().map_err(|error| format!("{error:#}"))
}

fn write(path: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    let mut file =
        fs::File::create(path).with_context(|| format!("failed to create {}", path.display()))?;
    Ok(std::io::Write::write_all(&mut file, bytes)?)
}
