//! The key that signs the log, and the seed it comes from.

use std::fmt;
use std::str::FromStr;

use aws_lc_rs::error::Unspecified;
use aws_lc_rs::hkdf;
use aws_lc_rs::rand::SecureRandom;
use aws_lc_rs::signature::{ED25519, Ed25519KeyPair, KeyPair, UnparsedPublicKey};
use data_encoding::{BASE64_NOPAD, HEXLOWER, HEXLOWER_PERMISSIVE};
use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

/// Keeps this key apart from any other that may come from the same seed (RFC 5869 §3.2).
const LABEL: &[u8] = b"vidimus.dev/audit-signer/v1";

/// Why a seed or public key could not be read or made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SeedError {
    /// The text is not a value of 32 bytes.
    #[error("expected 64 hex digits (32 bytes)")]
    NotHex,
    /// The system gave no random bytes.
    #[error("no random bytes to be had")]
    Random,
}

/// 32 random bytes from which the log's key is derived. Whoever has them can write a log of their
/// own that verifies; they are kept apart from the CA's key.
#[derive(Zeroize, ZeroizeOnDrop)]
pub struct AuditSeed([u8; 32]);

impl AuditSeed {
    /// A new seed.
    ///
    /// # Errors
    /// [`SeedError::Random`].
    pub fn generate(random: &dyn SecureRandom) -> Result<Self, SeedError> {
        let mut seed = Self([0; 32]);
        random
            .fill(&mut seed.0)
            .map_err(|Unspecified| SeedError::Random)?;
        Ok(seed)
    }

    /// The seed with these bytes.
    #[must_use]
    pub fn from_bytes(bytes: &[u8; 32]) -> Self {
        Self(*bytes)
    }

    /// Reads what [`AuditSeed::to_hex`] wrote; white space around it is ignored.
    ///
    /// # Errors
    /// [`SeedError::NotHex`].
    pub fn from_hex(text: &str) -> Result<Self, SeedError> {
        let bytes = Zeroizing::new(
            HEXLOWER_PERMISSIVE
                .decode(text.trim().as_bytes())
                .map_err(|_| SeedError::NotHex)?,
        );
        let bytes: &[u8; 32] = bytes.as_slice().try_into().map_err(|_| SeedError::NotHex)?;
        Ok(Self(*bytes))
    }

    /// The seed as 64 hex digits, for the file it is kept in.
    #[must_use]
    pub fn to_hex(&self) -> Zeroizing<String> {
        Zeroizing::new(HEXLOWER.encode(&self.0))
    }

    /// The key that signs the log: Ed25519 (RFC 8032) from HKDF-SHA256 (RFC 5869) of the seed,
    /// without salt, with a label of its own.
    #[must_use]
    #[expect(
        clippy::missing_panics_doc,
        reason = "the lengths are constants that fit"
    )]
    pub fn key(&self) -> AuditKey {
        let mut private = Zeroizing::new([0; 32]);
        hkdf::Salt::new(hkdf::HKDF_SHA256, &[])
            .extract(&self.0)
            .expand(&[LABEL], hkdf::HKDF_SHA256)
            .and_then(|key| key.fill(private.as_mut_slice()))
            .expect("HKDF-SHA256 can give 32 bytes");
        AuditKey {
            pair: Ed25519KeyPair::from_seed_unchecked(private.as_slice())
                .expect("any 32 bytes are an Ed25519 private key"),
        }
    }
}

impl fmt::Debug for AuditSeed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AuditSeed([redacted])")
    }
}

/// The private key that signs the log.
pub struct AuditKey {
    pair: Ed25519KeyPair,
}

impl AuditKey {
    /// The key that checks what this one signs.
    #[must_use]
    pub fn public(&self) -> AuditPublicKey {
        let mut bytes = [0; 32];
        bytes.copy_from_slice(self.pair.public_key().as_ref());
        AuditPublicKey(bytes)
    }

    /// The signature of an entry's JSON bytes, in unpadded base64 as it stands in the line.
    pub(crate) fn sign(&self, json: &[u8]) -> String {
        BASE64_NOPAD.encode(self.pair.sign(json).as_ref())
    }
}

impl fmt::Debug for AuditKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AuditKey")
            .field("public", &self.public())
            .finish_non_exhaustive()
    }
}

/// The public key of a log. Its text form is 64 lower-case hex digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct AuditPublicKey(pub [u8; 32]);

impl AuditPublicKey {
    /// Whether `signature` (raw, 64 bytes) is this key's over `json`.
    pub(crate) fn verifies(&self, json: &[u8], signature: &[u8]) -> bool {
        UnparsedPublicKey::new(&ED25519, self.0)
            .verify(json, signature)
            .is_ok()
    }
}

impl fmt::Display for AuditPublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&HEXLOWER.encode(&self.0))
    }
}

impl fmt::Debug for AuditPublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AuditPublicKey({self})")
    }
}

impl FromStr for AuditPublicKey {
    type Err = SeedError;

    fn from_str(text: &str) -> Result<Self, SeedError> {
        let bytes = HEXLOWER_PERMISSIVE
            .decode(text.trim().as_bytes())
            .map_err(|_| SeedError::NotHex)?;
        bytes.try_into().map(Self).map_err(|_| SeedError::NotHex)
    }
}
