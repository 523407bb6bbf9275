//! A private key, and the encrypted file it is kept in.
//!
//! The file is PKCS#8 under PBES2 (RFC 8018): scrypt with N 2^14, r 8, p 5, then AES-256-CBC. Those
//! are the strongest of OWASP's recommended scrypt parameters that the openssl program reads: it
//! stops at 32 MiB of memory. So `openssl pkey -in FILE` opens it with the same secret.

mod pbes2;

use std::path::{Path, PathBuf};

use aws_lc_rs::{
    encoding::{AsDer, Pkcs8V1Der, PublicKeyX509Der},
    rand::SystemRandom,
    rsa::{self, KeySize},
    signature::{self, ECDSA_P384_SHA384_ASN1_SIGNING, EcdsaKeyPair, KeyPair as _},
};
use vidimus_fs::durable::{self, Mode, WriteError};
use vidimus_x509::{
    key,
    pem::{self, PemError},
    signer::{SignError, SignatureAlgorithm, Signer},
};
use zeroize::Zeroizing;

pub use vidimus_x509::key::KeyAlgorithm;

use crate::{
    Secret,
    private::{self, PrivateFileError},
};

/// The largest key file that is read; one of RSA 4096 has 3.4 KiB.
const MAX_KEY_FILE: usize = 64 * 1024;

const LABEL: &str = "ENCRYPTED PRIVATE KEY";

/// Why a key was not made, saved or opened.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// The crypto library failed to make or encode a key.
    #[error("failed to make a key of {algorithm}")]
    Generate {
        /// Of which kind.
        algorithm: KeyAlgorithm,
    },
    /// The key could not be encrypted.
    #[error("encrypt key for {path}")]
    Encrypt {
        /// The file it was for.
        path: PathBuf,
        /// Why.
        #[source]
        source: EncryptionError,
    },
    /// The key file could not be written; one that exists is never overwritten.
    #[error("write key file")]
    Write {
        /// Which, and why.
        #[source]
        source: WriteError,
    },
    /// The key file could not be read, or others may read it as well.
    #[error("key file")]
    File(
        #[from]
        #[source]
        PrivateFileError,
    ),
    /// Not PEM with one encrypted private key.
    #[error("{path} is not an encrypted private key in PEM")]
    Pem {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: PemError,
    },
    /// Damaged, or encrypted in a way that isn't supported.
    #[error("{path} can't be decrypted")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: EncryptionError,
    },
    /// The secret doesn't open this file (or its encrypted part is damaged: the two look the same).
    #[error("the secret does not open {path}")]
    WrongSecret {
        /// The file.
        path: PathBuf,
    },
    /// A key of another kind.
    #[error("{path} holds a key of kind {found}; accepted: ECDSA-P384, RSA-3072, RSA-4096")]
    Unsupported {
        /// The file.
        path: PathBuf,
        /// What it holds.
        found: String,
    },
}

pub use pbes2::EncryptionError;

/// A key held in memory, kept in an encrypted file.
pub struct FileKey {
    algorithm: KeyAlgorithm,
    key: Key,
    spki_der: Vec<u8>,
    /// For [`FileKey::save_new`] and [`FileKey::plaintext_pem`].
    pkcs8: Zeroizing<Vec<u8>>,
}

enum Key {
    Ecdsa(EcdsaKeyPair),
    Rsa(rsa::KeyPair),
}

impl FileKey {
    /// Makes a new key.
    ///
    /// # Errors
    /// The crypto library failed.
    pub fn generate(algorithm: KeyAlgorithm) -> Result<Self, KeyError> {
        Self::try_generate(algorithm).ok_or(KeyError::Generate { algorithm })
    }

    /// Writes it encrypted to a new file, mode 0600, durable when this returns. Never overwrites.
    ///
    /// Takes some tenths of a second: the key derivation is slow on purpose.
    ///
    /// # Errors
    /// The file exists or can't be written.
    pub fn save_new(&self, path: &Path, secret: &Secret) -> Result<(), KeyError> {
        let encrypted = pbes2::encrypt(&self.pkcs8, secret.expose()).map_err(|source| {
            let path = path.to_owned();
            KeyError::Encrypt { path, source }
        })?;
        let text = pem::encode(LABEL, &encrypted);
        durable::create_new(path, text.as_bytes(), Mode::Private)
            .map_err(|source| KeyError::Write { source })
    }

