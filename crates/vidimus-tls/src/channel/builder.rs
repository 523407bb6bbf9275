//! Putting a channel together.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use http::uri::{Authority, Scheme};
use rustls_pki_types::ServerName;
use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;

use super::core::Core;
use super::target::{Target, TargetError};
use super::{Channel, ClientTls};
use crate::clock::Clock;
use crate::config::{ClientCertificate, ServerVerification};
use crate::events::Events;
use crate::server::ExpiredPeers;
use crate::watch::MaterialWatch;

/// No timer ticks faster than this, whatever a setting says.
const SHORTEST_TICK: Duration = Duration::from_millis(1);

/// What calls do while there is no connection and the last attempt failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Waiting {
    /// Fail at once.
    FailFast,
    /// Wait for a connection until their deadline.
    WaitForReady,
}

/// How connections are protected.
#[derive(Clone, Debug)]
pub(super) enum Protection {
    None,
    Tls {
        watch: MaterialWatch,
        verification: ServerVerification,
        certificate: ClientCertificate,
    },
}

/// Everything about a channel that doesn't change.
#[derive(Clone, Debug)]
pub(super) struct Config {
    pub(super) target: Target,
    pub(super) server_name: ServerName<'static>,
    pub(super) scheme: Scheme,
    pub(super) authority: Authority,
    pub(super) protection: Protection,
    pub(super) connect_timeout: Duration,
    pub(super) resend_limit: usize,
    pub(super) waiting: Waiting,
    pub(super) backoff: (Duration, Duration),
    pub(super) rotation_jitter: Duration,
    pub(super) max_connections: usize,
    pub(super) surplus_idle: Duration,
    pub(super) withdrawal_grace: Duration,
    pub(super) expired_servers: ExpiredPeers,
    pub(super) expiry_interval: Duration,
    pub(super) expiry_grace: Duration,
    pub(super) clock: Clock,
    pub(super) events: Events,
}

/// A channel that cannot be built.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// There is no runtime for the background work.
    #[error("a channel must be built inside a tokio runtime")]
    NoRuntime,
    /// The protection doesn't fit the target.
    #[error("{protection} does not fit target {target}; accepted: {accepted}")]
    Protection {
        /// The protection asked for.
        protection: &'static str,
        /// The target.
        target: String,
        /// What would fit.
        accepted: &'static str,
    },
    /// Not a name that a certificate can be for.
    #[error("server name {found:?} is neither a DNS name nor an IP address")]
    ServerName {
        /// What was given.
        found: String,
    },
    /// Not a target.
    #[error(transparent)]
    Target(#[from] TargetError),
}

/// Makes a [`Channel`]. Every setting has a default.
#[derive(Clone, Debug)]
#[must_use]
pub struct ChannelBuilder {
    target: String,
    server_name: String,
    tls: ClientTls,
    connect_timeout: Duration,
    resend_limit: usize,
    waiting: Waiting,
    backoff: (Duration, Duration),
    rotation_jitter: Duration,
    max_connections: usize,
    surplus_idle: Duration,
    withdrawal_grace: Duration,
    expired_servers: ExpiredPeers,
    expiry_interval: Duration,
    expiry_grace: Duration,
    clock: Clock,
    events: Events,
}

impl ChannelBuilder {
    pub(super) fn new(target: &str, server_name: &str, tls: ClientTls) -> Self {
        Self {
            target: target.to_owned(),
            server_name: server_name.to_owned(),
            tls,
            connect_timeout: Duration::from_secs(10),
            resend_limit: 4 * 1024 * 1024,
            waiting: Waiting::FailFast,
            backoff: (Duration::from_secs(1), Duration::from_secs(120)),
            rotation_jitter: Duration::from_millis(250),
            max_connections: 8,
            surplus_idle: Duration::from_secs(30),
            withdrawal_grace: Duration::from_secs(4),
            expired_servers: ExpiredPeers::Drain,
            expiry_interval: Duration::from_secs(5),
            expiry_grace: Duration::from_secs(35 * 60),
            clock: Clock::system(),
            events: Events::default(),
        }
    }

