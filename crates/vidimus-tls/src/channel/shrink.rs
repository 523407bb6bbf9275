//! What happens to live connections when the roots change, and when a server's certificate expires.
//!
//! A connection lives for days, and what its server was believed by may be gone tomorrow. So every server's chain is judged
//! again when trust changes, along any path: one that no longer holds gets no more calls at once, those that run have a
//! few seconds, and then it is cut. Others never notice.

use std::convert::Infallible;
use std::future;
use std::sync::Arc;
use std::time::SystemTime;

use tokio::time::{MissedTickBehavior, interval};

use super::builder::{Config, Protection};
use super::connection::Connection;
use super::core::Shared;
use super::deadline::after;
use super::status::Counting;
use crate::events::Event;
use crate::material::Trust;
use crate::server::ExpiredPeers;
use crate::verify::{self, Refusal, VerifiedChain};

/// Follows the trust and the clock for as long as the channel lives.
pub(super) async fn follow(shared: &Shared) -> Infallible {
    let Protection::Tls { watch, .. } = &shared.config.protection else {
        return future::pending().await;
    };
    let mut material = watch.subscribe();
    let mut seen = Arc::clone(material.borrow_and_update().trust());
    let mut ticks = interval(shared.config.expiry_interval);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            // The channel holds the watch, so its sender lives.
            Ok(()) = material.changed() => {
                let now = Arc::clone(material.borrow_and_update().trust());
                if !Arc::ptr_eq(&now, &seen) {
                    seen = now;
                    sweep(shared, &seen);
                }
            }
            _now = ticks.tick() => expire(shared),
        }
    }
}

/// Judges every connection again, those that only finish their calls included.
fn sweep(shared: &Shared, trust: &Trust) {
    for connection in shared.pool.live() {
        if connection.is_withdrawn() {
            continue;
        }
        if let Err(refusal) = judge_again(&shared.config, &connection, trust) {
            withdraw(shared, &connection, &refusal);
        }
    }
}

/// Whether the connection's server would be accepted under `trust`.
pub(super) fn judge_again(
    config: &Config,
    connection: &Connection,
    trust: &Trust,
) -> Result<(), Refusal> {
    let Some(chain) = connection.verified() else {
        return Ok(());
    };
    match chain.judge_again(trust, config.clock.now())? {
        Some(anew) => stands(config, connection, anew),
        None => Ok(()),
    }
}

/// Keeps a chain that holds along another path, if the name counts under that, too: its CAs may be constrained to others.
fn stands(config: &Config, connection: &Connection, anew: VerifiedChain) -> Result<(), Refusal> {
    if let Some(end_entity) = anew.presented().first() {
        verify::name(end_entity, anew.identity(), &config.server_name)?;
    }
    connection.stands(anew);
    Ok(())
}

/// Ends a connection whose server is no longer trusted.
fn withdraw(shared: &Shared, connection: &Arc<Connection>, refusal: &Refusal) {
    let reason = format!("the server's certificate is no longer trusted: {refusal}");
    connection.withdraw(reason, after(shared.config.withdrawal_grace));
    Counting::add(&shared.counting.withdrawn);
    tracing::warn!(
        audit = true,
        target = %shared.config.target,
        address = connection.address(),
        error = %refusal,
        "connection ended: its server is no longer trusted"
    );
    let config = &shared.config;
    config
        .events
        .emit(&config.clock, || Event::ChannelWithdrawn {
            target: config.target.to_string(),
            connection: connection.id(),
            remote: connection.address().to_owned(),
            reason: refusal.to_string(),
        });
    replace(shared, connection);
}

/// Ends the connections whose server's chain has expired meanwhile, unless that is to be ignored.
///
/// Judged by a look at the wall clock now and then: one long sleep would miss a clock that is set and a machine that was
/// suspended.
fn expire(shared: &Shared) {
    if shared.config.expired_servers == ExpiredPeers::Ignore {
        return;
    }
    let now = shared.config.clock.now();
    for connection in shared.pool.live() {
        let chain = connection.verified();
        let expired = chain.filter(|chain| now > chain.earliest_not_after());
        if let Some(chain) = expired
            && !connection.is_ending()
            && !holds_otherwise(shared, &connection, &chain, now)
        {
            let reason = "the server's certificate has expired".to_owned();
            connection.end(reason, after(shared.config.expiry_grace));
            Counting::add(&shared.counting.expired);
            tracing::info!(
                audit = true,
                target = %shared.config.target,
                address = connection.address(),
                "connection gets no more calls: its server's certificate has expired"
            );
            let config = &shared.config;
            config.events.emit(&config.clock, || Event::ChannelExpired {
                target: config.target.to_string(),
                connection: connection.id(),
                remote: connection.address().to_owned(),
            });
            replace(shared, &connection);
        }
    }
}

/// Whether a chain, a certificate of whose path has expired, holds along another path.
fn holds_otherwise(
    shared: &Shared,
    connection: &Connection,
    chain: &VerifiedChain,
    now: SystemTime,
) -> bool {
    let Protection::Tls { watch, .. } = &shared.config.protection else {
        return false;
    };
    let anew = chain.judge(watch.current().trust(), now);
    anew.and_then(|anew| stands(&shared.config, connection, anew))
        .is_ok()
}

/// Takes the connection away from new calls, and opens another one if they used it.
fn replace(shared: &Shared, connection: &Arc<Connection>) {
    if shared.pool.retire(connection) {
        shared.demand();
    }
}
