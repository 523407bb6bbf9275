//! One attempt to connect: socket, TLS, HTTP/2, and the server's first byte.

use std::future::{Future as _, poll_fn};
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use hyper::client::conn::http2;
use hyper_util::rt::TokioIo;
use tokio::net::{UnixStream, lookup_host};
use tokio::time::{Instant, timeout_at};
use tokio_rustls::TlsConnector;

use super::builder::{Config, Protection};
use super::connection::Peer;
use super::deadline::after;
use super::dispatch::Dispatch;
use super::driver::Driver;
use super::socket;
use super::target::Target;
use super::wire::{ByteStream, Wire, WireError, WireState};
use crate::config::{ALPN_H2, ClientCertificate, ServerVerification, client_config};
use crate::material::Material;
use crate::verify::Refusal;

/// What an attempt to connect was doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Step {
    /// Looking up the host's addresses.
    Resolve,
    /// Opening the socket.
    Connect,
    /// The TLS handshake.
    Handshake,
    /// Waiting for the server's first byte, which says that it has accepted our certificate.
    FirstByte,
}

impl Step {
    fn text(self) -> &'static str {
        match self {
            Self::Resolve => "look up the host",
            Self::Connect => "open the socket",
            Self::Handshake => "finish the TLS handshake",
            Self::FirstByte => "hear the server's first byte",
        }
    }
}

/// Why a connection did not come about.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// The server accepted TLS but not HTTP/2.
    #[error("{address}: server did not choose ALPN h2")]
    Alpn {
        /// The server's address.
        address: String,
    },
    /// The channel was closed.
    #[error("the channel was closed")]
    Closed,
    /// rustls will not have the configuration.
    #[error("cannot configure TLS")]
    Configure(#[source] rustls::Error),
    /// The socket could not be opened.
    #[error("{address}: cannot open the socket")]
    Connect {
        /// The server's address.
        address: String,
        /// What the system says.
        source: io::Error,
    },
    /// The TLS handshake failed.
    #[error("{address}: TLS handshake failed")]
    Handshake {
        /// The server's address.
        address: String,
        /// What was wrong, or the alert that the server sent.
        source: io::Error,
    },
    /// The connection cannot carry HTTP/2.
    #[error("{address}: cannot start HTTP/2")]
    Http2 {
        /// The server's address.
        address: String,
        /// hyper's reason.
        source: hyper::Error,
    },
    /// The host has no address.
    #[error("{host}: no address")]
    NoAddress {
        /// The host.
        host: String,
    },
    /// The server ended the connection instead of accepting it, usually because of our certificate.
    #[error("{address}: server refused the connection")]
    Refused {
        /// The server's address.
        address: String,
        /// How the connection ended; a TLS alert by its name. `None` if it was closed without a word.
        source: Option<ServerRefusal>,
    },
    /// The host's addresses cannot be looked up.
    #[error("{host}: cannot look up its addresses")]
    Resolve {
        /// The host.
        host: String,
        /// What the resolver says.
        source: io::Error,
    },
    /// The server's certificate was refused by us.
    #[error("{address}: certificate of the server refused")]
    ServerCertificate {
        /// The server's address.
        address: String,
        /// Why.
        source: Refusal,
    },
    /// It took too long.
    #[error("{address}: could not {} within {after:?}", step.text())]
    TimedOut {
        /// The server's address.
        address: String,
        /// What was going on.
        step: Step,
        /// The time this address had.
        after: Duration,
    },
}

/// How a server ended a connection that it did not accept.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct ServerRefusal(WireError);

impl ConnectError {
    /// How far the attempt came. Of several addresses, the one that came furthest tells most.
    fn step(&self) -> Step {
        match self {
            Self::Closed | Self::Configure(_) | Self::NoAddress { .. } | Self::Resolve { .. } => {
                Step::Resolve
            }
            Self::Connect { .. } => Step::Connect,
            Self::Alpn { .. } | Self::Handshake { .. } | Self::ServerCertificate { .. } => {
                Step::Handshake
            }
            Self::Http2 { .. } | Self::Refused { .. } => Step::FirstByte,
            Self::TimedOut { step, .. } => *step,
        }
    }
}

