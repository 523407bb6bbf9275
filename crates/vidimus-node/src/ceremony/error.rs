//! Why a ceremony stopped.

use std::path::PathBuf;

use vidimus_fs::{dir::DirError, durable::WriteError, lock::LockError};
use vidimus_keys::file::KeyError;
use vidimus_store::StoreError;
use vidimus_x509::{
    issue::{PlanError, RequestError},
    key::KeyAlgorithm,
    serial::SerialError,
    signer::SignError,
};

use super::AdminError;
use crate::{data::AuditSeedError, node::OpenError, rotation::RotationError};

/// Why no node was made.
#[derive(Debug, thiserror::Error)]
pub enum InitError {
    /// The administrator can't be made.
    #[error("make the administrator")]
    Admin(#[from] AdminError),
    /// The audit log's seed can't be made.
    #[error(transparent)]
    AuditSeed(#[from] AuditSeedError),
    /// The data directory can't be used.
    #[error(transparent)]
    Dir(#[from] DirError),
    /// There is a node already.
    #[error(
        "{path} holds a node already; accepted: an empty or absent folder, or one whose `init` was cut short"
    )]
    Established {
        /// The data directory.
        path: PathBuf,
    },
    /// The key can't be made.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// A key that an earlier run left can't be opened.
    #[error(
        "open {path}, left by a run that was cut short; nothing was signed with it: if its secret is lost, delete it and repeat"
    )]
    LeftKey {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: KeyError,
    },
    /// A key that an earlier run left is of another kind than the config says.
    #[error(
        "{path}, left by a run that was cut short, is {found}; the config says {accepted}: delete it and repeat, nothing was signed with it"
    )]
    LeftKeyAlgorithm {
        /// The file.
        path: PathBuf,
        /// What it is.
        found: KeyAlgorithm,
        /// What the config says.
        accepted: KeyAlgorithm,
    },
    /// Another process uses the data directory.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// The root's certificate can't be made.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// The request can't be made.
    #[error(transparent)]
    Request(#[from] RequestError),
    /// No serial number.
    #[error(transparent)]
    Serial(#[from] SerialError),
    /// The key failed.
    #[error(transparent)]
    Sign(#[from] SignError),
    /// The store can't be opened.
    #[error(transparent)]
    OpenStore(#[from] vidimus_store::OpenError),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A file can't be written.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// The thread that made the key ended.
    #[error("make the key")]
    Worker {
        /// How it ended.
        #[source]
        source: tokio::task::JoinError,
    },
}

/// Why a chain was not taken.
#[derive(Debug, thiserror::Error)]
pub enum CompleteError {
    /// The node can't be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The chain is refused.
    #[error(transparent)]
    Rotation(#[from] RotationError),
}
