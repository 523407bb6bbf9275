//! The store, as its callers see it.

use std::fmt;
use std::ops::Deref;
use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

use tokio::sync::watch;
use vidimus_audit::{AuditKey, Draft};

use crate::certificate::{Issuance, IssuedCertificate};
use crate::config::NewConfig;
use crate::error::{OpenError, StoreError};
use crate::identity::{Activation, IdentityId, IdentityRow, NewIdentity};
use crate::reader::Reader;
use crate::recorded::Recorded;
use crate::sqlite::{self, Sqlite};

/// Tells the store the time. Called on the store's own thread, once for each request.
pub type Clock = Arc<dyn Fn() -> SystemTime + Send + Sync>;

/// How a store is opened.
#[derive(Clone)]
pub struct Options {
    /// Where the time comes from; the system's clock by default.
    pub clock: Clock,
    /// The size that the database may reach; by default only the disk sets a limit. Beyond it,
    /// requests are refused with [`StoreError::Full`].
    pub max_bytes: Option<u64>,
}

impl Default for Options {
    fn default() -> Self {
        #[expect(
            clippy::disallowed_methods,
            reason = "the time of an entry is read where its place in the chain is fixed"
        )]
        Self {
            clock: Arc::new(SystemTime::now),
            max_bytes: None,
        }
    }
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options")
            .field("max_bytes", &self.max_bytes)
            .finish_non_exhaustive()
    }
}

/// A store that this process alone writes to. Clones are the same store; when the last one is
/// dropped, what was asked for is finished, and the database is closed before the drop returns.
///
/// It reads like a [`Reader`], which it dereferences to.
#[derive(Debug, Clone)]
pub struct Store {
    reader: Reader,
    backend: Backend,
}

/// Which database it is. A second one is a second variant here, and one in the reader.
#[derive(Debug, Clone)]
enum Backend {
    Sqlite(Arc<Sqlite>),
}

impl Store {
    /// Opens the store at `path`, with mode 0600, or makes it; `key` signs its audit log. Takes a
    /// lock on `<path>.lock`, so that no other process has it open for writing. Blocks for the
    /// moment that it takes.
    ///
    /// # Errors
    /// [`OpenError`].
    pub fn open(path: impl AsRef<Path>, key: AuditKey) -> Result<Self, OpenError> {
        Self::open_with(path, key, Options::default())
    }

    /// [`Store::open`] with other than the usual options.
    ///
    /// # Errors
    /// [`OpenError`].
    pub fn open_with(
        path: impl AsRef<Path>,
        key: AuditKey,
        options: Options,
    ) -> Result<Self, OpenError> {
        let sqlite = Sqlite::open(path.as_ref(), key, options)?;
        Ok(Self {
            reader: Reader::of_sqlite(Arc::clone(sqlite.readers())),
            backend: Backend::Sqlite(Arc::new(sqlite)),
        })
    }

    /// Opens the store at `path` without being able to change it: for checking the log offline, or
    /// beside a node that runs. Takes no lock and needs no key.
    ///
    /// # Errors
    /// [`OpenError`].
    pub fn open_read_only(path: impl AsRef<Path>) -> Result<Reader, OpenError> {
        let readers = sqlite::Readers::open(path.as_ref())?;
        Ok(Reader::of_sqlite(Arc::new(readers)))
    }

    /// Records an issued certificate together with its audit entry. When it returns, both are on
    /// disk; only then may the certificate be handed out.
    ///
    /// # Errors
    /// [`StoreError`]; nothing of it is written. [`StoreError::DuplicateSerial`] if the number is
    /// taken.
    pub async fn record_issuance(
        &self,
        issuance: Issuance,
    ) -> Result<Recorded<IssuedCertificate>, StoreError> {
        match &self.backend {
            Backend::Sqlite(sqlite) => sqlite.write(issuance).await.map(Recorded::committed),
        }
    }

    /// Records an audit entry; its number is returned once it is on disk.
    ///
    /// # Errors
    /// [`StoreError`]; nothing is written.
    pub async fn append_audit(&self, draft: Draft) -> Result<u64, StoreError> {
        match &self.backend {
            Backend::Sqlite(sqlite) => sqlite.write(draft).await,
        }
    }

    /// Stores a machine config as the next generation, with its audit entry, to which the details
    /// `config_generation` and `config_digest_sha256` are added.
    ///
    /// # Errors
    /// [`StoreError`]; nothing is written.
    pub async fn put_config(
        &self,
        yaml: impl Into<String>,
        digest: impl Into<String>,
        audit: Draft,
    ) -> Result<u64, StoreError> {
        let config = NewConfig {
            yaml: yaml.into(),
            digest: digest.into(),
            audit,
        };
        match &self.backend {
            Backend::Sqlite(sqlite) => sqlite.write(config).await,
        }
    }

    /// Records a CA identity, with its audit entry. Without a chain it waits for one, in the place
    /// of any that waited before (which becomes a past one); with one it is the current one at
    /// once.
    ///
    /// # Errors
    /// [`StoreError`]; nothing is written.
    pub async fn put_identity(
        &self,
        row: IdentityRow,
        audit: Draft,
    ) -> Result<IdentityId, StoreError> {
        match &self.backend {
            Backend::Sqlite(sqlite) => sqlite.write(NewIdentity { row, audit }).await,
        }
    }

    /// Gives the awaiting identity its chain and makes it the current one; the one before becomes
    /// a past one. One transaction, with the audit entry.
    ///
    /// # Errors
    /// [`StoreError::UnknownIdentity`], [`StoreError::NotAwaiting`] or another [`StoreError`];
    /// nothing is written.
    pub async fn activate_identity(
        &self,
        id: IdentityId,
        chain_pem: impl Into<String>,
        audit: Draft,
    ) -> Result<(), StoreError> {
        let activation = Activation {
            id,
            chain_pem: chain_pem.into(),
            audit,
        };
        match &self.backend {
            Backend::Sqlite(sqlite) => sqlite.write(activation).await,
        }
    }

    /// Stores a value under a name (what a node must remember and that is no config: the pinned
    /// admin certificate, its role), in the place of any earlier one, with its audit entry.
    ///
    /// # Errors
    /// [`StoreError`]; nothing is written.
    pub async fn put_meta(
        &self,
        name: impl Into<String>,
        value: impl Into<Vec<u8>>,
        audit: Draft,
    ) -> Result<(), StoreError> {
        let meta = NewMeta {
            name: name.into(),
            value: value.into(),
            audit,
        };
        match &self.backend {
            Backend::Sqlite(sqlite) => sqlite.write(meta).await,
        }
    }

    /// The number of the last audit entry on disk, as it grows.
    #[must_use]
    pub fn committed(&self) -> watch::Receiver<u64> {
        match &self.backend {
            Backend::Sqlite(sqlite) => sqlite.committed(),
        }
    }

    /// This store's reading half.
    #[must_use]
    pub fn reader(&self) -> &Reader {
        &self.reader
    }
}

impl Deref for Store {
    type Target = Reader;

    fn deref(&self) -> &Reader {
        &self.reader
    }
}

/// A value to be stored under a name.
#[derive(Debug)]
pub(crate) struct NewMeta {
    pub(crate) name: String,
    pub(crate) value: Vec<u8>,
    pub(crate) audit: Draft,
}
