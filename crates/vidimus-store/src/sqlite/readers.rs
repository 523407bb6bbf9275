//! The connections that only read.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use rusqlite::{Connection, ErrorCode, OpenFlags};
use tokio::sync::Semaphore;
use tokio::task;

use super::{log_path, schema};
use crate::error::{Cause, OpenError, StoreError};

/// How many reads run at a time; more wait.
const READERS: usize = 4;

/// A pool of read-only connections to one database.
#[derive(Debug)]
pub(crate) struct Readers {
    path: PathBuf,
    mode: Mode,
    idle: Mutex<Vec<Connection>>,
    permits: Semaphore,
}

/// How the file is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    /// As a database that somebody may be writing to.
    Shared,
    /// As a file that nobody changes: a copy on a medium that can't be written to, where SQLite
    /// could not make its index of the write-ahead log (and there is no such log).
    Immutable,
}

impl Readers {
    pub(crate) fn open(path: &Path) -> Result<Self, OpenError> {
        if let Err(error) = fs::metadata(path)
            && error.kind() == io::ErrorKind::NotFound
        {
            return Err(OpenError::NotFound {
                path: path.to_owned(),
            });
        }
        let failed = |source| OpenError::Database {
            path: path.to_owned(),
            source: Cause::new(source),
        };
        let (mode, connection) = match connect(path, Mode::Shared) {
            Ok(connection) => (Mode::Shared, connection),
            Err(error) if is_unwritable(&error) && !log_path(path).exists() => {
                let connection = connect(path, Mode::Immutable).map_err(failed)?;
                (Mode::Immutable, connection)
            }
            Err(error) if error.sqlite_error_code() == Some(ErrorCode::NotADatabase) => {
                return Err(OpenError::NotAStore {
                    path: path.to_owned(),
                });
            }
            Err(error) => return Err(failed(error)),
        };
        if schema::check(&connection, path)? == 0 {
            return Err(OpenError::NotAStore {
                path: path.to_owned(),
            });
        }
        Ok(Self {
            path: path.to_owned(),
            mode,
            idle: Mutex::new(vec![connection]),
            permits: Semaphore::new(READERS),
        })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Runs `query` on a thread that may block.
    pub(crate) async fn read<T: Send + 'static>(
        self: &Arc<Self>,
        query: impl FnOnce(&Connection) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let permit = self
            .permits
            .acquire()
            .await
            .map_err(|_| StoreError::Closed)?;
        let readers = Arc::clone(self);
        let result = task::spawn_blocking(move || readers.read_blocking(query)).await;
        drop(permit);
        result.map_err(|_| StoreError::Closed)?
    }

    /// Runs `query` here.
    pub(crate) fn read_blocking<T>(
        &self,
        query: impl FnOnce(&Connection) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        if self.permits.is_closed() {
            return Err(StoreError::Closed);
        }
        let idle = self
            .idle
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .pop();
        let connection = match idle {
            Some(connection) => connection,
            None => connect(&self.path, self.mode).map_err(|source| StoreError::Read {
                what: "anything",
                source: Cause::new(source),
            })?,
        };
        let result = query(&connection);
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < READERS && !self.permits.is_closed() {
            idle.push(connection);
        }
        result
    }

    /// Closes all connections that are idle now, and the others when they become so.
    pub(crate) fn close(&self) {
        self.permits.close();
        self.idle
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clear();
    }
}

fn connect(path: &Path, mode: Mode) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = match mode {
        Mode::Shared => Connection::open_with_flags(path, flags)?,
        Mode::Immutable => {
            Connection::open_with_flags(immutable_uri(path), flags | OpenFlags::SQLITE_OPEN_URI)?
        }
    };
    connection.execute_batch(
        "PRAGMA busy_timeout = 5000;
         PRAGMA trusted_schema = OFF;
         PRAGMA temp_store = MEMORY;",
    )?;
    // The file is only looked at with the first query; a failure belongs here.
    connection.query_row("SELECT count(*) FROM sqlite_schema", [], |_row| Ok(()))?;
    Ok(connection)
}

fn immutable_uri(path: &Path) -> String {
    let mut uri = String::from("file:");
    for byte in path.as_os_str().as_encoded_bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'/' | b'-' | b'_' | b'.' | b'~' => {
                uri.push(char::from(*byte));
            }
            other => uri.push_str(&format!("%{other:02X}")),
        }
    }
    uri.push_str("?immutable=1");
    uri
}

fn is_unwritable(error: &rusqlite::Error) -> bool {
    matches!(
        error.sqlite_error_code(),
        Some(ErrorCode::CannotOpen | ErrorCode::ReadOnly | ErrorCode::PermissionDenied)
    )
}
