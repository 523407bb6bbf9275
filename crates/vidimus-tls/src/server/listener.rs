//! Where connections come from.

use std::io;
use std::net::SocketAddr;

use tokio::net::{TcpListener, UnixListener};

use super::socket::Socket;

/// A bound listener of either family.
#[derive(Debug)]
pub enum Listener {
    /// TCP.
    Tcp(TcpListener),
    /// A UNIX stream socket.
    Unix(UnixListener),
}

impl Listener {
    pub(super) async fn accept(&self) -> io::Result<(Socket, Option<SocketAddr>)> {
        match self {
            Self::Tcp(listener) => {
                let (stream, address) = listener.accept().await?;
                Ok((Socket::Tcp(stream), Some(address)))
            }
            Self::Unix(listener) => {
                let (stream, _) = listener.accept().await?;
                Ok((Socket::Unix(stream), None))
            }
        }
    }

    pub(super) fn is_unix(&self) -> bool {
        matches!(self, Self::Unix(_))
    }
}

impl From<TcpListener> for Listener {
    fn from(listener: TcpListener) -> Self {
        Self::Tcp(listener)
    }
}

impl From<UnixListener> for Listener {
    fn from(listener: UnixListener) -> Self {
        Self::Unix(listener)
    }
}