    /// How long an attempt to connect may take, from the look-up of the host to the server's first byte, together with
    /// those that follow it at once because the server hung up. Default 10 s.
    pub fn connect_timeout(mut self, timeout: Duration) -> Self {
        self.connect_timeout = timeout;
        self
    }

    /// How many bytes of a request are kept to send it again. Default 4 MiB.
    pub fn resend_limit(mut self, bytes: usize) -> Self {
        self.resend_limit = bytes;
        self
    }

    /// Lets calls wait for a connection until their deadline. Without a deadline they wait for ever. Where the
    /// channel's [`Runtime`](crate::runtime::Runtime) does not run, they fail after the connect timeout all the same.
    ///
    /// By default they wait for an attempt that is under way, and fail with its reason.
    pub fn wait_for_ready(mut self) -> Self {
        self.waiting = Waiting::WaitForReady;
        self
    }

    /// The shortest and the longest wait between failed attempts to connect. Default 1 s and 120 s. A connection
    /// younger than the shortest is not left because it refuses calls.
    pub fn backoff(mut self, initial: Duration, max: Duration) -> Self {
        self.backoff = (initial, max);
        self
    }

    /// New material is used for a new connection within this time, at random, so that a fleet doesn't reconnect at once.
    /// Default 250 ms.
    pub fn rotation_jitter(mut self, jitter: Duration) -> Self {
        self.rotation_jitter = jitter;
        self
    }

    /// How many connections new calls may be spread over when the server limits the calls on each. Default 8.
    ///
    /// Beyond that, calls wait for one of the others to end. Connections that only finish their calls don't count.
    pub fn max_connections(mut self, connections: usize) -> Self {
        self.max_connections = connections;
        self
    }

    /// After how long without a call a connection is closed that is not the only one. Default 30 s, and up to twice that.
    pub fn surplus_idle(mut self, idle: Duration) -> Self {
        self.surplus_idle = idle;
        self
    }

    /// How long calls may go on that run on a connection whose server is no longer trusted. Default 4 s.
    pub fn withdrawal_grace(mut self, grace: Duration) -> Self {
        self.withdrawal_grace = grace;
        self
    }

    /// What becomes of a connection whose server's certificate, or one above it, expires while it is open. By default it
    /// gets no more calls, and those that run may go on for [`Self::expiry_grace`].
    pub fn expired_servers(mut self, rule: ExpiredPeers) -> Self {
        self.expired_servers = rule;
        self
    }

    /// How often open connections are looked at for expired certificates. Default 5 s.
    pub fn expiry_interval(mut self, interval: Duration) -> Self {
        self.expiry_interval = interval;
        self
    }

    /// How long calls may go on after the server's certificate has expired. Default 35 minutes.
    pub fn expiry_grace(mut self, grace: Duration) -> Self {
        self.expiry_grace = grace;
        self
    }

    /// The clock that certificates' dates are judged by.
    pub fn clock(mut self, clock: Clock) -> Self {
        self.clock = clock;
        self
    }

    /// Where to report new connections, refused ones, and those whose server is no longer trusted.
    pub fn events(mut self, events: Events) -> Self {
        self.events = events;
        self
    }

    /// Makes a channel whose background work is a task of the tokio runtime that this is called in.
    /// [`Runtime::channel`](crate::runtime::Runtime::channel) makes one whose work the caller runs.
    ///
    /// It connects when the first call or [`Channel::ready`] needs it to.
    ///
    /// # Errors
    ///
    /// When target, server name and protection don't go together, and outside a tokio runtime.
    pub fn build(self) -> Result<Channel, BuildError> {
        let runtime = Handle::try_current().map_err(|_outside| BuildError::NoRuntime)?;
        let core = Core::spawned(self.config()?, &runtime);
        Ok(Channel {
            core: Arc::new(core),
        })
    }