/// A connection that the server has accepted. Somebody must run the driver.
pub(super) struct Connected {
    pub(super) dispatch: Dispatch,
    pub(super) driver: Driver,
    pub(super) wire: Arc<WireState>,
    pub(super) peer: Peer,
}

/// Tries every address in turn, within the connect timeout.
pub(super) async fn connect(config: &Config) -> Result<Connected, ConnectError> {
    let deadline = after(config.connect_timeout);
    match &config.target {
        Target::Unix(path) => {
            let attempt = Attempt::new(config, format!("unix:{}", path.display()), deadline);
            attempt.run(Dial::Unix(path.clone())).await
        }
        Target::Tcp(servers) => connect_tcp(config, servers, deadline).await,
    }
}

async fn connect_tcp(
    config: &Config,
    servers: &[(String, u16)],
    deadline: Instant,
) -> Result<Connected, ConnectError> {
    let mut worst: Option<ConnectError> = None;
    let mut keep = |error: ConnectError| match &worst {
        Some(before) if before.step() > error.step() => {}
        _ => worst = Some(error),
    };
    let mut addresses = Vec::new();
    for (host, port) in servers {
        match resolve(host, *port, deadline, config.connect_timeout).await {
            Ok(found) => addresses.extend(found),
            Err(error) => keep(error),
        }
    }
    let mut left = u32::try_from(addresses.len()).unwrap_or(u32::MAX);
    for address in addresses {
        // An address that never answers must leave time for the next one.
        let remaining = deadline.saturating_duration_since(Instant::now());
        let share = remaining.checked_div(left).unwrap_or(remaining);
        left = left.saturating_sub(1);
        let attempt = Attempt::new(config, address.to_string(), after(share));
        match attempt.run(Dial::Tcp(address)).await {
            Ok(connected) => return Ok(connected),
            Err(error) => keep(error),
        }
    }
    Err(worst.unwrap_or(ConnectError::NoAddress {
        host: config.target.to_string(),
    }))
}

async fn resolve(
    host: &str,
    port: u16,
    deadline: Instant,
    whole: Duration,
) -> Result<Vec<SocketAddr>, ConnectError> {
    let looked_up = timeout_at(deadline, lookup_host((host, port))).await;
    let address = || host.to_owned();
    let found: Vec<SocketAddr> = looked_up
        .map_err(|_elapsed| ConnectError::TimedOut {
            address: address(),
            step: Step::Resolve,
            after: whole,
        })?
        .map_err(|source| ConnectError::Resolve {
            host: address(),
            source,
        })?
        .collect();
    if found.is_empty() {
        Err(ConnectError::NoAddress { host: address() })
    } else {
        Ok(found)
    }
}

enum Dial {
    Tcp(SocketAddr),
    Unix(PathBuf),
}

/// An attempt on one address.
struct Attempt<'a> {
    config: &'a Config,
    address: String,
    started: Instant,
    deadline: Instant,
}

/// A byte stream with what is known about its other end.
struct Secured {
    io: Box<dyn ByteStream>,
    peer: Peer,
}

impl<'a> Attempt<'a> {
    fn new(config: &'a Config, address: String, deadline: Instant) -> Self {
        Self {
            config,
            address,
            started: Instant::now(),
            deadline,
        }
    }

    async fn run(self, dial: Dial) -> Result<Connected, ConnectError> {
        let mut step = Step::Connect;
        match timeout_at(self.deadline, self.steps(dial, &mut step)).await {
            Ok(outcome) => outcome,
            Err(_elapsed) => Err(ConnectError::TimedOut {
                step,
                after: self.deadline.saturating_duration_since(self.started),
                address: self.address,
            }),
        }
    }

