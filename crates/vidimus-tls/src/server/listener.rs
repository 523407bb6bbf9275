//! Where connections come from.

mod adopt;
mod lock;
mod unix;

use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::path::Path;

use tokio::net::{TcpListener, UnixListener};

pub use adopt::AdoptError;
pub use unix::{BindUnixError, UnixOptions, UnixSocket};

use super::socket::Socket;

/// A bound listener: TCP or a UNIX stream socket.
///
/// It is made from a listener of tokio or of the standard library, from an open file descriptor, or by
/// [`Listener::bind_unix`]. Making one needs a running tokio runtime, as tokio's own listeners do.
#[derive(Debug)]
pub struct Listener(Kind);

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

    /// The bound TCP address, if it is one.
    #[must_use]
    pub fn tcp_address(&self) -> Option<SocketAddr> {
        match &self.0 {
            Kind::Tcp(listener) => listener.local_addr().ok(),
            Kind::Unix(_) | Kind::Named(_) => None,
        }
    }

    pub(super) async fn accept(&self) -> io::Result<Arrival> {
        match &self.0 {
            Kind::Tcp(listener) => {
                let (stream, address) = listener.accept().await?;
                Ok(Arrival {
                    socket: Socket::Tcp(stream),
                    address: Some(address),
                })
            }
            Kind::Unix(listener) => accept_unix(listener).await,
            Kind::Named(socket) => accept_unix(socket.listener()).await,
        }
    }

    pub(super) fn is_unix(&self) -> bool {
        match self.0 {
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
    })
}

impl From<TcpListener> for Listener {
    fn from(listener: TcpListener) -> Self {
        Self(Kind::Tcp(listener))
    }
}

impl From<UnixListener> for Listener {
    fn from(listener: UnixListener) -> Self {
        Self(Kind::Unix(listener))
    }
}

impl From<UnixSocket> for Listener {
    fn from(socket: UnixSocket) -> Self {
        Self(Kind::Named(socket))
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
