//! The PROXY protocol, version 2: a proxy in front of the listener says whose connection it passes on.
//!
//! Version 2 alone, from listed networks alone, and from those always: whoever may send the header can claim any address,
//! and a connection that came round the proxy must not look as if it had come through it. What is read is what the
//! protocol's text calls "The PROXY protocol Versions 1 & 2", section 2.2.

pub(crate) mod header;
mod networks;

use tokio::time::{Instant, timeout_at};

pub(crate) use header::HeaderError;
pub use networks::{ProxyNetworks, ProxyNetworksError};

use self::header::Claim;
use super::Arrival;
use crate::server::failure::Cause;
use crate::server::pending::Waiter;

/// Reads the header of a connection that came from a proxy, which says whose it is. From then on it counts as that
/// client's, wherever sources are counted or named.
pub(in crate::server) async fn identify(
    arrival: &mut Arrival,
    waiter: &Waiter,
    deadline: Instant,
) -> Result<(), Cause> {
    let claim = tokio::select! {
        read = timeout_at(deadline, header::read(&mut arrival.socket)) => match read {
            Ok(read) => read.map_err(Cause::Proxy)?,
            Err(_) => return Err(Cause::Timeout),
        },
        () = waiter.displaced() => return Err(Cause::Displaced),
    };
    if let Claim::Client(address) = claim {
        tracing::debug!(proxy = ?arrival.address, client = %address, "a proxy passes a client's connection on");
        arrival.address = Some(address);
    }
    if let Some(address) = arrival.address {
        waiter.belongs_to(address.ip());
    }
    Ok(())
}

/// The PROXY protocol belongs to TCP listeners.
#[derive(Debug, thiserror::Error)]
#[error("the PROXY protocol is for TCP listeners, and this one is a UNIX socket")]
pub struct ProxyOverUnix(pub(super) ());
