//! The programs that ours is measured beside, and how each is started.

use std::{path::Path, process::Command};

use crate::{
    build::Programs,
    drive::Material,
    server::{self, Server},
};

/// A peer's running server, or why there is none.
pub(crate) type Started = Result<Server, String>;

/// step-ca with a Badger database, as its `init` sets it up.
pub(crate) fn step(programs: &Programs, material: &Material) -> Started {
    let dir = material.dir.join("step");
    let mut command = Command::new(programs.step.clone()?);
    command.arg(dir.join("ca.json")).env("STEPPATH", &dir);
    start(command, Ok(material.step_address), &dir)
}

/// cfssl with mutual TLS; it stores nothing.
pub(crate) fn cfssl(programs: &Programs, material: &Material) -> Started {
    let dir = material.dir.join("cfssl");
    let address = server::free_address().map_err(|error| format!("{error:#}"))?;
    let mut command = Command::new(programs.cfssl.clone()?);
    command
        .args([
            "serve",
            "-address",
            "127.0.0.1",
            "-port",
            &address.port().to_string(),
        ])
        .arg("-ca")
        .arg(dir.join("ca.crt"))
        .arg("-ca-key")
        .arg(dir.join("ca.key"))
        .arg("-config")
        .arg(dir.join("config.json"))
        .arg("-tls-cert")
        .arg(dir.join("server/tls.crt"))
        .arg("-tls-key")
        .arg(dir.join("server/tls.key"))
        .arg("-mutual-tls-ca")
        .arg(dir.join("ca.crt"));
    start(command, Ok(address), &dir)
}

/// A grpc-go server with the material of one key type.
pub(crate) fn healthserver(programs: &Programs, material: &Path) -> Started {
    let address = server::free_address().map_err(|error| format!("{error:#}"))?;
    let mut command = Command::new(programs.healthserver.clone()?);
    command
        .args(["-address", &address.to_string()])
        .arg("-tls")
        .arg(material.join("server"));
    start(command, Ok(address), material)
}

fn start(command: Command, address: anyhow::Result<std::net::SocketAddr>, dir: &Path) -> Started {
    address
        .and_then(|address| Server::start(command, address, &dir.join("server.log")))
        .map_err(|error| format!("{error:#}"))
}
