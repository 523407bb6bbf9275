//! The reading half of the store.

use std::path::PathBuf;
use std::sync::Arc;

use vidimus_audit::{AuditPublicKey, Head};
use vidimus_x509::serial::Serial;

use crate::certificate::{Cursor, IssuedCertificate, IssuedFilter, Page};
use crate::config::StoredConfig;
use crate::error::StoreError;
use crate::identity::Identity;
use crate::sqlite;

#[cfg(doc)]
use crate::store::Store;

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
    pub(crate) fn of_sqlite(readers: Arc<sqlite::Readers>) -> Self {
        Self {
            backend: ReadBackend::Sqlite(readers),
        }
    }

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
