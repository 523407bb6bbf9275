//! A private key in an encrypted PKCS#8 file.

use std::path::{Path, PathBuf};

use vidimus_x509::{
    key::KeyAlgorithm,
    signer::{SignError, SignatureAlgorithm, Signer},
};
use zeroize::Zeroizing;

use crate::Secret;

/// Why a key was not made, saved or opened.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// The library failed to make a key.
    #[error("failed to make a key")]
    Generate,
    /// The secret doesn't open this file.
    #[error("the secret does not open {path}")]
    WrongSecret {
        /// The file.
        path: PathBuf,
    },
}

/// A key held in memory, kept in an encrypted file.
#[derive(Debug)]
pub struct FileKey {
    spki_der: Vec<u8>,
}

impl FileKey {
    /// Makes a new key.
    ///
    /// # Errors
    /// The library failed.
    pub fn generate(algorithm: KeyAlgorithm) -> Result<Self, KeyError> {
        let _ = algorithm;
        todo!()
    }

    /// Writes it encrypted to a new file, mode 0600, durable when this returns. Never overwrites.
    ///
    /// # Errors
    /// The file exists or can't be written.
    pub fn save_new(&self, path: &Path, secret: &Secret) -> Result<(), KeyError> {
        let _ = (path, secret.expose());
        todo!()
    }

    /// Reads and unlocks a key file.
    ///
    /// # Errors
    /// Wrong secret, damaged or unreadable file, or a key that isn't P-384 or RSA 3072 or 4096.
    pub fn open(path: &Path, secret: &Secret) -> Result<Self, KeyError> {
        let _ = (path, secret);
        todo!()
    }

    /// What kind of key it is.
    #[must_use]
    pub fn key_algorithm(&self) -> KeyAlgorithm {
        todo!()
    }

    /// The key in the clear, as a `PRIVATE KEY` block: for a TLS server's `tls.key`, never for a CA.
    #[must_use]
    pub fn plaintext_pem(&self) -> Zeroizing<String> {
        todo!()
    }
}

impl Signer for FileKey {
    fn spki_der(&self) -> &[u8] {
        &self.spki_der
    }

    fn algorithm(&self) -> SignatureAlgorithm {
        todo!()
    }

    fn sign(&self, message: &[u8]) -> Result<Vec<u8>, SignError> {
        let _ = message;
        todo!()
    }
}
