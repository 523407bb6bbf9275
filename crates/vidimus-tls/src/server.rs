//! Accepting, serving and draining connections, and knowing each of them.
//!
//! Each connection is accepted with the material of that moment, served by hyper on its own, and registered with its
//! peer, material generation and trust anchor before its first request. It can be ended alone: a GOAWAY first, so that
//! calls in flight finish, and a hard close at a deadline, since a peer that never answers would be served for ever.
//!
//! ```no_run
//! use tokio_util::sync::CancellationToken;
//! use vidimus_tls::material::{MaterialFiles, Usage};
//! use vidimus_tls::policy::AllowList;
//! use vidimus_tls::runtime::Runtime;
//! use vidimus_tls::server::{Security, Server};
//! use vidimus_tls::watch::WatchOptions;
//!
//! # async fn example(routes: tonic::service::Routes) -> Result<(), Box<dyn std::error::Error>> {
//! let mut runtime = Runtime::new();
//! let files = MaterialFiles::in_dir("/etc/example/tls"); // tls.crt, tls.key, ca.crt
//! let material = runtime.material(files, Usage::Server, WatchOptions::default()).await?;
//! let server = Server::builder(Security::mutual(material))
//!     .allow_list(AllowList::parse("manager.example")?)
//!     .build();
//! let listener = tokio::net::TcpListener::bind("0.0.0.0:9443").await?;
//! let stop = CancellationToken::new(); // cancel it to drain
//! let drained = runtime.run_while(server.serve(listener.into(), routes, stop)).await?;
//! println!("{drained:?}");
//! # Ok(())
//! # }
//! ```

mod accept;
mod backoff;
mod connection;
mod drive;
mod ending;
mod failure;
mod gather;
mod handshake;
mod leash;
mod limits;
mod linger;
mod listener;
mod listening;
mod local;
mod log_limit;
mod overseer;
mod pending;
mod raw;
mod registry;
mod report;
mod service;
mod shrink;
mod socket;
mod stats;
mod verdict;

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{Request, Response};
use hyper::body::Incoming;
use tokio_util::sync::CancellationToken;

pub use accept::{Drained, ServeError};
pub use limits::{ExpiredPeers, Limits};
#[cfg(feature = "systemd")]
pub use listener::SystemdError;
#[cfg(feature = "proxy-protocol")]
pub(crate) use listener::proxy::header as proxy_header;
pub use listener::{AdoptError, BindUnixError, Listener, UnixOptions, UnixSocket, UnixSocketName};
#[cfg(feature = "proxy-protocol")]
pub use listener::{ProxyNetworks, ProxyNetworksError, ProxyOverUnix};
pub use local::LocalPeers;
pub use raw::{Connection, Stream};
pub use registry::{ConnectionId, ConnectionInfo};
pub use service::RemoteAddr;
pub use stats::ServerStats;

use crate::clock::Clock;
use crate::config::{ClientAuth, Protocols};
use crate::events::{DrainCause, Events};
use crate::identity::Fingerprint;
use crate::peers::{Peers, Without};
use crate::policy::{AllowList, PolicyWatch};
use crate::posture::ExplicitOptOut;
use crate::watch::MaterialWatch;

use drive::Http;
use raw::Raw;

type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// How a server's connections are protected, with what that needs.
#[derive(Clone, Debug)]
pub enum Security {
    /// Mutual TLS.
    Mutual {
        /// The server's certificate and the roots of its clients.
        material: MaterialWatch,
        /// How client certificates are decided about.
        clients: ClientAuth,
    },
    /// Nothing, because the operator said so. No policy applies: there is nobody to apply it to.
    Plaintext(ExplicitOptOut),
    /// A UNIX socket and the kernel's word about who is at its other end.
    Local(LocalPeers),
}

impl Security {
    /// Mutual TLS with clients under the material's roots.
    #[must_use]
    pub fn mutual(material: MaterialWatch) -> Self {
        Self::Mutual {
            material,
            clients: ClientAuth::Roots,
        }
    }

    /// `mutual`, `plaintext` or `local`.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Mutual { .. } => "mutual",
            Self::Plaintext(_) => "plaintext",
            Self::Local(_) => "local",
        }
    }
}

/// A server. Clones share connections and counters.
#[derive(Clone, Debug)]
pub struct Server(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    security: Security,
    policy: PolicyWatch,
    limits: Limits,
    protocols: Protocols,
    clock: Clock,
    events: Events,
    registry: registry::Registry,
    counters: stats::Counters,
    refusal_log: log_limit::LogLimit,
}

/// Puts a [`Server`] together.
#[derive(Debug)]
pub struct ServerBuilder {
    security: Security,
    policy: PolicyWatch,
    limits: Limits,
    protocols: Protocols,
    clock: Clock,
    events: Events,
}

impl ServerBuilder {
    /// Lets only these peers call: the short form of [`Self::policy`].
    #[must_use]
    pub fn allow_list(self, list: AllowList) -> Self {
        self.policy(PolicyWatch::fixed(list))
    }

    /// Who may call what, now and later. Applies to mutual TLS and, with `uid:` and `gid:` entries or rules per method, to
    /// UNIX sockets, on top of [`LocalPeers`]. Without it every verified peer may call everything.
    #[must_use]
    pub fn policy(mut self, policy: PolicyWatch) -> Self {
        self.policy = policy;
        self
    }

    /// Bounds and time-outs other than the default ones.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// What the listeners speak: HTTP/2 alone by default.
    #[must_use]
    pub fn protocols(mut self, protocols: Protocols) -> Self {
        self.protocols = protocols;
        self
    }

