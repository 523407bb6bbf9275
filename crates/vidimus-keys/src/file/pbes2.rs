//! Encryption of a PKCS#8 key under a secret (RFC 8018 §6.2, RFC 7914).
#![warn(clippy::indexing_slicing, clippy::arithmetic_side_effects)]

use aws_lc_rs::rand;
use pkcs8::{
    EncryptedPrivateKeyInfoRef, Error, PrivateKeyInfoRef,
    pkcs5::{
        self,
        pbes2::{EncryptionScheme, Kdf, Parameters, Salt, ScryptParams},
    },
};
use zeroize::Zeroizing;

/// scrypt's N, r and p. 128 * N * r is the memory: 16 MiB.
const COST: u64 = 1 << 14;
const BLOCK_SIZE: u16 = 8;
const PARALLELIZATION: u16 = 5;

/// The most bytes that scrypt may fill for one file, all passes together: six times ours.
const MAX_WORK: u64 = 512 * 1024 * 1024;
/// The most iterations of PBKDF2.
const MAX_ITERATIONS: u32 = 10_000_000;

/// Why a key was not encrypted or decrypted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EncryptionError {
    /// The random source failed.
    #[error("no random bytes to be had")]
    Random,
    /// Not the structure of an encrypted key.
    #[error("not an encrypted PKCS#8 key")]
    Structure,
    /// An algorithm that isn't supported.
    #[error("encryption is {found}; accepted: PBES2 with scrypt or PBKDF2-HMAC-SHA-2, and AES")]
    Algorithm {
        /// What it is, as the library names it.
        found: String,
    },
    /// Parameters that would cost more than any file of ours: a damaged or hostile one.
    #[error("key derivation asks for more memory or time than any key file needs")]
    Cost,
    /// The secret doesn't fit.
    #[error("the secret does not fit")]
    WrongSecret,
}

/// Encrypts a PKCS#8 key.
pub(super) fn encrypt(pkcs8: &[u8], secret: &[u8]) -> Result<Vec<u8>, EncryptionError> {
    let mut salt = [0; 16];
    let mut iv = [0; 16];
    rand::fill(&mut salt).map_err(|_| EncryptionError::Random)?;
    rand::fill(&mut iv).map_err(|_| EncryptionError::Random)?;
    let parameters = Parameters {
        kdf: Kdf::Scrypt(ScryptParams {
            salt: Salt::new(salt).map_err(|_| EncryptionError::Structure)?,
            cost_parameter: COST,
            block_size: BLOCK_SIZE,
            parallelization: PARALLELIZATION,
            key_length: None,
        }),
        encryption: EncryptionScheme::Aes256Cbc { iv },
    };
    let key = PrivateKeyInfoRef::try_from(pkcs8).map_err(|_| EncryptionError::Structure)?;
    let encrypted = key
        .encrypt_with_params(parameters, secret)
        .map_err(because)?;
    Ok(encrypted.as_bytes().to_vec())
}

/// Decrypts a PKCS#8 key.
pub(super) fn decrypt(der: &[u8], secret: &[u8]) -> Result<Zeroizing<Vec<u8>>, EncryptionError> {
    let encrypted =
        EncryptedPrivateKeyInfoRef::try_from(der).map_err(|_| EncryptionError::Structure)?;
    check_cost(&encrypted.encryption_algorithm)?;
    let key = encrypted.decrypt(secret).map_err(because)?;
    Ok(Zeroizing::new(key.as_bytes().to_vec()))
}

/// What kind of key a PKCS#8 structure holds, for people; `None` where it holds none.
pub(super) fn key_kind(pkcs8: &[u8]) -> Option<String> {
    let key = PrivateKeyInfoRef::try_from(pkcs8).ok()?;
    let algorithm = key.algorithm.oid.to_string();
    let curve = key
        .algorithm
        .parameters_oid()
        .map(|curve| curve.to_string());
    Some(match (algorithm.as_str(), curve.as_deref()) {
        ("1.2.840.10045.2.1", Ok("1.2.840.10045.3.1.7")) => "EC P-256".to_owned(),
        ("1.2.840.10045.2.1", Ok("1.3.132.0.34")) => "EC P-384, inconsistent".to_owned(),
        ("1.2.840.10045.2.1", Ok("1.3.132.0.35")) => "EC P-521".to_owned(),
        ("1.2.840.113549.1.1.1", _) => "RSA, inconsistent or of an unusual size".to_owned(),
        ("1.3.101.112", _) => "Ed25519".to_owned(),
        (_, Ok(curve)) => format!("{algorithm} on {curve}"),
        (_, Err(_)) => algorithm,
    })
}

/// Bounds what a file can make us spend; also, the library panics on a cost of 0.
fn check_cost(scheme: &pkcs5::EncryptionScheme) -> Result<(), EncryptionError> {
    let Some(parameters) = scheme.pbes2() else {
        return Err(EncryptionError::Algorithm {
            found: scheme.oid().to_string(),
        });
    };
    let affordable = match &parameters.kdf {
        Kdf::Scrypt(scrypt) => {
            let work = 128_u64
                .checked_mul(scrypt.cost_parameter)
                .and_then(|bytes| bytes.checked_mul(u64::from(scrypt.block_size)))
                .and_then(|bytes| bytes.checked_mul(u64::from(scrypt.parallelization)));
            scrypt.cost_parameter.is_power_of_two()
                && scrypt.cost_parameter > 1
                && work.is_some_and(|bytes| (1..=MAX_WORK).contains(&bytes))
        }
        Kdf::Pbkdf2(pbkdf2) => (1..=MAX_ITERATIONS).contains(&pbkdf2.iteration_count),
        _ => false,
    };
    if affordable {
        Ok(())
    } else {
        Err(EncryptionError::Cost)
    }
}

fn because(error: Error) -> EncryptionError {
    match error {
        Error::EncryptedPrivateKey(pkcs5::Error::UnsupportedAlgorithm { oid }) => {
            let found = oid.to_string();
            EncryptionError::Algorithm { found }
        }
        Error::EncryptedPrivateKey(pkcs5::Error::AlgorithmParametersInvalid { .. }) => {
            EncryptionError::Structure
        }
        // Wrong padding, or bytes that aren't DER: the secret was another one.
        _ => EncryptionError::WrongSecret,
    }
}
