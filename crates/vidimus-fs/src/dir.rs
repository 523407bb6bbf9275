//! Folders that only their owner may enter.

use std::fs::{self, DirBuilder, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use crate::durable::{self, WriteError, folder_of};

/// The mode of a private folder.
const PRIVATE: u32 = 0o700;

/// Why a folder can't be used for secrets.
#[derive(Debug, thiserror::Error)]
pub enum DirError {
    /// The folder could not be made.
    #[error("create the folder {path}")]
    Create {
        /// The folder.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// The folder could not be looked at.
    #[error("look at the folder {path}")]
    Inspect {
        /// The folder.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// Something else is at the path.
    #[error("{path} is not a folder")]
    NotAFolder {
        /// The path.
        path: PathBuf,
    },
    /// Others may enter or read it.
    #[error("the folder {path} has mode {found:04o}; accepted: 0700 or less (chmod 700 {path})")]
    Open {
        /// The folder.
        path: PathBuf,
        /// Its permission bits.
        found: u32,
    },
    /// It belongs to another user, who can change what is in it.
    #[error("the folder {path} belongs to user {found}, this process runs as user {accepted}")]
    Owner {
        /// The folder.
        path: PathBuf,
        /// The owner's user id.
        found: u32,
        /// This process's effective user id.
        accepted: u32,
    },
    /// It was made, but is not certain to survive a power cut.
    #[error(transparent)]
    Sync(#[from] WriteError),
}

/// Makes `path` with mode 0700, and the folders above it that are missing, with the same mode. A
/// folder that exists is checked instead ([`require_private`]), never changed.
///
/// # Errors
/// [`DirError`].
pub fn create_private(path: impl AsRef<Path>) -> Result<(), DirError> {
    let path = path.as_ref();
    let above = folder_of(path);
    if path != above && !above.exists() {
        create_private(above)?;
    }
    match DirBuilder::new().mode(PRIVATE).create(path) {
        Ok(()) => {
            // The umask may have taken bits away from the owner too.
            fs::set_permissions(path, Permissions::from_mode(PRIVATE)).map_err(|source| {
                DirError::Create {
                    path: path.to_owned(),
                    source,
                }
            })?;
            durable::sync_folder(above)?;
            Ok(())
        }
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => require_private(path),
        Err(source) => Err(DirError::Create {
            path: path.to_owned(),
            source,
        }),
    }
}

/// Checks that `path` is a folder of this process's user that nobody else may enter.
///
/// # Errors
/// [`DirError`], with what was found and what is accepted.
pub fn require_private(path: impl AsRef<Path>) -> Result<(), DirError> {
    let path = path.as_ref();
    let metadata = fs::metadata(path).map_err(|source| DirError::Inspect {
        path: path.to_owned(),
        source,
    })?;
    if !metadata.is_dir() {
        return Err(DirError::NotAFolder {
            path: path.to_owned(),
        });
    }
    let found = metadata.permissions().mode() & 0o7777;
    if found & 0o077 != 0 {
        return Err(DirError::Open {
            path: path.to_owned(),
            found,
        });
    }
    let accepted = rustix::process::geteuid().as_raw();
    if metadata.uid() != accepted {
        return Err(DirError::Owner {
            path: path.to_owned(),
            found: metadata.uid(),
            accepted,
        });
    }
    Ok(())
}
