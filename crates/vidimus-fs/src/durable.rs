//! One file, replaced as a whole or not at all.
//!
//! Invariant: whoever opens the path, at any moment and after any crash, finds the old content or
//! the new one, never a mixture, and never less than a whole file. A crash may leave a temporary
//! file beside it (`.<name>.<pid>-<n>.tmp`, with the mode of the file it was to become).

use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicU64, Ordering};

/// Who may read a file. The process's umask is not asked: the mode is set as it stands here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// 0600: the owner alone.
    Private,
    /// 0644: everybody reads, the owner writes.
    Public,
}

impl Mode {
    /// The permission bits.
    #[must_use]
    pub fn bits(self) -> u32 {
        match self {
            Self::Private => 0o600,
            Self::Public => 0o644,
        }
    }
}

/// Why a file was not written. The path's earlier content, if there was any, is still there.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// [`create_new`] found something at the path.
    #[error("{path} exists already and is left as it is")]
    Exists {
        /// The path asked for.
        path: PathBuf,
    },
    /// The path names no file in a folder (it is empty, `/` or ends in `..`).
    #[error("{path} does not name a file")]
    NotAFileName {
        /// The path asked for.
        path: PathBuf,
    },
    /// Making or filling the temporary file failed.
    #[error("write {path}")]
    Write {
        /// The path asked for.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// The complete temporary file could not take the path's name.
    #[error("put {path} in its place")]
    Place {
        /// The path asked for.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// The file is in its place, but the folder could not be synced: after a power cut it may be
    /// the old one again.
    #[error("sync the folder {path}")]
    SyncFolder {
        /// The folder.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
}

/// Writes `bytes` to `path`, replacing what is there in one step. When it returns, the content
/// survives a power cut.
///
/// # Errors
/// [`WriteError`]; before [`WriteError::SyncFolder`] the old content is untouched.
pub fn write(path: impl AsRef<Path>, bytes: &[u8], mode: Mode) -> Result<(), WriteError> {
    let path = path.as_ref();
    let temporary = Temporary::fill(path, bytes, mode)?;
    fs::rename(&temporary.path, path).map_err(|source| WriteError::Place {
        path: path.to_owned(),
        source,
    })?;
    temporary.placed();
    sync_folder_of(path)
}

/// Writes `bytes` to `path`, which must not exist yet: a key is never overwritten.
///
/// # Errors
/// [`WriteError::Exists`] if there is anything at the path, be it a dangling link.
pub fn create_new(path: impl AsRef<Path>, bytes: &[u8], mode: Mode) -> Result<(), WriteError> {
    let path = path.as_ref();
    let temporary = Temporary::fill(path, bytes, mode)?;
    // A hard link, unlike a rename, fails when the name is taken; the temporary name goes away
    // with `temporary`.
    fs::hard_link(&temporary.path, path).map_err(|source| {
        let path = path.to_owned();
        match source.kind() {
            io::ErrorKind::AlreadyExists => WriteError::Exists { path },
            _ => WriteError::Place { path, source },
        }
    })?;
    drop(temporary);
    sync_folder_of(path)
}

/// Syncs a folder, so that names made, renamed or removed in it survive a power cut.
///
/// # Errors
/// [`WriteError::SyncFolder`].
pub fn sync_folder(path: impl AsRef<Path>) -> Result<(), WriteError> {
    let path = path.as_ref();
    File::open(path)
        .and_then(|folder| folder.sync_all())
        .map_err(|source| WriteError::SyncFolder {
            path: path.to_owned(),
            source,
        })
}

/// The folder a path is in; `.` for a bare file name.
pub(crate) fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    }
}

/// A name in `path`'s folder that no other writer, thread or process, uses.
pub(crate) fn temporary_beside(path: &Path, name: &OsStr) -> PathBuf {
    static COUNTER: AtomicU64 = AtomicU64::new(0);
    let mut temporary = OsStr::new(".").to_owned();
    temporary.push(name);
    let count = COUNTER.fetch_add(1, Ordering::Relaxed);
    temporary.push(format!(".{}-{count}.tmp", process::id()));
    folder_of(path).join(temporary)
}

fn sync_folder_of(path: &Path) -> Result<(), WriteError> {
    sync_folder(folder_of(path))
}

/// A complete, synced file under a temporary name; removed when dropped, unless it was placed.
struct Temporary {
    path: PathBuf,
    remove: bool,
}

impl Temporary {
    fn fill(target: &Path, bytes: &[u8], mode: Mode) -> Result<Self, WriteError> {
        let name = target.file_name().ok_or_else(|| WriteError::NotAFileName {
            path: target.to_owned(),
        })?;
        // A leftover of an earlier process that had our id would be in the way: take the next name.
        let (temporary, mut file) = loop {
            let path = temporary_beside(target, name);
            let opened = OpenOptions::new()
                .write(true)
                .create_new(true)
                .mode(Mode::Private.bits())
                .open(&path);
            match opened {
                Ok(file) => break (Self { path, remove: true }, file),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(source) => {
                    return Err(WriteError::Write {
                        path: target.to_owned(),
                        source,
                    });
                }
            }
        };
        fill_and_sync(&mut file, bytes, mode).map_err(|source| WriteError::Write {
            path: target.to_owned(),
            source,
        })?;
        Ok(temporary)
    }

    fn placed(mut self) {
        self.remove = false;
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if self.remove {
            // Nothing better can be done with a failure here: the file is a leftover, not content.
            let _leftover = fs::remove_file(&self.path);
        }
    }
}

fn fill_and_sync(file: &mut File, bytes: &[u8], mode: Mode) -> io::Result<()> {
    file.write_all(bytes)?;
    // Wider permissions only once the content is there, and never narrowed by the umask.
    file.set_permissions(Permissions::from_mode(mode.bits()))?;
    file.sync_all()
}
