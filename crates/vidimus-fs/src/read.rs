//! Reads with a bound.
//!
//! "Not found" is a variant of its own: whoever treats an absent file as a choice (a listener
//! without TLS files, a first start) must not mistake an unreadable one for it.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// Why a file was not read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// There is nothing at the path.
    #[error("{path} does not exist")]
    NotFound {
        /// The path asked for.
        path: PathBuf,
    },
    /// The file is larger than the caller accepts.
    #[error("{path} is larger than the {max_bytes} bytes accepted")]
    TooLarge {
        /// The path asked for.
        path: PathBuf,
        /// The bound.
        max_bytes: u64,
    },
    /// Any other failure: no permission, a folder, a broken disk.
    #[error("read {path}")]
    Read {
        /// The path asked for.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
}

/// Reads all of `path`, at most `max_bytes`.
///
/// # Errors
/// [`ReadError`]; [`ReadError::NotFound`] only if the system says that the file is absent.
pub fn bounded(path: impl AsRef<Path>, max_bytes: u64) -> Result<Vec<u8>, ReadError> {
    let path = path.as_ref();
    let failed = |source: io::Error| match source.kind() {
        io::ErrorKind::NotFound => ReadError::NotFound {
            path: path.to_owned(),
        },
        _ => ReadError::Read {
            path: path.to_owned(),
            source,
        },
    };
    let file = File::open(path).map_err(failed)?;
    let mut bytes = Vec::new();
    // One byte more than accepted tells a file of exactly `max_bytes` from a larger one; the size
    // that the file's metadata names may be out of date by the time it is read.
    file.take(max_bytes.saturating_add(1))
        .read_to_end(&mut bytes)
        .map_err(failed)?;
    if u64::try_from(bytes.len()).is_ok_and(|length| length <= max_bytes) {
        Ok(bytes)
    } else {
        Err(ReadError::TooLarge {
            path: path.to_owned(),
            max_bytes,
        })
    }
}
