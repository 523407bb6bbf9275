//! A small bounded HTTP/1.1 server for pages about the process itself.

use std::{
    io,
    net::SocketAddr,
    os::unix::fs::{FileTypeExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

pub use axum::Router;
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    service::TowerToHyperService,
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpListener, UnixListener},
    sync::Semaphore,
    task::JoinSet,
};
use tokio_util::sync::CancellationToken;

const CONNECTIONS: usize = 128;
const HEADER_TIMEOUT: Duration = Duration::from_secs(10);
const DRAIN: Duration = Duration::from_secs(5);
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Where the pages are served.
#[derive(Debug)]
pub enum Listener {
    /// An address of the machine.
    Tcp(TcpListener),
    /// A socket in the file system, for its owner alone.
    Unix(UnixSocket),
}

/// A bound UNIX socket of mode 0600, removed from the file system when dropped.
#[derive(Debug)]
pub struct UnixSocket {
    listener: UnixListener,
    path: PathBuf,
}

/// Why a listener could not be had.
#[derive(Debug, thiserror::Error)]
pub enum BindError {
    /// Something that isn't a socket has the name.
    #[error("{path} is there already and is not a socket")]
    Occupied {
        /// The socket's path.
        path: PathBuf,
    },
    /// Another process listens at the socket.
    #[error("another process listens at {path}")]
    InUse {
        /// The socket's path.
        path: PathBuf,
    },
    /// The TCP address could not be bound.
    #[error("listen on {address}")]
    Tcp {
        /// The address.
        address: SocketAddr,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// The socket could not be made, restricted or put in its place.
    #[error("listen at {path}")]
    Unix {
        /// The socket's path.
        path: PathBuf,
        /// The cause.
        #[source]
        source: io::Error,
    },
}

impl Listener {
    /// Binds a TCP address; port 0 takes a free one.
    ///
    /// # Errors
    ///
    /// The address is not this machine's, or taken.
    pub async fn tcp(address: SocketAddr) -> Result<Self, BindError> {
        let listener = TcpListener::bind(address)
            .await
            .map_err(|source| BindError::Tcp { address, source })?;
        Ok(Self::Tcp(listener))
    }

    /// Binds a UNIX socket that only its owner may connect to; a socket that nobody listens at any
    /// more is replaced.
    ///
    /// # Errors
    ///
    /// Another process listens there, or the name is taken by something else.
    pub fn unix(path: impl Into<PathBuf>) -> Result<Self, BindError> {
        UnixSocket::bind(path.into()).map(Self::Unix)
    }

    /// The bound TCP address, if it is one.
    #[must_use]
    pub fn tcp_address(&self) -> Option<SocketAddr> {
        match self {
            Self::Tcp(listener) => listener.local_addr().ok(),
            Self::Unix(_) => None,
        }
    }
}

impl UnixSocket {
    fn bind(path: PathBuf) -> Result<Self, BindError> {
        match std::fs::symlink_metadata(&path) {
            Ok(found) if !found.file_type().is_socket() => {
                return Err(BindError::Occupied { path });
            }
            Ok(_) if std::os::unix::net::UnixStream::connect(&path).is_ok() => {
                return Err(BindError::InUse { path });
            }
            _ => {}
        }
        match Self::place(&path) {
            Ok(listener) => Ok(Self { listener, path }),
            Err(source) => Err(BindError::Unix { path, source }),
        }
    }

    /// Made under another name, restricted, then renamed: at no moment does the socket of this
    /// name admit anybody else, whatever the umask is.
    fn place(path: &Path) -> io::Result<UnixListener> {
        let mut draft = path.as_os_str().to_owned();
        draft.push(format!(".{}", std::process::id()));
        let draft = PathBuf::from(draft);
        match std::fs::remove_file(&draft) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let listener = UnixListener::bind(&draft)?;
        std::fs::set_permissions(&draft, std::fs::Permissions::from_mode(0o600))
            .and_then(|()| std::fs::rename(&draft, path))
            .inspect_err(|_| {
                // best effort: the error that counts is on its way already
                drop(std::fs::remove_file(&draft));
            })?;
        Ok(listener)
    }
}

impl Drop for UnixSocket {
    fn drop(&mut self) {
        drop(std::fs::remove_file(&self.path));
    }
}

/// Serves `routes` until the token is cancelled, then lets the requests under way finish for a few
/// seconds. Bounded: 128 connections, 10 seconds for a request's header.
pub async fn serve(listener: Listener, routes: Router, shutdown: CancellationToken) {
    let permits = Arc::new(Semaphore::new(CONNECTIONS));
    let mut connections = JoinSet::new();
    loop {
        let permit = Arc::clone(&permits).acquire_owned();
        let accepted = async {
            let permit = permit.await;
            (accept(&listener).await, permit)
        };
        tokio::select! {
            biased;
            () = shutdown.cancelled() => break,
            Some(_) = connections.join_next() => {}
            (accepted, permit) = accepted => match accepted {
                Ok(stream) => {
                    let routes = routes.clone();
                    let shutdown = shutdown.clone();
                    connections.spawn(async move {
                        connection(stream, routes, shutdown).await;
                        drop(permit);
                    });
                }
                Err(error) => {
                    // out of descriptors, for instance: accepting again at once would only spin
                    tracing::warn!(%error, "accept failed");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }
    drop(listener);
    let finished = async { while connections.join_next().await.is_some() {} };
    if tokio::time::timeout(DRAIN, finished).await.is_err() {
        tracing::warn!("requests were still under way after the drain and are dropped");
    }
}

trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

async fn accept(listener: &Listener) -> io::Result<Box<dyn Stream>> {
    match listener {
        Listener::Tcp(listener) => {
            let (stream, _) = listener.accept().await?;
            stream.set_nodelay(true)?;
            Ok(Box::new(stream))
        }
        Listener::Unix(socket) => Ok(Box::new(socket.listener.accept().await?.0)),
    }
}

async fn connection(stream: Box<dyn Stream>, routes: Router, shutdown: CancellationToken) {
    let mut builder = hyper::server::conn::http1::Builder::new();
    builder
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_TIMEOUT);
    let serving = builder.serve_connection(TokioIo::new(stream), TowerToHyperService::new(routes));
    tokio::pin!(serving);
    let result = tokio::select! {
        result = &mut serving => result,
        () = shutdown.cancelled() => {
            serving.as_mut().graceful_shutdown();
            serving.await
        }
    };
    if let Err(error) = result {
        tracing::debug!(error = %crate::telemetry::chain(&error), "connection ended");
    }
}