    /// The same with the background work for somebody else to run until `stop`.
    pub(crate) fn build_driven(
        self,
        stop: CancellationToken,
    ) -> Result<(Channel, impl Future<Output = ()> + Send + 'static), BuildError> {
        let (core, work) = Core::driven(self.config()?, stop);
        let channel = Channel {
            core: Arc::new(core),
        };
        Ok((channel, work))
    }

    fn config(self) -> Result<Config, BuildError> {
        let target = Target::parse(&self.target)?;
        let protection = protection(self.tls, &target)?;
        let wrong_name = || BuildError::ServerName {
            found: self.server_name.clone(),
        };
        let server_name =
            ServerName::try_from(self.server_name.clone()).map_err(|_invalid| wrong_name())?;
        let scheme = match protection {
            Protection::None => Scheme::HTTP,
            Protection::Tls { .. } => Scheme::HTTPS,
        };
        Ok(Config {
            authority: authority(&self.server_name, &target).ok_or_else(wrong_name)?,
            target,
            server_name,
            scheme,
            protection,
            connect_timeout: self.connect_timeout,
            resend_limit: self.resend_limit,
            waiting: self.waiting,
            backoff: self.backoff,
            rotation_jitter: self.rotation_jitter,
            max_connections: self.max_connections.max(1),
            surplus_idle: self.surplus_idle.max(SHORTEST_TICK),
            withdrawal_grace: self.withdrawal_grace,
            expired_servers: self.expired_servers,
            expiry_interval: self.expiry_interval.max(SHORTEST_TICK),
            expiry_grace: self.expiry_grace,
            clock: self.clock,
            events: self.events,
        })
    }
}

fn protection(tls: ClientTls, target: &Target) -> Result<Protection, BuildError> {
    let misfit = |protection, accepted| BuildError::Protection {
        protection,
        target: target.to_string(),
        accepted,
    };
    match (tls, target) {
        (ClientTls::Watch(watch), _) => Ok(Protection::Tls {
            watch,
            verification: ServerVerification::Roots,
            certificate: ClientCertificate::Presented,
        }),
        (ClientTls::WithoutCertificate(watch), _) => Ok(Protection::Tls {
            watch,
            verification: ServerVerification::Roots,
            certificate: ClientCertificate::Withheld,
        }),
        (ClientTls::Insecure(watch, accept), _) => Ok(Protection::Tls {
            watch,
            verification: ServerVerification::Insecure(accept),
            certificate: ClientCertificate::Presented,
        }),
        (ClientTls::Local, Target::Unix(_)) | (ClientTls::Plaintext, Target::Tcp(_)) => {
            Ok(Protection::None)
        }
        (ClientTls::Local, Target::Tcp(_)) => Err(misfit("ClientTls::Local", "a unix: target")),
        (ClientTls::Plaintext, Target::Unix(_)) => {
            Err(misfit("ClientTls::Plaintext", "ClientTls::Local"))
        }
    }
}

/// The server name with the port that all addresses share, as `:authority`.
fn authority(server_name: &str, target: &Target) -> Option<Authority> {
    let host = if server_name.contains(':') {
        format!("[{server_name}]")
    } else {
        server_name.to_owned()
    };
    let port = match target {
        Target::Unix(_) => None,
        Target::Tcp(addresses) => {
            let mut ports = addresses.iter().map(|(_, port)| *port);
            ports
                .next()
                .filter(|first| ports.all(|port| port == *first) && *first != 443)
        }
    };
    match port {
        Some(port) => format!("{host}:{port}").parse().ok(),
        None => host.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_are_the_documented_ones() {
        let builder = ChannelBuilder::new("a:1", "a", ClientTls::Plaintext);
        let seconds = Duration::from_secs;
        assert_eq!(builder.connect_timeout, seconds(10));
        assert_eq!(builder.resend_limit, 4 << 20);
        assert_eq!(builder.waiting, Waiting::FailFast);
        assert_eq!(builder.backoff, (seconds(1), seconds(120)));
        assert_eq!(builder.expired_servers, ExpiredPeers::Drain);
        assert!(builder.withdrawal_grace + seconds(1) <= seconds(5));
        assert_eq!(builder.max_connections, 8);
    }
}
