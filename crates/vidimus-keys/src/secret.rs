//! What unlocks a key file.

use std::path::Path;

use aws_lc_rs::rand;
use vidimus_fs::durable::{self, Mode, WriteError};
use zeroize::Zeroizing;

use crate::private::{self, PrivateFileError};

/// The shortest passphrase, in bytes: it is typed, and only the key derivation slows a guess down.
pub const MIN_PASSPHRASE: usize = 12;

/// The shortest content of a key file, in bytes.
pub const MIN_KEY_FILE: usize = 16;

/// The longest secret, in bytes.
pub const MAX_SECRET: usize = 4096;

/// A passphrase, typed or read from a key file. Wiped on drop, never shown.
pub struct Secret(Zeroizing<Vec<u8>>);

/// Why a secret was not taken or made.
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
    /// Longer than [`MAX_SECRET`].
    #[error("secret is too long; accepted: at most {MAX_SECRET} bytes")]
    TooLong,
    /// The key file could not be read, or others may read it as well.
    #[error("key file")]
    File(
        #[from]
        #[source]
        PrivateFileError,
    ),
    /// The key file could not be written.
    #[error("write key file")]
    Write {
        /// Which, and why.
        #[source]
        source: WriteError,
    },
    /// The random source failed.
    #[error("no random bytes to be had")]
    Random,
}

impl Secret {
    /// A passphrase.
    ///
    /// # Errors
    /// Shorter than [`MIN_PASSPHRASE`] or longer than [`MAX_SECRET`].
    pub fn from_passphrase(passphrase: Zeroizing<String>) -> Result<Self, SecretError> {
        // The bytes move; the string they were is left empty.
        let mut passphrase = passphrase;
        let bytes = Zeroizing::new(std::mem::take(&mut *passphrase).into_bytes());
        Self::checked(bytes, MIN_PASSPHRASE)
    }

    /// The content of a key file that nobody but its owner can read; a line end at its end, which
    /// editors add, doesn't count.
    ///
    /// # Errors
    /// Not a regular file, open to others, shorter than [`MIN_KEY_FILE`], or unreadable.
    pub fn from_key_file(path: &Path) -> Result<Self, SecretError> {
        // Two more bytes are a line end.
        let mut bytes = private::read(path, MAX_SECRET + 2)?;
        for end in [b'\n', b'\r'] {
            if bytes.last() == Some(&end) {
                bytes.pop();
            }
        }
        Self::checked(bytes, MIN_KEY_FILE)
    }

    /// Makes a key file with 32 random bytes in hex, mode 0600, and gives its secret. Never
    /// overwrites.
    ///
    /// # Errors
    /// The file exists or can't be written.
    pub fn create_key_file(path: &Path) -> Result<Self, SecretError> {
        let mut random = Zeroizing::new([0_u8; 32]);
        rand::fill(random.as_mut()).map_err(|_| SecretError::Random)?;
        let mut text = Zeroizing::new(Vec::with_capacity(2 * random.len() + 1));
        for byte in random.iter() {
            text.extend(
                [byte >> 4, byte & 0xf].map(|digit| b"0123456789abcdef"[usize::from(digit)]),
            );
        }
        let secret = Self(Zeroizing::new(text.to_vec()));
        text.push(b'\n');
        durable::create_new(path, &text, Mode::Private)
            .map_err(|source| SecretError::Write { source })?;
        Ok(secret)
    }

    /// The bytes.
    pub(crate) fn expose(&self) -> &[u8] {
        &self.0
    }

    fn checked(bytes: Zeroizing<Vec<u8>>, accepted: usize) -> Result<Self, SecretError> {
        let found = bytes.len();
        if found < accepted {
            return Err(SecretError::TooShort { found, accepted });
        }
        if found > MAX_SECRET {
            return Err(SecretError::TooLong);
        }
        Ok(Self(bytes))
    }
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret(..)")
    }
}
