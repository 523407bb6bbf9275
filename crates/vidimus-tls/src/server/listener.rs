//! Where connections come from.

mod adopt;
mod lock;
#[cfg(feature = "proxy-protocol")]
pub(super) mod proxy;
#[cfg(feature = "systemd")]
mod systemd;
mod unix;

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::OwnedFd;
use std::path::Path;

use tokio::net::{TcpListener, UnixListener};

pub use adopt::AdoptError;
#[cfg(feature = "proxy-protocol")]
pub use proxy::{ProxyNetworks, ProxyNetworksError, ProxyOverUnix};
#[cfg(feature = "systemd")]
pub use systemd::SystemdError;
pub use unix::{BindUnixError, UnixOptions, UnixSocket, UnixSocketName};

use super::socket::Socket;

/// A bound listener: TCP or a UNIX stream socket.
///
/// It is made from a listener of tokio or of the standard library, from an open file descriptor, by
/// [`Listener::bind_unix`], or from what systemd has bound (`Listener::from_systemd`, feature `systemd`). Making one needs
/// a running tokio runtime, as tokio's own listeners do.
#[derive(Debug)]
pub struct Listener {
    kind: Kind,
    /// Whose connections begin with a PROXY header.
    #[cfg(feature = "proxy-protocol")]
    proxies: Option<ProxyNetworks>,
}

#[derive(Debug)]
enum Kind {
    Tcp(TcpListener),
    Unix(UnixListener),
    /// One that was bound here, whose name goes when it does.
    Named(UnixSocket),
}

/// A socket that was just accepted.
#[derive(Debug)]
pub(super) struct Arrival {
    pub(super) socket: Socket,
    /// The address at its other end; none on a UNIX socket.
    pub(super) address: Option<SocketAddr>,
    /// Whether it comes from a proxy, so that a header with the client's address comes first.
    #[cfg(feature = "proxy-protocol")]
    pub(super) from_proxy: bool,
}

impl Arrival {
    /// The address that it is counted under, if that is known already.
    pub(super) fn source(&self) -> Option<IpAddr> {
        #[cfg(feature = "proxy-protocol")]
        if self.from_proxy {
            return None;
        }
        self.address.map(|address| address.ip())
    }
}

impl Listener {
    /// Binds a UNIX socket that nobody can connect to before it has the mode it is to have. What is done about names that
    /// are taken is said at [`UnixSocket::bind`].
    ///
    /// # Errors
    ///
    /// As [`UnixSocket::bind`].
    pub fn bind_unix(path: impl AsRef<Path>, options: UnixOptions) -> Result<Self, BindUnixError> {
        UnixSocket::bind(path, options).map(Self::from)
    }

    /// Connections from these networks have to begin with a header of the PROXY protocol, version 2: a proxy there says
    /// whose connection it passes on. From then on that address is the client's: in limits, logs and requests. Connections
    /// from elsewhere are plain clients'.
    ///
    /// A header of version 1, one for something else than TCP over IP, a malformed one or none closes the connection. A
    /// proxy's own connections (the command `LOCAL`, its health checks) keep its address. The header counts into the
    /// handshake's time.
    ///
    /// # Errors
    ///
    /// [`ProxyOverUnix`] if it is a UNIX socket.
    #[cfg(feature = "proxy-protocol")]
    pub fn with_proxy_protocol(mut self, networks: ProxyNetworks) -> Result<Self, ProxyOverUnix> {
        if self.is_unix() {
            return Err(ProxyOverUnix(()));
        }
        self.proxies = Some(networks);
        Ok(self)
    }

    /// The bound TCP address, if it is one.
    #[must_use]
    pub fn tcp_address(&self) -> Option<SocketAddr> {
        match &self.kind {
            Kind::Tcp(listener) => listener.local_addr().ok(),
            Kind::Unix(_) | Kind::Named(_) => None,
        }
    }

    pub(super) async fn accept(&self) -> io::Result<Arrival> {
        match &self.kind {
            Kind::Tcp(listener) => {
                let (stream, address) = listener.accept().await?;
                Ok(Arrival {
                    socket: Socket::Tcp(stream),
                    address: Some(address),
                    #[cfg(feature = "proxy-protocol")]
                    from_proxy: self
                        .proxies
                        .as_ref()
                        .is_some_and(|networks| networks.contain(address.ip())),
                })
            }
            Kind::Unix(listener) => accept_unix(listener).await,
            Kind::Named(socket) => accept_unix(socket.listener()).await,
        }
    }

    pub(super) fn is_unix(&self) -> bool {
        match self.kind {
            Kind::Unix(_) | Kind::Named(_) => true,
            Kind::Tcp(_) => false,
        }
    }
}

async fn accept_unix(listener: &UnixListener) -> io::Result<Arrival> {
    let (stream, _) = listener.accept().await?;
    Ok(Arrival {
        socket: Socket::Unix(stream),
        address: None,
        #[cfg(feature = "proxy-protocol")]
        from_proxy: false,
    })
}

impl From<Kind> for Listener {
    fn from(kind: Kind) -> Self {
        Self {
            kind,
            #[cfg(feature = "proxy-protocol")]
            proxies: None,
        }
    }
}

impl From<TcpListener> for Listener {
    fn from(listener: TcpListener) -> Self {
        Kind::Tcp(listener).into()
    }
}

impl From<UnixListener> for Listener {
    fn from(listener: UnixListener) -> Self {
        Kind::Unix(listener).into()
    }
}

impl From<UnixSocket> for Listener {
    fn from(socket: UnixSocket) -> Self {
        Kind::Named(socket).into()
    }
}

impl TryFrom<std::net::TcpListener> for Listener {
    type Error = AdoptError;

    fn try_from(listener: std::net::TcpListener) -> Result<Self, Self::Error> {
        Self::try_from(OwnedFd::from(listener))
    }
}

impl TryFrom<std::os::unix::net::UnixListener> for Listener {
    type Error = AdoptError;

    fn try_from(listener: std::os::unix::net::UnixListener) -> Result<Self, Self::Error> {
        Self::try_from(OwnedFd::from(listener))
    }
}
