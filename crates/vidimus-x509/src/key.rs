//! Public keys, and which of them this CA certifies.

use std::fmt;

/// A kind of key that Vidimus makes and signs with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum KeyAlgorithm {
    /// ECDSA on P-384.
    EcdsaP384,
    /// RSA of 3072 bits.
    Rsa3072,
    /// RSA of 4096 bits.
    Rsa4096,
}

/// Why a subject key isn't certified.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("subject key is {found}; accepted: {accepted}")]
pub struct KeyPolicyError {
    /// The key, as people call it: `EC P-256`, `RSA 2048`.
    pub found: String,
    /// What would have been taken.
    pub accepted: &'static str,
}

impl fmt::Display for KeyAlgorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::EcdsaP384 => "ECDSA-P384",
            Self::Rsa3072 => "RSA-3072",
            Self::Rsa4096 => "RSA-4096",
        })
    }
}
