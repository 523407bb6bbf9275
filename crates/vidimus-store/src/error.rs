//! Why something was not opened, read or written.

use std::error::Error;
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use vidimus_fs::durable::WriteError;
use vidimus_fs::lock::LockError;
use vidimus_x509::serial::Serial;

use crate::identity::IdentityId;

/// What the back end said, kept opaque so that its types are in nobody's code.
#[derive(Debug, Clone)]
pub struct Cause(Arc<dyn Error + Send + Sync>);

impl Cause {
    pub(crate) fn new(error: impl Error + Send + Sync + 'static) -> Self {
        Self(Arc::new(error))
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Error for Cause {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.0.source()
    }
}

/// Why a request to an open store failed. Whatever it is, nothing of the request was written.
#[derive(Debug, Clone, thiserror::Error)]
pub enum StoreError {
    /// The store has been closed.
    #[error("the store is closed")]
    Closed,
    /// What is stored can't be what was written.
    #[error("the store is damaged: {what}")]
    Corrupt {
        /// What can't be right.
        what: String,
    },
    /// A certificate with this serial number is recorded already.
    #[error("serial number {serial} is taken already")]
    DuplicateSerial {
        /// The number.
        serial: Serial,
    },
    /// There is no room on the disk, or the store has reached the size it may have. Nothing is
    /// lost; the same request succeeds once there is room.
    #[error("no room left for {path}: free some space on its disk, nothing was written")]
    Full {
        /// The store.
        path: PathBuf,
    },
    /// The identity exists, but waits for no certificate.
    #[error("identity {id} does not wait for a certificate")]
    NotAwaiting {
        /// The identity.
        id: IdentityId,
    },
    /// Reading failed.
    #[error("read {what} from the store")]
    Read {
        /// What was to be read.
        what: &'static str,
        /// What the back end said.
        #[source]
        source: Cause,
    },
    /// There is no such identity.
    #[error("there is no identity {id}")]
    UnknownIdentity {
        /// The identity.
        id: IdentityId,
    },
    /// Writing failed.
    #[error("write {what} to the store")]
    Write {
        /// What was to be written.
        what: &'static str,
        /// What the back end said.
        #[source]
        source: Cause,
    },
}

/// Why a store was not opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The store belongs to another audit key: with this one, its log would not verify.
    #[error("{path} was made with the audit key {stored}, this one is {given}")]
    AuditKey {
        /// The store.
        path: PathBuf,
        /// The public key it was made with, in hex.
        stored: String,
        /// The public key given, in hex.
        given: String,
    },
    /// The file could not be made, or its mode not be set.
    #[error("create {path}")]
    Create {
        /// The store.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// What is needed at the start could not be read.
    #[error(transparent)]
    Content(#[from] StoreError),
    /// The back end could not open it.
    #[error("open {path}")]
    Database {
        /// The store.
        path: PathBuf,
        /// What the back end said.
        #[source]
        source: Cause,
    },
    /// Another process has it open.
    #[error(transparent)]
    Locked(#[from] LockError),
    /// The tables could not be brought to this version's form.
    #[error("bring {path} from schema version {from} to {to}")]
    Migrate {
        /// The store.
        path: PathBuf,
        /// The version found.
        from: i64,
        /// The version wanted.
        to: i64,
        /// What the back end said.
        #[source]
        source: Cause,
    },
    /// A newer Vidimus has written it.
    #[error(
        "{path} has schema version {found}, this program knows versions up to {supported}: use the newer program again"
    )]
    NewerSchema {
        /// The store.
        path: PathBuf,
        /// The version found.
        found: i64,
        /// The newest version known.
        supported: i64,
    },
    /// It is a database, but not one of ours.
    #[error("{path} is not a Vidimus store")]
    NotAStore {
        /// The file.
        path: PathBuf,
    },
    /// There is no such file (only for opening without writing).
    #[error("{path} does not exist")]
    NotFound {
        /// The file.
        path: PathBuf,
    },
    /// The file was made, but is not certain to survive a power cut.
    #[error(transparent)]
    Sync(#[from] WriteError),
    /// The system gave no thread to write on.
    #[error("start the writer of {path}")]
    Thread {
        /// The store.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
}
