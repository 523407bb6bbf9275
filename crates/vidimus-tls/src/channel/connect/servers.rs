//! Several servers and their addresses: which is tried when, and for how long.

use std::future::Future;
use std::io;
use std::net::SocketAddr;

use tokio::net::lookup_host;
use tokio::time::{Instant, timeout_at};

use super::{ConnectError, Step};
use crate::channel::deadline::after;
use crate::channel::target::Target;

/// Looks each server up and tries its addresses, in turn, until one connects or the deadline has passed.
///
/// A server is looked up when it is its turn: a resolver that hangs for one name must not hold up the others. If all fail,
/// the error is of the attempt that came furthest, which tells most.
pub(super) async fn try_each<T, LookUp, Connect>(
    servers: &[(String, u16)],
    deadline: Instant,
    look_up: impl Fn(String, u16) -> LookUp,
    connect: impl Fn(SocketAddr, Instant) -> Connect,
) -> Result<T, ConnectError>
where
    LookUp: Future<Output = io::Result<Vec<SocketAddr>>>,
    Connect: Future<Output = Result<T, ConnectError>>,
{
    let mut worst: Option<ConnectError> = None;
    let mut keep = |error: ConnectError| match &worst {
        Some(before) if before.step() > error.step() => {}
        _ => worst = Some(error),
    };
    for (tried, (host, port)) in servers.iter().enumerate() {
        let deadline = share(deadline, servers.len().saturating_sub(tried));
        let addresses = match resolve(host, look_up(host.clone(), *port), deadline).await {
            Ok(addresses) => addresses,
            Err(error) => {
                keep(error);
                continue;
            }
        };
        for (tried, address) in addresses.iter().enumerate() {
            let deadline = share(deadline, addresses.len().saturating_sub(tried));
            match connect(*address, deadline).await {
                Ok(connected) => return Ok(connected),
                Err(error) => keep(error),
            }
        }
    }
    Err(worst.unwrap_or_else(|| ConnectError::NoAddress {
        host: Target::Tcp(servers.to_vec()).to_string(),
    }))
}

/// What the system's resolver says.
pub(super) async fn look_up(host: String, port: u16) -> io::Result<Vec<SocketAddr>> {
    Ok(lookup_host((host.as_str(), port)).await?.collect())
}

/// Until when the next one of `left` may go on: one that never answers must leave time for those after it.
fn share(deadline: Instant, left: usize) -> Instant {
    let remaining = deadline.saturating_duration_since(Instant::now());
    let left = u32::try_from(left).unwrap_or(u32::MAX);
    after(remaining.checked_div(left).unwrap_or(remaining))
}

async fn resolve(
    host: &str,
    look_up: impl Future<Output = io::Result<Vec<SocketAddr>>>,
    deadline: Instant,
) -> Result<Vec<SocketAddr>, ConnectError> {
    let started = Instant::now();
    let found = timeout_at(deadline, look_up)
        .await
        .map_err(|_elapsed| ConnectError::TimedOut {
            address: host.to_owned(),
            step: Step::Resolve,
            after: deadline.saturating_duration_since(started),
        })?
        .map_err(|source| ConnectError::Resolve {
            host: host.to_owned(),
            source,
        })?;
    if found.is_empty() {
        let host = host.to_owned();
        return Err(ConnectError::NoAddress { host });
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const WHOLE: Duration = Duration::from_secs(12);

    fn servers(hosts: &[&str]) -> Vec<(String, u16)> {
        hosts.iter().map(|host| ((*host).to_owned(), 1)).collect()
    }

    fn address(last: u8) -> SocketAddr {
        ([192, 0, 2, last], 1).into()
    }

    /// `hangs` is never found, `two` has two addresses of which none answers, and `good` connects.
    async fn run(hosts: &[&str]) -> (Result<SocketAddr, ConnectError>, Duration) {
        let found = async |host: String, _port| match host.as_str() {
            "hangs" => std::future::pending().await,
            "two" => Ok(vec![address(1), address(2)]),
            "good" => Ok(vec![address(3)]),
            _ => Err(io::ErrorKind::NotFound.into()),
        };
        let connect = async |to: SocketAddr, deadline| {
            if to == address(3) {
                return Ok(to);
            }
            tokio::time::sleep_until(deadline).await;
            Err(ConnectError::TimedOut {
                address: to.to_string(),
                step: Step::Connect,
                after: Duration::ZERO,
            })
        };
        let started = Instant::now();
        let outcome = try_each(&servers(hosts), after(WHOLE), found, connect).await;
        (outcome, started.elapsed())
    }

    #[tokio::test(start_paused = true)]
    async fn a_name_that_cannot_be_looked_up_leaves_time_for_the_other_servers() {
        for (hosts, waited) in [
            (&["hangs", "good"][..], WHOLE / 2),
            (&["hangs", "hangs", "good"], WHOLE * 2 / 3),
            (&["two", "good"], WHOLE / 2),
            (&["unknown", "good"], Duration::ZERO),
            // The first that connects is taken: what comes after it is not even looked up.
            (&["good", "hangs"], Duration::ZERO),
        ] {
            let (outcome, after) = run(hosts).await;
            assert_eq!(outcome.expect("connected"), address(3), "{hosts:?}");
            assert!(after.abs_diff(waited) < WHOLE / 100, "{hosts:?}: {after:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn without_a_server_the_furthest_attempt_is_told_and_the_deadline_holds() {
        let (outcome, after) = run(&["two", "hangs", "unknown"]).await;
        let error = outcome.expect_err("nobody is there");
        assert_eq!(error.step(), Step::Connect, "{error}");
        assert!(after <= WHOLE + WHOLE / 100, "{after:?}");
        let (outcome, _) = run(&["hangs"]).await;
        let error = outcome.expect_err("nobody is there");
        assert!(
            error.to_string().starts_with("hangs: could not look up"),
            "{error}"
        );
    }
}
