//! One handshake, with the material of the moment in which the client's first message was complete.

use std::convert::Infallible;
use std::sync::Arc;
use std::{future, io};

use arc_swap::ArcSwapOption;
use rustls::ServerConfig;
use rustls::server::Acceptor;
use tokio::io::AsyncWriteExt;
use tokio::time::{Instant, timeout_at};
use tokio_rustls::LazyConfigAcceptor;
use tokio_rustls::server::TlsStream;

use super::failure::{Cause, Failure};
use super::pending::Waiter;
use super::socket::Socket;
use crate::clock::Clock;
use crate::config::{self, ClientAuth, Protocol, Protocols};
use crate::material::{Material, Trust};
use crate::verify::{HandshakeSlot, VerifiedChain};
use crate::watch::MaterialWatch;

/// A fatal `no_application_protocol` alert (120) as the record that stands before any encryption (RFC 8446 §5.1, §6).
const NO_APPLICATION_PROTOCOL: [u8; 7] = [21, 3, 3, 0, 2, 2, 120];

/// What all handshakes of a listener share.
#[derive(Debug)]
pub(super) struct Handshaker {
    pub(super) material: MaterialWatch,
    clients: ClientAuth,
    protocols: Protocols,
    clock: Clock,
    made: ArcSwapOption<Made>,
}

/// What all handshakes with one material share: making it costs more than a tenth of a handshake.
#[derive(Debug)]
struct Made {
    material: Arc<Material>,
    config: Arc<ServerConfig>,
}

/// A connection whose peer is known.
pub(super) struct Accepted {
    /// Boxed, since it is moved from one stage of the connection to the next and each would have room for it.
    pub(super) stream: Box<TlsStream<Socket>>,
    pub(super) chain: VerifiedChain,
    pub(super) generation: u64,
    /// What ALPN agreed on.
    pub(super) protocol: Option<Protocol>,
    /// What the chain was verified against, to see whether it moved on meanwhile.
    pub(super) trust: Arc<Trust>,
}

impl Handshaker {
    pub(super) fn new(
        material: MaterialWatch,
        clients: ClientAuth,
        protocols: Protocols,
        clock: Clock,
    ) -> Self {
        Self {
            material,
            clients,
            protocols,
            clock,
            made: ArcSwapOption::empty(),
        }
    }

    /// The handshake of a socket that has a place among the waiting ones until `deadline`.
    pub(super) async fn accept(
        &self,
        socket: Socket,
        waiter: Waiter,
        deadline: Instant,
    ) -> Result<Accepted, Failure> {
        let cause = tokio::select! {
            // Boxed, so that an open connection doesn't keep room for its handshake.
            outcome = timeout_at(deadline, Box::pin(self.handshake(socket, &waiter))) => match outcome {
                Ok(outcome) => return outcome,
                Err(_) => Cause::Timeout,
            },
            () = waiter.displaced() => Cause::Displaced,
        };
        Err(Failure {
            cause,
            socket: None,
        })
    }

    async fn handshake(&self, socket: Socket, waiter: &Waiter) -> Result<Accepted, Failure> {
        let mut hello = std::pin::pin!(LazyConfigAcceptor::new(Acceptor::default(), socket));
        let start = match hello.as_mut().await {
            Ok(start) => start,
            Err(error) => {
                return Err(Failure {
                    cause: Cause::of(error, None),
                    socket: hello.take_io(),
                });
            }
        };
        waiter.greeted();
        // rustls lets a client that offers no protocol at all pass, so the listener looks itself.
        if let Err(cause) = common_protocol(self.protocols, start.client_hello().alpn()) {
            let mut socket = start.io;
            let written = socket.write_all(&NO_APPLICATION_PROTOCOL).await;
            return Err(Failure {
                cause,
                socket: written.is_ok().then_some(socket),
            });
        }

        let material = self.material.current();
        let config = self.config(&material).map_err(|error| Failure {
            cause: Cause::Configuration(error),
            socket: None,
        })?;
        let slot = Arc::new(HandshakeSlot::default());
        let handshake = slot.during(start.into_stream(config).into_fallible());
        let stream = handshake.await.map_err(|(error, socket)| Failure {
            cause: Cause::of(error, slot.refusal()),
            socket: Some(socket),
        })?;
        let refuse = |cause| Failure {
            cause,
            socket: None,
        };
        let protocol = self.protocols.agreed(stream.get_ref().1.alpn_protocol());
        let protocol = protocol.ok_or_else(|| {
            refuse(Cause::Alpn {
                offered: "another protocol".to_owned(),
                wanted: self.protocols.name(),
            })
        })?;
        // A connection without a verified peer is never served, whatever rustls thinks of it.
        let chain = slot.accepted().cloned();
        let chain = chain.ok_or_else(|| refuse(Cause::NoIdentity))?;
        Ok(Accepted {
            stream: Box::new(stream),
            chain,
            generation: material.generation(),
            protocol,
            trust: Arc::clone(material.trust()),
        })
    }

