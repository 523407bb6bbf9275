//! What unlocks a key file.

use std::path::{Path, PathBuf};

use zeroize::Zeroizing;

/// A passphrase, typed or read from a key file. Wiped on drop, never shown.
pub struct Secret(Zeroizing<Vec<u8>>);

/// Why a secret was not taken.
#[derive(Debug, thiserror::Error)]
pub enum SecretError {
    /// Shorter than it may be.
    #[error("secret has {found} bytes; accepted: at least {accepted}")]
    TooShort {
        /// Its length.
        found: usize,
        /// The least.
        accepted: usize,
    },
    /// The key file could not be read.
    #[error("read {path}")]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret(..)")
    }
}

impl Secret {
    /// A passphrase.
    ///
    /// # Errors
    /// It is too short.
    pub fn from_passphrase(passphrase: Zeroizing<String>) -> Result<Self, SecretError> {
        let _ = passphrase;
        todo!()
    }

    /// The whole content of a key file that nobody but its owner can read.
    ///
    /// # Errors
    /// Not a regular file, readable by others, too short, or unreadable.
    pub fn from_key_file(path: &Path) -> Result<Self, SecretError> {
        let _ = path;
        todo!()
    }

    /// Makes a key file with 32 random bytes in hex, mode 0600, and gives its secret. Never overwrites.
    ///
    /// # Errors
    /// The file exists or can't be written.
    pub fn create_key_file(path: &Path) -> Result<Self, SecretError> {
        let _ = path;
        todo!()
    }

    /// The bytes.
    pub(crate) fn expose(&self) -> &[u8] {
        &self.0
    }
}
