//! Ports: the usual one if it is free, else the next free one, and a word about it.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};

use crate::{exit::Stop, output};

/// How far to look.
const TRIES: u16 = 200;

/// A port on the loopback address.
fn loopback(port: u16) -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, port))
}

/// The first free port from `wanted` on.
pub(crate) fn free_from(wanted: u16, what: &str) -> anyhow::Result<SocketAddr> {
    for port in (wanted..).take(TRIES.into()) {
        let address = loopback(port);
        if TcpListener::bind(address).is_ok() {
            if port != wanted {
                output::note(&format!("port {wanted} is taken: {what} uses {port}"));
            }
            return Ok(address);
        }
    }
    Err(Stop::failure(format!(
        "no free port for {what} from {wanted} on"
    )))
}
