//! What a CA key can do, wherever it lives.

use std::fmt::Debug;

use const_oid::ObjectIdentifier;

use crate::{
    asn1::{BIT_STRING, NULL, Reader, SEQUENCE, write},
    key::{KeyPolicyError, Kind, PublicKey},
    oid,
    signature::{Scheme, SignatureError},
};

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
    /// The signer signs in another way than its key's kind does.
    #[error("signer makes {found:?} signatures; accepted for its key: {accepted:?}")]
    WrongAlgorithm {
        /// How it signs.
        found: SignatureAlgorithm,
        /// How its key should.
        accepted: SignatureAlgorithm,
    },
    /// What was signed with a key doesn't verify under the same key.
    #[error("signature doesn't verify under the key that should have made it")]
    NotVerified {
        /// How it fails.
        #[source]
        source: SignatureError,
    },
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

impl SignatureAlgorithm {
    /// How a key signs.
    ///
    /// # Errors
    /// It isn't one that Vidimus certifies, and so none that it signs with.
    pub fn of_key(spki_der: &[u8]) -> Result<Self, KeyPolicyError> {
        let unreadable = |_| KeyPolicyError {
            found: "unreadable".to_owned(),
        };
        let key = PublicKey::from_der(spki_der).map_err(unreadable)?;
        key.check_policy()?;
        Ok(match key.kind {
            Kind::Rsa(_) => Self::RsaPkcs1Sha384,
            _ => Self::EcdsaP384Sha384,
        })
    }

    /// Its `AlgorithmIdentifier`: no parameters for ECDSA (RFC 5758 §3.2), NULL for RSA (RFC 4055
    /// §5).
    pub(crate) fn to_der(self) -> Vec<u8> {
        let identifier: ObjectIdentifier = match self {
            Self::EcdsaP384Sha384 => oid::ECDSA_SHA384,
            Self::RsaPkcs1Sha384 => oid::RSA_SHA384,
        };
        let null = write::element(NULL, &[]);
        let parameters: &[u8] = match self {
            Self::EcdsaP384Sha384 => &[],
            Self::RsaPkcs1Sha384 => &null,
        };
        write::sequence(&[&write::oid(&identifier), parameters])
    }
}

/// Signs `content` into SEQUENCE { content, algorithm, signature }: a certificate or a request.
pub(crate) fn seal(
    content: &[u8],
    algorithm: SignatureAlgorithm,
    signer: &dyn Signer,
) -> Result<Vec<u8>, SignError> {
    let found = signer.algorithm();
    if found != algorithm {
        let accepted = algorithm;
        return Err(SignError::WrongAlgorithm { found, accepted });
    }
    let signature = write::bit_string(&signer.sign(content)?);
    Ok(write::sequence(&[content, &algorithm.to_der(), &signature]))
}

/// That a sealed structure verifies under the key that it says it is of.
pub(crate) fn check_seal(sealed: &[u8], spki_der: &[u8]) -> Result<(), SignError> {
    let verify = || {
        let mut inside = Reader::single(sealed, SEQUENCE, "a signed structure")?.inside();
        let content = inside.expect(SEQUENCE, "what is signed")?;
        let algorithm = inside.expect(SEQUENCE, "a signature algorithm")?;
        let signature = inside.expect(BIT_STRING, "a signature")?.octets_of_bits()?;
        let key = PublicKey::from_der(spki_der)?;
        Scheme::read(&algorithm)?.verify(&key, content.raw, signature)
    };
    verify().map_err(|source| SignError::NotVerified { source })
}
