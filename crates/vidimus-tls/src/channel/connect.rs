//! One attempt to connect: socket, TLS, HTTP/2, and the server's first byte.

mod error;
mod servers;

use std::future::{Future as _, poll_fn};
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;

use hyper::client::conn::http2;
use hyper_util::rt::TokioIo;
use tokio::net::UnixStream;
use tokio::time::{Instant, timeout_at};
use tokio_rustls::TlsConnector;
use tracing::Instrument as _;

use super::builder::{Config, Protection};
use super::connection::Peer;
use super::dispatch::Dispatch;
use super::driver::Driver;
use super::slots::{Freed, Slots, UNTOLD};
use super::socket;
use super::target::Target;
use super::wire::{ByteStream, Wire, WireState};
use crate::config::{ALPN_H2, ClientCertificate, ServerVerification, client_config};
use crate::material::{Material, Trust};

pub use self::error::{ConnectError, ServerRefusal, Step};

/// A connection that the server has accepted. Somebody must run the driver.
pub(super) struct Connected {
    pub(super) dispatch: Dispatch,
    pub(super) driver: Driver,
    pub(super) wire: Arc<WireState>,
    pub(super) slots: Arc<Slots>,
    pub(super) peer: Peer,
    /// What the server was believed by; `None` without TLS.
    pub(super) trust: Option<Arc<Trust>>,
}

/// Tries every address in turn until `deadline`.
pub(super) async fn connect(
    config: &Config,
    freed: &Arc<Freed>,
    deadline: Instant,
) -> Result<Connected, ConnectError> {
    match &config.target {
        Target::Unix(path) => {
            let address = format!("unix:{}", path.display());
            let attempt = Attempt::new(config, freed, address, deadline);
            attempt.run(Dial::Unix(path.clone())).await
        }
        Target::Tcp(servers) => {
            let connect = |address: SocketAddr, deadline| {
                let attempt = Attempt::new(config, freed, address.to_string(), deadline);
                attempt.run(Dial::Tcp(address))
            };
            servers::try_each(servers, deadline, servers::look_up, connect).await
        }
    }
}

enum Dial {
    Tcp(SocketAddr),
    Unix(PathBuf),
}

/// An attempt on one address.
struct Attempt<'a> {
    config: &'a Config,
    freed: &'a Arc<Freed>,
    address: String,
    started: Instant,
    deadline: Instant,
}

/// A byte stream with what is known about its other end.
struct Secured {
    io: Box<dyn ByteStream>,
    peer: Peer,
    trust: Option<Arc<Trust>>,
}

impl<'a> Attempt<'a> {
    fn new(config: &'a Config, freed: &'a Arc<Freed>, address: String, deadline: Instant) -> Self {
        Self {
            config,
            freed,
            address,
            started: Instant::now(),
            deadline,
        }
    }

    async fn run(self, dial: Dial) -> Result<Connected, ConnectError> {
        let span = tracing::debug_span!(
            "channel_connect",
            target = %self.config.target,
            address = self.address,
        );
        let mut step = Step::Connect;
        let steps = self.steps(dial, &mut step).instrument(span);
        match timeout_at(self.deadline, steps).await {
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
                trust: None,
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
            .map_err(|error| ConnectError::Configure(error.into()))?;
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
            trust: Some(Arc::clone(material.trust())),
        })
    }

    /// Sends the preface, and runs the connection until the server's first frame or its end.
    async fn speak(&self, secured: Secured) -> Result<Connected, ConnectError> {
        let address = || self.address.clone();
        let (wire, state) = Wire::new(secured.io);
        let slots = Arc::new(Slots::new(Arc::clone(self.freed)));
        let mut driver = Driver::new(Arc::clone(&slots));
        let handshake = http2::Builder::new(driver.executor())
            .initial_max_send_streams(UNTOLD)
            .handshake(TokioIo::new(wire))
            .await;
        let (sender, requests) = match (handshake, state.error()) {
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
        driver.take_requests(requests, dispatch.closer());
        let accepted = poll_fn(|cx| {
            if Pin::new(&mut driver).poll(cx).is_ready() {
                Poll::Ready(false)
            } else if slots.are_known() {
                Poll::Ready(true)
            } else {
                Poll::Pending
            }
        });
        if accepted.await {
            return Ok(Connected {
                dispatch,
                driver,
                wire: state,
                slots,
                peer: secured.peer,
                trust: secured.trust,
            });
        }
        Err(match state.error() {
            None if state.heard() && !slots.are_known() => {
                ConnectError::NotHttp2 { address: address() }
            }
            error => ConnectError::Refused {
                address: address(),
                source: error.map(ServerRefusal),
            },
        })
    }
}
