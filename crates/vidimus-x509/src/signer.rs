//! What a CA key can do, wherever it lives.

use std::fmt::Debug;

/// How a CA signs; fixed by its key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SignatureAlgorithm {
    /// `ecdsa-with-SHA384` by a P-384 key.
    EcdsaP384Sha384,
    /// `sha384WithRSAEncryption`.
    RsaPkcs1Sha384,
}

/// Why nothing was signed.
#[derive(Debug, thiserror::Error)]
pub enum SignError {
    /// The key refused or failed.
    #[error("key failed to sign")]
    Key {
        /// What it said.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The signer holds another key than the one that must sign.
    #[error("signer holds another key than the one in the issuer's certificate")]
    WrongKey,
}

/// A private key that can sign; the key itself need not be in this process.
pub trait Signer: Send + Sync + Debug {
    /// The subject public key info of the key, DER.
    fn spki_der(&self) -> &[u8];

    /// How it signs.
    fn algorithm(&self) -> SignatureAlgorithm;

    /// Signs a message, not its digest; ECDSA signatures are DER.
    ///
    /// # Errors
    /// The key can't be used.
    fn sign(&self, message: &[u8]) -> Result<Vec<u8>, SignError>;
}
