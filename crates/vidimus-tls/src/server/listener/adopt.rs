//! A socket that somebody else opened: what it is, is asked of the kernel.

use std::io;
use std::os::fd::OwnedFd;

use rustix::net::{AddressFamily, SocketType, sockopt};
use tokio::net::{TcpListener, UnixListener};

use super::Listener;

/// Why a file descriptor cannot be listened at.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AdoptError {
    /// It is something else than a stream socket of TCP or UNIX that listens.
    #[error("it is {found}, not a listening TCP or UNIX stream socket")]
    Unfit {
        /// What it is.
        found: &'static str,
    },
    /// The kernel or the runtime would not have it.
    #[error("take over a listening socket")]
    System(#[source] io::Error),
}

impl TryFrom<OwnedFd> for Listener {
    type Error = AdoptError;

    /// Takes over a listening TCP or UNIX stream socket: made non-blocking, and closed in programs that this one starts.
    ///
    /// # Errors
    ///
    /// [`AdoptError::Unfit`] for a datagram socket, one that doesn't listen, another family or no socket at all.
    fn try_from(descriptor: OwnedFd) -> Result<Self, Self::Error> {
        let unfit = |found| AdoptError::Unfit { found };
        let system = |errno: rustix::io::Errno| match errno {
            rustix::io::Errno::NOTSOCK => unfit("no socket"),
            other => AdoptError::System(other.into()),
        };
        if sockopt::socket_type(&descriptor).map_err(system)? != SocketType::STREAM {
            return Err(unfit("a socket of another type than stream"));
        }
        if !sockopt::socket_acceptconn(&descriptor).map_err(system)? {
            return Err(unfit("a socket that does not listen"));
        }
        let flags = rustix::io::fcntl_getfd(&descriptor).map_err(system)?;
        rustix::io::fcntl_setfd(&descriptor, flags | rustix::io::FdFlags::CLOEXEC)
            .map_err(system)?;
        rustix::io::ioctl_fionbio(&descriptor, true).map_err(system)?;
        match sockopt::socket_domain(&descriptor).map_err(system)? {
            AddressFamily::INET | AddressFamily::INET6 => {
                TcpListener::from_std(descriptor.into()).map(Self::from)
            }
            AddressFamily::UNIX => UnixListener::from_std(descriptor.into()).map(Self::from),
            _ => return Err(unfit("a socket of another family than IP and UNIX")),
        }
        .map_err(AdoptError::System)
    }
}
