//! One process at a time.
//!
//! An advisory lock (`flock`) on a small file. The system gives it up when the process ends, however
//! it ends, so that there is never a stale lock to remove by hand; the file itself stays. The
//! file's content, the holder's process id, is only for the error message of the next one.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process;

use crate::durable::Mode;

/// Why a lock was not taken.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Another process (or another part of this one) holds it.
    #[error("{path} is in use by {}", Holder(*.holder))]
    Held {
        /// What is locked.
        path: PathBuf,
        /// The holder's process id, as it wrote it; absent if it had no time to.
        holder: Option<u32>,
    },
    /// The lock file could not be made, opened or locked.
    #[error("lock {path}")]
    Lock {
        /// What was to be locked.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
}

/// A folder that this value's holder uses alone, by a lock on `.lock` in it.
#[derive(Debug)]
pub struct DirLock {
    _lock: FileLock,
}

impl DirLock {
    /// Takes the lock, without waiting.
    ///
    /// # Errors
    /// [`LockError::Held`] names the folder and its holder.
    pub fn acquire(dir: impl AsRef<Path>) -> Result<Self, LockError> {
        let dir = dir.as_ref();
        FileLock::take(&dir.join(".lock"), dir).map(|lock| Self { _lock: lock })
    }
}

/// A lock on a file of its own, for what is not a whole folder.
#[derive(Debug)]
pub struct FileLock {
    file: File,
}

impl FileLock {
    /// Takes the lock on `path`, without waiting; the file is made if it doesn't exist.
    ///
    /// # Errors
    /// [`LockError::Held`] names the file and its holder.
    pub fn acquire(path: impl AsRef<Path>) -> Result<Self, LockError> {
        Self::take(path.as_ref(), path.as_ref())
    }

    fn take(path: &Path, subject: &Path) -> Result<Self, LockError> {
        let failed = |source| LockError::Lock {
            path: subject.to_owned(),
            source,
        };
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(Mode::Private.bits())
            .open(path)
            .map_err(failed)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(LockError::Held {
                    path: subject.to_owned(),
                    holder: holder(&mut file),
                });
            }
            Err(TryLockError::Error(source)) => return Err(failed(source)),
        }
        // Only a hint for others: a full disk, say, is no reason to refuse the lock we hold.
        let _hint = write_holder(&mut file);
        Ok(Self { file })
    }
}

impl Drop for FileLock {
    /// Lets go by name: a child that was just forked by another thread has a copy of the descriptor until it executes its
    /// program, and the lock would be held for as long.
    fn drop(&mut self) {
        // What fails here is let go when the file is closed.
        let _closed_next = self.file.unlock();
    }
}

fn write_holder(file: &mut File) -> io::Result<()> {
    file.set_len(0)?;
    file.rewind()?;
    writeln!(file, "{}", process::id())
}

fn holder(file: &mut File) -> Option<u32> {
    let mut text = String::new();
    file.take(32).read_to_string(&mut text).ok()?;
    text.trim().parse().ok()
}

struct Holder(Option<u32>);

impl std::fmt::Display for Holder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            Some(pid) if pid == process::id() => write!(f, "this process ({pid})"),
            Some(pid) => write!(f, "process {pid}"),
            None => f.write_str("another process"),
        }
    }
}