    fn config(&self, material: &Arc<Material>) -> Result<Arc<ServerConfig>, rustls::Error> {
        if let Some(made) = self.made.load().as_deref()
            && Arc::ptr_eq(&made.material, material)
        {
            return Ok(Arc::clone(&made.config));
        }
        let config = config::server_config(material, &self.clients, self.protocols, &self.clock)?;
        let config = Arc::new(config);
        self.made.store(Some(Arc::new(Made {
            material: Arc::clone(material),
            config: Arc::clone(&config),
        })));
        // A change since the material was taken has been forgotten already.
        if !Arc::ptr_eq(&self.material.current(), material) {
            self.made.store(None);
        }
        Ok(config)
    }

    /// Forgets what was made of material that has been replaced, so that its private key doesn't stay in memory until the
    /// next handshake.
    pub(super) async fn forget_replaced(&self) -> Infallible {
        let mut material = self.material.subscribe();
        // The sender lives as long as the watch in `self`.
        while material.changed().await.is_ok() {
            self.made.store(None);
        }
        future::pending().await
    }
}

/// Whether the client offers something that this listener speaks.
fn common_protocol<'a>(
    protocols: Protocols,
    offered: Option<impl Iterator<Item = &'a [u8]>>,
) -> Result<(), Cause> {
    let offered: Option<Vec<&[u8]>> = offered.map(Iterator::collect);
    if protocols.accept(offered.as_deref()) {
        return Ok(());
    }
    let names = offered.map(|offered| {
        let names = offered.iter().take(8);
        let names = names.map(|name| String::from_utf8_lossy(name).escape_debug().to_string());
        names.collect::<Vec<_>>().join(", ")
    });
    Err(Cause::Alpn {
        offered: names.unwrap_or_else(|| "no protocol".to_owned()),
        wanted: protocols.name(),
    })
}

/// Turns on what the connection needs of its socket.
pub(super) fn prepare(socket: &Socket) -> io::Result<()> {
    match socket {
        // Nagle's algorithm holds a small write back until the last one is acknowledged: 40 ms a call.
        Socket::Tcp(stream) => stream.set_nodelay(true),
        Socket::Unix(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use tokio::net::{TcpListener, TcpStream};
    use vidimus_testkit::Pki;

    use super::*;
    use crate::material::{Identity, Usage};

    /// T19.
    #[tokio::test]
    async fn accepted_sockets_send_at_once() {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a port");
        let address = listener.local_addr().expect("its address");
        let connecting = TcpStream::connect(address);
        let (accepted, _connected) = tokio::join!(listener.accept(), connecting);
        let (stream, _) = accepted.expect("a connection");
        let _delayed = stream.set_nodelay(false);
        let socket = Socket::Tcp(stream);
        prepare(&socket).expect("an option");
        match socket {
            Socket::Tcp(stream) => assert!(stream.nodelay().expect("an option")),
            Socket::Unix(_) => unreachable!("it is TCP"),
        }
    }

    /// V14. A handshake that took its material before a change makes its configuration after it: for itself alone.
    #[test]
    fn a_configuration_of_replaced_material_is_not_kept() {
        let (pki, clock) = (Pki::new("Example"), Clock::system());
        let leaf = pki.leaf("server").dns("server.test").server().issue();
        let (chain, key) = (leaf.chain_pem(), leaf.key_pem());
        let (chain, key) = (chain.as_bytes(), key.as_bytes());
        let identity = Identity::from_pem(chain, key, Usage::Server, clock.now());
        let roots = pki.root.pem();
        let trust = Trust::from_pem(roots.as_bytes(), clock.now()).expect("a root");
        let material = Material::of(identity.expect("an identity"), trust);
        let (watch, mut publisher) = MaterialWatch::from_memory(material);
        let (clients, protocols) = (ClientAuth::Roots, Protocols::H2);
        let handshaker = Handshaker::new(watch.clone(), clients, protocols, clock);
        let made = |material: &Arc<Material>| {
            handshaker.config(material).expect("a configuration");
            handshaker.made.load().is_some()
        };

        let replaced = watch.current();
        assert!(made(&replaced));
        let taken = publisher.replace_identity(chain, key, Usage::Server);
        taken.expect("the same once more");
        assert!(made(&watch.current()));
        assert!(!made(&replaced));
    }
}