    async fn steps(&self, dial: Dial, step: &mut Step) -> Result<Connected, ConnectError> {
        let failed = |source| ConnectError::Connect {
            address: self.address.clone(),
            source,
        };
        let secured = match dial {
            Dial::Tcp(address) => {
                let socket = socket::connect(address).await.map_err(failed)?;
                *step = Step::Handshake;
                self.secure(socket).await?
            }
            Dial::Unix(path) => {
                let socket = UnixStream::connect(path).await.map_err(failed)?;
                *step = Step::Handshake;
                self.secure(socket).await?
            }
        };
        *step = Step::FirstByte;
        self.speak(secured).await
    }

    async fn secure(&self, socket: impl ByteStream + 'static) -> Result<Secured, ConnectError> {
        match &self.config.protection {
            Protection::None => Ok(Secured {
                io: Box::new(socket),
                peer: Peer::unverified(self.address.clone()),
            }),
            Protection::Tls {
                watch,
                verification,
                certificate,
            } => {
                let material = watch.current();
                self.handshake(socket, &material, *verification, *certificate)
                    .await
            }
        }
    }

    async fn handshake(
        &self,
        socket: impl ByteStream + 'static,
        material: &Material,
        verification: ServerVerification,
        certificate: ClientCertificate,
    ) -> Result<Secured, ConnectError> {
        let address = || self.address.clone();
        let handshake = client_config(material, verification, certificate, &self.config.clock)
            .map_err(ConnectError::Configure)?;
        let connector = TlsConnector::from(Arc::clone(&handshake.config));
        let connecting = connector.connect(self.config.server_name.clone(), socket);
        let io = connecting
            .await
            .map_err(|source| match handshake.slot.refusal() {
                Some(refusal) => ConnectError::ServerCertificate {
                    address: address(),
                    source: refusal.clone(),
                },
                None => ConnectError::Handshake {
                    address: address(),
                    source,
                },
            })?;
        let (_, session) = io.get_ref();
        if session.alpn_protocol() != Some(ALPN_H2) {
            return Err(ConnectError::Alpn { address: address() });
        }
        let Some(chain) = handshake.slot.accepted() else {
            let source = io::Error::other("the verifier left no result");
            return Err(ConnectError::Handshake {
                address: address(),
                source,
            });
        };
        let peer = Peer::verified(self.address.clone(), material, certificate, chain);
        if let ServerVerification::Insecure(_) = verification {
            tracing::warn!(
                target = %self.config.target,
                address = self.address,
                subject = chain.identity().subject(),
                fingerprint = %chain.identity().fingerprint(),
                "connected without verifying the server: whoever answered is believed"
            );
        }
        Ok(Secured {
            io: Box::new(io),
            peer,
        })
    }

    /// Sends the preface, and runs the connection until the server's first byte or its end.
    async fn speak(&self, secured: Secured) -> Result<Connected, ConnectError> {
        let address = || self.address.clone();
        let (wire, state) = Wire::new(secured.io);
        let mut driver = Driver::default();
        let handshake = http2::Builder::new(driver.executor())
            .handshake(TokioIo::new(wire))
            .await;
        let (sender, connection) = match (handshake, state.error()) {
            (Ok(pair), _) => pair,
            (Err(_), Some(error)) => {
                return Err(ConnectError::Refused {
                    address: address(),
                    source: Some(ServerRefusal(error)),
                });
            }
            (Err(source), None) => {
                return Err(ConnectError::Http2 {
                    address: address(),
                    source,
                });
            }
        };
        let dispatch = Dispatch::new(sender);
        let closer = dispatch.closer();
        driver.add(async move {
            if let Err(error) = connection.await {
                tracing::debug!(error = %error, "connection ended");
            }
            closer.close();
        });
        let accepted = poll_fn(|cx| {
            let ended = Pin::new(&mut driver).poll(cx).is_ready();
            if ended {
                Poll::Ready(false)
            } else if state.heard() {
                Poll::Ready(true)
            } else {
                Poll::Pending
            }
        });
        if accepted.await {
            Ok(Connected {
                dispatch,
                driver,
                wire: state,
                peer: secured.peer,
            })
        } else {
            Err(ConnectError::Refused {
                address: address(),
                source: state.error().map(ServerRefusal),
            })
        }
    }
}
