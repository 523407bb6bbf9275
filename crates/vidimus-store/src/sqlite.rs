//! The SQLite back end: one connection that writes, on a thread of its own, and a few that only
//! read.
//!
//! The journal is a write-ahead log with `synchronous=FULL`: every commit is synced before it
//! returns, and readers are never in the writer's way.

pub(crate) mod read;
mod readers;
mod schema;
mod transaction;
mod write;
mod writer;

use std::fs::{self, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rusqlite::{Connection, ErrorCode, ffi};
use tokio::sync::watch;
use vidimus_audit::AuditKey;
use vidimus_fs::durable;
use vidimus_fs::lock::FileLock;

use crate::error::{Cause, OpenError, StoreError};
use crate::store::Options;
use transaction::{Chain, Write};
use writer::Writer;

pub(crate) use readers::Readers;

/// The open database. Fields are dropped in order: the writer must be the last to close its
/// connection, so that the write-ahead log is folded into the database, and the lock goes last.
#[derive(Debug)]
pub(crate) struct Sqlite {
    readers: Arc<Readers>,
    writer: Writer,
    _lock: FileLock,
}

impl Sqlite {
    pub(crate) fn open(path: &Path, key: AuditKey, options: Options) -> Result<Self, OpenError> {
        let lock = FileLock::acquire(lock_path(path))?;
        ensure_private_file(path)?;
        let connection = connect(path, &options)?;
        schema::migrate(&connection, path)?;
        schema::bind_audit_key(&connection, path, &key.public())?;
        let chain = Chain::load(&connection, key, options.clock)?;
        let readers = Arc::new(Readers::open(path)?);
        let writer = Writer::start(connection, chain, path)?;
        Ok(Self {
            readers,
            writer,
            _lock: lock,
        })
    }

    pub(crate) fn readers(&self) -> &Arc<Readers> {
        &self.readers
    }

    pub(crate) async fn write<W: Write>(&self, write: W) -> Result<W::Reply, StoreError> {
        self.writer.write(write).await
    }

    pub(crate) fn committed(&self) -> watch::Receiver<u64> {
        self.writer.committed()
    }
}

impl Drop for Sqlite {
    fn drop(&mut self) {
        self.readers.close();
        self.writer.stop();
    }
}

fn lock_path(path: &Path) -> PathBuf {
    let mut lock = path.as_os_str().to_owned();
    lock.push(".lock");
    PathBuf::from(lock)
}

/// SQLite gives its log and index files the database's mode, so it is enough to make that right.
fn ensure_private_file(path: &Path) -> Result<(), OpenError> {
    let mode = durable::Mode::Private.bits();
    let failed = |source| OpenError::Create {
        path: path.to_owned(),
        source,
    };
    match OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(mode)
        .open(path)
    {
        Ok(file) => {
            file.set_permissions(Permissions::from_mode(mode))
                .map_err(failed)?;
            let folder = path.parent().filter(|folder| *folder != Path::new(""));
            durable::sync_folder(folder.unwrap_or_else(|| Path::new(".")))?;
        }
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            let found = fs::metadata(path).map_err(failed)?.permissions().mode() & 0o777;
            if found & 0o077 != 0 {
                tracing::warn!(path = %path.display(), mode = format!("{found:04o}"), "others could read the store; its mode is 0600 now");
                fs::set_permissions(path, Permissions::from_mode(mode)).map_err(failed)?;
            }
        }
        Err(error) => return Err(failed(error)),
    }
    Ok(())
}

fn connect(path: &Path, options: &Options) -> Result<Connection, OpenError> {
    let failed = |source| OpenError::Database {
        path: path.to_owned(),
        source: Cause::new(source),
    };
    let connection = Connection::open(path).map_err(failed)?;
    schema::check(&connection, path)?;
    connection.set_prepared_statement_cache_capacity(64);
    // A log of 32 MB before it is folded in: pages of the serial number's index, which are hit at
    // random, are then written once for many certificates.
    connection
        .execute_batch(
            "PRAGMA journal_mode = WAL;
             PRAGMA synchronous = FULL;
             PRAGMA busy_timeout = 5000;
             PRAGMA trusted_schema = OFF;
             PRAGMA temp_store = MEMORY;
             PRAGMA cache_size = -65536;
             PRAGMA journal_size_limit = 67108864;
             PRAGMA wal_autocheckpoint = 8000;",
        )
        .map_err(failed)?;
    if let Some(bytes) = options.max_bytes {
        let page: i64 = connection
            .query_row("PRAGMA page_size", [], |row| row.get(0))
            .map_err(failed)?;
        let pages = i64::try_from(bytes).unwrap_or(i64::MAX) / page.max(1);
        connection
            .query_row(&format!("PRAGMA max_page_count = {pages}"), [], |row| {
                row.get::<_, i64>(0)
            })
            .map_err(failed)?;
    }
    Ok(connection)
}

/// The write-ahead log of the database at `path`.
fn log_path(path: &Path) -> PathBuf {
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    PathBuf::from(log)
}

/// A failed write in the words of the store.
fn write_error(what: &'static str, path: &Path, error: rusqlite::Error) -> StoreError {
    let full = error.sqlite_error().is_some_and(|cause| {
        // The index of the write-ahead log is grown with plain writes that report no "disk full".
        cause.code == ErrorCode::DiskFull || cause.extended_code == ffi::SQLITE_IOERR_SHMSIZE
    });
    if full {
        return StoreError::Full {
            path: path.to_owned(),
        };
    }
    StoreError::Write {
        what,
        source: Cause::new(error),
    }
}

/// A failed read in the words of the store.
fn read_error(what: &'static str) -> impl FnOnce(rusqlite::Error) -> StoreError {
    move |error| StoreError::Read {
        what,
        source: Cause::new(error),
    }
}
