//! Files that only their owner may read.

use std::{
    fs::{self, File},
    io::{self, Read},
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use zeroize::Zeroizing;

/// Why a private file was not read.
#[derive(Debug, thiserror::Error)]
pub enum PrivateFileError {
    /// A folder, a device or a pipe.
    #[error("{path} is not a regular file")]
    NotRegular {
        /// The file.
        path: PathBuf,
    },
    /// Others than its owner may read or write it.
    #[error("{path} has mode {mode:04o}; accepted: 0600 or 0400 (chmod 600 {path})")]
    Exposed {
        /// The file.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
    /// Larger than it may be.
    #[error("{path} is too large; accepted: at most {accepted} bytes")]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// The most.
        accepted: usize,
    },
    /// It could not be read.
    #[error("read {path}")]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
}

/// Reads a file of at most `accepted` bytes that only its owner may read. The check is made on the
/// very file that is read.
pub(crate) fn read(path: &Path, accepted: usize) -> Result<Zeroizing<Vec<u8>>, PrivateFileError> {
    let failed = |source| PrivateFileError::Read {
        path: path.to_owned(),
        source,
    };
    let not_regular = || PrivateFileError::NotRegular {
        path: path.to_owned(),
    };
    // Opening a pipe would wait for a writer, so this comes first.
    if !fs::metadata(path).map_err(failed)?.is_file() {
        return Err(not_regular());
    }
    let file = File::open(path).map_err(failed)?;
    let metadata = file.metadata().map_err(failed)?;
    if !metadata.is_file() {
        return Err(not_regular());
    }
    let mode = metadata.permissions().mode() & 0o7777;
    if mode & 0o077 != 0 {
        return Err(PrivateFileError::Exposed {
            path: path.to_owned(),
            mode,
        });
    }
    // Room for all of it and one byte more: no growth leaves a copy behind, and what is too large
    // is told from what just fits.
    let most = accepted.saturating_add(1);
    let mut bytes = Zeroizing::new(Vec::with_capacity(most));
    file.take(u64::try_from(most).unwrap_or(u64::MAX))
        .read_to_end(&mut bytes)
        .map_err(failed)?;
    if bytes.len() > accepted {
        return Err(PrivateFileError::TooLarge {
            path: path.to_owned(),
            accepted,
        });
    }
    Ok(bytes)
}