    /// Reads and unlocks a key file.
    ///
    /// Takes some tenths of a second: the key derivation is slow on purpose.
    ///
    /// # Errors
    /// Wrong secret, damaged or unreadable file, or a key of another kind.
    pub fn open(path: &Path, secret: &Secret) -> Result<Self, KeyError> {
        let text = private::read(path, MAX_KEY_FILE)?;
        let der = pem::decode(LABEL, &text).map_err(|source| {
            let path = path.to_owned();
            KeyError::Pem { path, source }
        })?;
        let path = || path.to_owned();
        let pkcs8 = pbes2::decrypt(&der, secret.expose()).map_err(|source| match source {
            EncryptionError::WrongSecret => KeyError::WrongSecret { path: path() },
            source => KeyError::Damaged {
                path: path(),
                source,
            },
        })?;
        match Self::from_pkcs8(pkcs8) {
            Ok(key) => Ok(key),
            // One wrong secret in 256 leaves a padding that looks right around bytes that aren't a
            // key.
            Err(Unusable::NotAKey) => Err(KeyError::WrongSecret { path: path() }),
            Err(Unusable::Kind(found)) => Err(KeyError::Unsupported {
                path: path(),
                found,
            }),
        }
    }

    /// What kind of key it is.
    #[must_use]
    pub fn key_algorithm(&self) -> KeyAlgorithm {
        self.algorithm
    }

    /// The key in the clear, as a `PRIVATE KEY` block: for a TLS server's `tls.key`, never for a
    /// CA.
    #[must_use]
    pub fn plaintext_pem(&self) -> Zeroizing<String> {
        Zeroizing::new(pem::encode("PRIVATE KEY", &self.pkcs8))
    }

    fn try_generate(algorithm: KeyAlgorithm) -> Option<Self> {
        let rsa = |size| {
            let key = rsa::KeyPair::generate(size).ok()?;
            let pkcs8: Pkcs8V1Der<'_> = key.as_der().ok()?;
            Some(Zeroizing::new(pkcs8.as_ref().to_vec()))
        };
        let pkcs8 = match algorithm {
            KeyAlgorithm::EcdsaP384 => {
                let key = EcdsaKeyPair::generate(&ECDSA_P384_SHA384_ASN1_SIGNING).ok()?;
                Zeroizing::new(key.to_pkcs8v1().ok()?.as_ref().to_vec())
            }
            KeyAlgorithm::Rsa3072 => rsa(KeySize::Rsa3072)?,
            KeyAlgorithm::Rsa4096 => rsa(KeySize::Rsa4096)?,
        };
        Self::from_pkcs8(pkcs8).ok()
    }

    fn from_pkcs8(pkcs8: Zeroizing<Vec<u8>>) -> Result<Self, Unusable> {
        if let Ok(key) = EcdsaKeyPair::from_pkcs8(&ECDSA_P384_SHA384_ASN1_SIGNING, &pkcs8) {
            let spki: PublicKeyX509Der<'_> =
                key.public_key().as_der().map_err(|_| Unusable::NotAKey)?;
            return Ok(Self {
                algorithm: KeyAlgorithm::EcdsaP384,
                spki_der: spki.as_ref().to_vec(),
                key: Key::Ecdsa(key),
                pkcs8,
            });
        }
        let Ok(key) = rsa::KeyPair::from_pkcs8(&pkcs8) else {
            return Err(pbes2::key_kind(&pkcs8).map_or(Unusable::NotAKey, Unusable::Kind));
        };
        let spki: PublicKeyX509Der<'_> =
            key.public_key().as_der().map_err(|_| Unusable::NotAKey)?;
        let spki_der = spki.as_ref().to_vec();
        let found = key::describe(&spki_der);
        let algorithm = match found.as_str() {
            "RSA 3072" => KeyAlgorithm::Rsa3072,
            "RSA 4096" => KeyAlgorithm::Rsa4096,
            _ => return Err(Unusable::Kind(found)),
        };
        Ok(Self {
            algorithm,
            spki_der,
            key: Key::Rsa(key),
            pkcs8,
        })
    }
}

enum Unusable {
    NotAKey,
    Kind(String),
}

impl Signer for FileKey {
    fn spki_der(&self) -> &[u8] {
        &self.spki_der
    }

    fn algorithm(&self) -> SignatureAlgorithm {
        match self.key {
            Key::Ecdsa(_) => SignatureAlgorithm::EcdsaP384Sha384,
            Key::Rsa(_) => SignatureAlgorithm::RsaPkcs1Sha384,
        }
    }

    fn sign(&self, message: &[u8]) -> Result<Vec<u8>, SignError> {
        let failed = |source| SignError::Key {
            source: Box::new(source),
        };
        let random = SystemRandom::new();
        match &self.key {
            Key::Ecdsa(key) => {
                let signature = key.sign(&random, message).map_err(failed)?;
                Ok(signature.as_ref().to_vec())
            }
            Key::Rsa(key) => {
                let mut signature = vec![0; key.public_modulus_len()];
                key.sign(
                    &signature::RSA_PKCS1_SHA384,
                    &random,
                    message,
                    &mut signature,
                )
                .map_err(failed)?;
                Ok(signature)
            }
        }
    }
}

impl std::fmt::Debug for FileKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FileKey")
            .field("algorithm", &self.algorithm)
            .finish_non_exhaustive()
    }
}
