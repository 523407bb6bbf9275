//! The store, as its callers see it.

use std::fmt;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use tokio::sync::watch;
use vidimus_audit::{AuditKey, AuditPublicKey, Draft, Head};
use vidimus_x509::serial::Serial;

use crate::certificate::{Cursor, Issuance, IssuedCertificate, IssuedFilter, Page};
use crate::config::{NewConfig, StoredConfig};
use crate::error::{OpenError, StoreError};
use crate::identity::{Activation, Identity, IdentityId, IdentityRow, NewIdentity};
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

/// A line of the audit log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditLine {
    /// The entry's number.
    pub seq: u64,
    /// When it was recorded.
    pub ts: jiff::Timestamp,
    /// The JSON object.
    pub json: String,
    /// Its signature, in unpadded base64.
    pub signature: String,
}

impl AuditLine {
    /// The line as it stands in the daily files, without a line feed.
    #[must_use]
    pub fn text(&self) -> String {
        format!("{} {}", self.json, self.signature)
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

/// Which database it is. A second one is a second variant here and in [`ReadBackend`].
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
            reader: Reader {
                backend: ReadBackend::Sqlite(Arc::clone(sqlite.readers())),
            },
            backend: Backend::Sqlite(Arc::new(sqlite)),
        })
    }

    /// Opens the store at `path` without being able to change it: for checking the log offline, or
    /// beside a node that runs. Takes no lock and needs no key.
    ///
    /// # Errors
    /// [`OpenError`].
    pub fn open_read_only(path: impl AsRef<Path>) -> Result<Reader, OpenError> {
        Ok(Reader {
            backend: ReadBackend::Sqlite(Arc::new(sqlite::Readers::open(path.as_ref())?)),
        })
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

/// Everything that can be read from a store.
#[derive(Debug, Clone)]
pub struct Reader {
    backend: ReadBackend,
}

#[derive(Debug, Clone)]
enum ReadBackend {
    Sqlite(Arc<sqlite::Readers>),
}

impl Reader {
    /// Where the store is.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        match &self.backend {
            ReadBackend::Sqlite(readers) => readers.path().to_owned(),
        }
    }

    /// Lists recorded certificates, oldest first: at most `page_size` (and
    /// [`MAX_PAGE_SIZE`](crate::certificate::MAX_PAGE_SIZE)) of those after `after`. What a page
    /// costs does not depend on how many there are.
    ///
    /// # Errors
    /// [`StoreError::Read`] or [`StoreError::Corrupt`].
    pub async fn list_issued(
        &self,
        filter: IssuedFilter,
        page_size: u32,
        after: Option<Cursor>,
    ) -> Result<Page<IssuedCertificate>, StoreError> {
        match &self.backend {
            ReadBackend::Sqlite(readers) => {
                let query = move |c: &_| sqlite::read::list_issued(c, &filter, page_size, after);
                readers.read(query).await
            }
        }
    }

    /// The certificate with this serial number.
    ///
    /// # Errors
    /// [`StoreError::Read`] or [`StoreError::Corrupt`].
    pub async fn find_issued(
        &self,
        serial: &Serial,
    ) -> Result<Option<IssuedCertificate>, StoreError> {
        let serial = *serial;
        match &self.backend {
            ReadBackend::Sqlite(readers) => {
                let query = move |c: &_| sqlite::read::find_issued(c, serial);
                readers.read(query).await
            }
        }
    }

    /// How many certificates are recorded. Costs the same for any number.
    ///
    /// # Errors
    /// [`StoreError::Read`].
    pub async fn issued_count(&self) -> Result<u64, StoreError> {
        match &self.backend {
            ReadBackend::Sqlite(readers) => readers.read(sqlite::read::issued_count).await,
        }
    }

    /// The machine config of the newest generation.
    ///
    /// # Errors
    /// [`StoreError::Read`].
    pub async fn config(&self) -> Result<Option<StoredConfig>, StoreError> {
        match &self.backend {
            ReadBackend::Sqlite(readers) => readers.read(sqlite::read::config).await,
        }
    }

    /// All CA identities, oldest first.
    ///
    /// # Errors
    /// [`StoreError::Read`] or [`StoreError::Corrupt`].
    pub async fn identities(&self) -> Result<Vec<Identity>, StoreError> {
        match &self.backend {
            ReadBackend::Sqlite(readers) => readers.read(sqlite::read::identities).await,
        }
    }

    /// The value stored under `name` by [`Store::put_meta`].
    ///
    /// # Errors
    /// [`StoreError::Read`].
    pub async fn meta(&self, name: &str) -> Result<Option<Vec<u8>>, StoreError> {
        let name = name.to_owned();
        match &self.backend {
            ReadBackend::Sqlite(readers) => {
                let query = move |c: &_| sqlite::read::meta(c, &name);
                readers.read(query).await
            }
        }
    }

    /// The lines of the audit log from number `from_seq` on, at most `limit` of them.
    ///
    /// # Errors
    /// [`StoreError::Read`] or [`StoreError::Corrupt`].
    pub async fn audit_lines(
        &self,
        from_seq: u64,
        limit: u32,
    ) -> Result<Vec<AuditLine>, StoreError> {
        match &self.backend {
            ReadBackend::Sqlite(readers) => {
                let query = move |c: &_| sqlite::read::audit_lines(c, from_seq, limit);
                readers.read(query).await
            }
        }
    }

    /// The place of the last audit entry. Kept elsewhere, it shows later whether the log's end is
    /// missing.
    ///
    /// # Errors
    /// [`StoreError::Read`] or [`StoreError::Corrupt`].
    pub async fn audit_head(&self) -> Result<Head, StoreError> {
        match &self.backend {
            ReadBackend::Sqlite(readers) => readers.read(sqlite::read::audit_head).await,
        }
    }

    /// The public key that the store says its log is signed with. Whoever can write to the
    /// store's file can change it: to check a log against tampering, take the key from elsewhere.
    ///
    /// # Errors
    /// [`StoreError::Read`] or [`StoreError::Corrupt`].
    pub async fn audit_public_key(&self) -> Result<AuditPublicKey, StoreError> {
        match &self.backend {
            ReadBackend::Sqlite(readers) => readers.read(sqlite::read::audit_public_key).await,
        }
    }

    /// [`Reader::audit_lines`] for code that may block.
    pub(crate) fn audit_lines_blocking(
        &self,
        from_seq: u64,
        limit: u32,
    ) -> Result<Vec<AuditLine>, StoreError> {
        match &self.backend {
            ReadBackend::Sqlite(readers) => {
                readers.read_blocking(|c| sqlite::read::audit_lines(c, from_seq, limit))
            }
        }
    }

    /// All certificates after `after`, with their places, for code that may block.
    pub(crate) fn certificates_blocking(
        &self,
        after: Option<Cursor>,
        limit: u32,
    ) -> Result<Vec<(Cursor, IssuedCertificate)>, StoreError> {
        let after = after.map_or(0, |cursor| cursor.0);
        match &self.backend {
            ReadBackend::Sqlite(readers) => {
                readers.read_blocking(|c| sqlite::read::certificates_after(c, after, limit))
            }
        }
    }
}