    /// The clock that certificates' dates are judged by.
    #[must_use]
    pub fn clock(mut self, clock: Clock) -> Self {
        self.clock = clock;
        self
    }

    /// Where to report what happens to connections and calls.
    #[must_use]
    pub fn events(mut self, events: Events) -> Self {
        self.events = events;
        self
    }

    /// The server.
    #[must_use]
    pub fn build(self) -> Server {
        let policy = self.policy.current();
        if matches!(self.security, Security::Plaintext(_)) && policy.restricts() {
            tracing::warn!(
                audit = true,
                "a policy is set and NOT applied: in plaintext there is nobody to apply it to"
            );
        }
        Server(Arc::new(Inner {
            security: self.security,
            policy: self.policy,
            limits: self.limits,
            protocols: self.protocols,
            clock: self.clock,
            events: self.events,
            registry: registry::Registry::default(),
            counters: stats::Counters::default(),
            refusal_log: log_limit::LogLimit::default(),
        }))
    }
}

impl Server {
    /// A server with these protections and default limits.
    #[must_use]
    pub fn builder(security: Security) -> ServerBuilder {
        ServerBuilder {
            security,
            policy: PolicyWatch::default(),
            limits: Limits::default(),
            protocols: Protocols::default(),
            clock: Clock::system(),
            events: Events::default(),
        }
    }

    /// Serves `service` on `listener` until `shutdown`, then drains: the listener closes, every connection gets a GOAWAY,
    /// and what is left after [`Limits::drain_timeout`] is closed hard.
    ///
    /// `service` is a tonic `Routes`, an axum `Router` or any service of that shape. The peer's
    /// [`crate::identity::PeerIdentity`] is in the extensions of each request.
    ///
    /// # Errors
    ///
    /// [`ServeError`] if the listener cannot be used with this server's security, the server has
    /// [no protocol](Protocols::None), or the system no thread for it. Accepting goes on after errors of
    /// single connections and of a process that has run out of file descriptors.
    pub async fn serve<S, B>(
        &self,
        listener: Listener,
        service: S,
        shutdown: CancellationToken,
    ) -> Result<Drained, ServeError>
    where
        S: tower::Service<Request<Incoming>, Response = Response<B>> + Clone + Send + 'static,
        S::Future: Send,
        S::Error: Into<BoxError>,
        B: http_body::Body<Data = Bytes> + Default + Send + 'static,
        B::Error: Into<BoxError>,
    {
        if self.0.protocols == Protocols::None {
            return Err(ServeError::NoProtocol);
        }
        accept::serve(Arc::clone(&self.0), listener, Http(service), shutdown).await
    }

    /// Hands each connection over as a stream once its peer is known, until `shutdown`, and then drains: for servers whose
    /// protocol is not HTTP, or that serve HTTP themselves.
    ///
    /// The connection is registered and ended like any other: when it has to end, [`Connection::ending`] says so, and at
    /// the deadline the peer gets a `close_notify` and the stream is closed, wherever it is by then. It lasts until
    /// `handler` has returned and the stream has been dropped. The allow-list is about calls, which a stream doesn't have:
    /// a peer that is not on it is closed at once.
    ///
    /// # Errors
    ///
    /// [`ServeError`] if the listener cannot be used with this server's security, or the system has no thread for it.
    pub async fn serve_raw<H, F>(
        &self,
        listener: Listener,
        handler: H,
        shutdown: CancellationToken,
    ) -> Result<Drained, ServeError>
    where
        H: Fn(Connection) -> F + Clone + Send + Sync + 'static,
        F: Future<Output = ()> + Send,
    {
        accept::serve(Arc::clone(&self.0), listener, Raw(handler), shutdown).await
    }

    /// The connections that are being served.
    #[must_use]
    pub fn connections(&self) -> Vec<ConnectionInfo> {
        self.0.registry.list()
    }

    /// The connections by root and generation and one by one, and with `without` which of them need that root.
    ///
    /// Judges every connection under that root again, which takes a moment where there are thousands of them: not for a
    /// thread that must not block.
    #[must_use]
    pub fn peers(&self, without: Option<Fingerprint>) -> Peers {
        let material = match &self.0.security {
            Security::Mutual { material, .. } => Some(material.current()),
            Security::Plaintext(_) | Security::Local(_) => None,
        };
        let without = without.map(|root| {
            let material = material.as_deref();
            Without {
                root,
                known: material.is_some_and(|material| material.trust().find(root).is_some()),
                needed_by: material
                    .map(|material| shrink::needing(&self.0, material, root))
                    .unwrap_or_default(),
            }
        });
        Peers::new(
            self.0.clock.now(),
            material.as_deref(),
            self.connections(),
            without,
        )
    }

    /// The counters of this moment.
    #[must_use]
    pub fn stats(&self) -> ServerStats {
        self.0.counters.snapshot(self.0.registry.len())
    }

    /// Who may call what.
    #[must_use]
    pub fn policy(&self) -> &PolicyWatch {
        &self.0.policy
    }

    /// How connections are protected.
    #[must_use]
    pub fn security(&self) -> &Security {
        &self.0.security
    }

    /// Ends the connections that `predicate` picks: GOAWAY now, a hard close after `grace`. Returns how many.
    pub fn close_where(
        &self,
        predicate: impl Fn(&ConnectionInfo) -> bool,
        grace: Duration,
    ) -> usize {
        let deadline = Instant::now().checked_add(grace);
        let entries = self.0.registry.entries();
        let chosen = entries.iter().filter(|entry| predicate(&entry.info()));
        chosen
            .map(|entry| self.0.drain(entry, DrainCause::Asked, deadline))
            .count()
    }
}
