//! Why a node stopped or did not start.

use std::{io, net::SocketAddr, path::PathBuf};

use vidimus_daemon::{http::BindError, tasks::TaskError};
use vidimus_fs::durable::WriteError;
use vidimus_tls::server::BindUnixError;

use crate::{management::ManagementError, node::OpenError};

/// Why a node stopped or did not start.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The admin endpoint can't be bound.
    #[error("admin endpoint")]
    Admin(#[from] BindError),
    /// `endpoints.json` can't be written.
    #[error(transparent)]
    Endpoints(#[from] WriteError),
    /// The management address can't be bound.
    #[error("listen on {address}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// There is no certificate for the own listener.
    #[error("management listener")]
    Management(#[from] ManagementError),
    /// The node waits for its chain.
    #[error(
        "the node in {path} has no CA certificate yet; accepted: after `vidimus node init --chain FILE` with its signed chain"
    )]
    NoIdentity {
        /// The data directory.
        path: PathBuf,
    },
    /// The node can't be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// A UNIX socket can't be bound.
    #[error(transparent)]
    Socket(#[from] BindUnixError),
    /// A part failed.
    #[error(transparent)]
    Task(#[from] TaskError),
}
