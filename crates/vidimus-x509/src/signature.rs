//! Signature algorithms, and verification under a key.
//!
//! What signs is decided from the key and the algorithm identifier together: a P-384 key signs with
//! SHA-256 as well as with SHA-384, and neither says anything about the other.
#![warn(clippy::indexing_slicing, clippy::arithmetic_side_effects)]

use aws_lc_rs::{
    digest as hash,
    signature::{self as aws, UnparsedPublicKey, VerificationAlgorithm},
};

use crate::{
    asn1::{DerError, Element, INTEGER, NULL, OID, Reader, SEQUENCE, context},
    key::{Kind, PublicKey},
    oid,
};

/// The signature algorithms accepted in requests and chains.
pub const ACCEPTED_SIGNATURES: &str = "ECDSA, RSA PKCS#1 v1.5 or RSA-PSS (salt as long as the \
     digest), each with SHA-256, SHA-384 or SHA-512";

/// Why a signature was not taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SignatureError {
    /// The algorithm identifier or key can't be read.
    #[error(transparent)]
    Der(#[from] DerError),
    /// An algorithm that isn't taken, MD5 and SHA-1 among them.
    #[error("signature algorithm is {found}; accepted: {ACCEPTED_SIGNATURES}")]
    Algorithm {
        /// As people call it.
        found: String,
    },
    /// RSA-PSS with other parameters than RFC 8692's.
    #[error(
        "RSA-PSS signature with {found}; accepted: SHA-256, SHA-384 or SHA-512, the same for MGF1, \
         and a salt as long as the digest (openssl: -sigopt rsa_pss_saltlen:digest)"
    )]
    PssParameters {
        /// What is different.
        found: String,
    },
    /// The key can't have made a signature of that kind.
    #[error("a key of kind {key} cannot make a signature of {algorithm}")]
    KeyMismatch {
        /// The key.
        key: String,
        /// The algorithm.
        algorithm: String,
    },
    /// Signed by another key, or over other bytes.
    #[error("the signature does not verify under the {key} key")]
    Broken {
        /// The key.
        key: String,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Digest {
    Sha256,
    Sha384,
    Sha512,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scheme {
    Ecdsa(Digest),
    Ed25519,
    RsaPkcs1(Digest),
    RsaPss(Digest),
}

impl Scheme {
    /// From an `AlgorithmIdentifier`.
    pub(crate) fn read(algorithm: &Element<'_>) -> Result<Self, SignatureError> {
        let mut inside = algorithm.inside();
        let identifier = inside
            .expect(OID, "a signature algorithm's identifier")?
            .oid()?;
        let scheme = match identifier {
            oid::ECDSA_SHA256 => Self::Ecdsa(Digest::Sha256),
            oid::ECDSA_SHA384 => Self::Ecdsa(Digest::Sha384),
            oid::ECDSA_SHA512 => Self::Ecdsa(Digest::Sha512),
            oid::ED25519 => Self::Ed25519,
            oid::RSA_SHA256 => Self::RsaPkcs1(Digest::Sha256),
            oid::RSA_SHA384 => Self::RsaPkcs1(Digest::Sha384),
            oid::RSA_SHA512 => Self::RsaPkcs1(Digest::Sha512),
            oid::RSASSA_PSS => Self::RsaPss(pss_digest(&mut inside)?),
            other => {
                return Err(SignatureError::Algorithm {
                    found: oid::algorithm_text(&other),
                });
            }
        };
        if matches!(scheme, Self::RsaPkcs1(_)) {
            // RFC 4055 §5 asks for NULL; its absence is common and means the same.
            inside.optional(NULL)?;
        }
        inside.finish()?;
        Ok(scheme)
    }

    fn text(self) -> String {
        match self {
            Self::Ecdsa(digest) => format!("ECDSA with {}", digest.text()),
            Self::Ed25519 => "Ed25519".to_owned(),
            Self::RsaPkcs1(digest) => format!("RSA with {}", digest.text()),
            Self::RsaPss(digest) => format!("RSA-PSS with {}", digest.text()),
        }
    }

    /// Checks a signature over `message`.
    pub(crate) fn verify(
        self,
        key: &PublicKey<'_>,
        message: &[u8],
        signature: &[u8],
    ) -> Result<(), SignatureError> {
        UnparsedPublicKey::new(self.algorithm_under(key)?, key.bits)
            .verify(message, signature)
            .map_err(|_| SignatureError::Broken {
                key: key.describe(),
            })
    }

    /// What has to be kept of a message to verify signatures over it later.
    pub(crate) fn hash(self, message: &[u8]) -> Signed {
        match self {
            Self::Ecdsa(digest) | Self::RsaPkcs1(digest) | Self::RsaPss(digest) => {
                Signed::Digest(hash::digest(digest.algorithm(), message))
            }
            Self::Ed25519 => Signed::Whole(message.into()),
        }
    }

    /// As [`Self::verify`], over a message that [`Self::hash`] of the same scheme has seen.
    pub(crate) fn verify_signed(
        self,
        key: &PublicKey<'_>,
        signed: &Signed,
        signature: &[u8],
    ) -> Result<(), SignatureError> {
        let digest = match signed {
            Signed::Digest(digest) => digest,
            Signed::Whole(message) => return self.verify(key, message, signature),
        };
        UnparsedPublicKey::new(self.algorithm_under(key)?, key.bits)
            .verify_digest(digest, signature)
            .map_err(|_| SignatureError::Broken {
                key: key.describe(),
            })
    }

    fn algorithm_under(
        self,
        key: &PublicKey<'_>,
    ) -> Result<&'static dyn VerificationAlgorithm, SignatureError> {
        self.algorithm(&key.kind)
            .ok_or_else(|| SignatureError::KeyMismatch {
                key: key.describe(),
                algorithm: self.text(),
            })
    }

    fn algorithm(self, kind: &Kind) -> Option<&'static dyn VerificationAlgorithm> {
        use Digest::{Sha256, Sha384, Sha512};
        Some(match (kind, self) {
            (Kind::Ec(oid::SECP256R1), Self::Ecdsa(Sha256)) => &aws::ECDSA_P256_SHA256_ASN1,
            (Kind::Ec(oid::SECP256R1), Self::Ecdsa(Sha384)) => &aws::ECDSA_P256_SHA384_ASN1,
            (Kind::Ec(oid::SECP256R1), Self::Ecdsa(Sha512)) => &aws::ECDSA_P256_SHA512_ASN1,
            (Kind::Ec(oid::SECP384R1), Self::Ecdsa(Sha256)) => &aws::ECDSA_P384_SHA256_ASN1,
            (Kind::Ec(oid::SECP384R1), Self::Ecdsa(Sha384)) => &aws::ECDSA_P384_SHA384_ASN1,
            (Kind::Ec(oid::SECP384R1), Self::Ecdsa(Sha512)) => &aws::ECDSA_P384_SHA512_ASN1,
            (Kind::Ec(oid::SECP521R1), Self::Ecdsa(Sha256)) => &aws::ECDSA_P521_SHA256_ASN1,
            (Kind::Ec(oid::SECP521R1), Self::Ecdsa(Sha384)) => &aws::ECDSA_P521_SHA384_ASN1,
            (Kind::Ec(oid::SECP521R1), Self::Ecdsa(Sha512)) => &aws::ECDSA_P521_SHA512_ASN1,
            (Kind::Ed25519, Self::Ed25519) => &aws::ED25519,
            (Kind::Rsa(_), Self::RsaPkcs1(Sha256)) => &aws::RSA_PKCS1_2048_8192_SHA256,
            (Kind::Rsa(_), Self::RsaPkcs1(Sha384)) => &aws::RSA_PKCS1_2048_8192_SHA384,
            (Kind::Rsa(_), Self::RsaPkcs1(Sha512)) => &aws::RSA_PKCS1_2048_8192_SHA512,
            (Kind::Rsa(_), Self::RsaPss(Sha256)) => &aws::RSA_PSS_2048_8192_SHA256,
            (Kind::Rsa(_), Self::RsaPss(Sha384)) => &aws::RSA_PSS_2048_8192_SHA384,
            (Kind::Rsa(_), Self::RsaPss(Sha512)) => &aws::RSA_PSS_2048_8192_SHA512,
            _ => return None,
        })
    }
}

/// What a signature was made over, as far as verifying it needs that.
#[derive(Debug, Clone)]
pub(crate) enum Signed {
    /// For schemes that sign a digest.
    Digest(hash::Digest),
    /// For Ed25519, which reads the message twice.
    Whole(Box<[u8]>),
}

impl Digest {
    fn algorithm(self) -> &'static hash::Algorithm {
        match self {
            Self::Sha256 => &hash::SHA256,
            Self::Sha384 => &hash::SHA384,
            Self::Sha512 => &hash::SHA512,
        }
    }

    fn text(self) -> &'static str {
        match self {
            Self::Sha256 => "SHA-256",
            Self::Sha384 => "SHA-384",
            Self::Sha512 => "SHA-512",
        }
    }

    fn len(self) -> u32 {
        match self {
            Self::Sha256 => 32,
            Self::Sha384 => 48,
            Self::Sha512 => 64,
        }
    }
}

/// RSASSA-PSS-params (RFC 4055 §3.1), of which only the forms of RFC 8692 §3 are taken.
///
/// Whatever is left out defaults to SHA-1 and a salt of 20, so each part must be there.
fn pss_digest(parameters: &mut Reader<'_>) -> Result<Digest, SignatureError> {
    let refuse = |found: String| SignatureError::PssParameters { found };
    let mut inside = parameters
        .expect(SEQUENCE, "the parameters of RSA-PSS")?
        .inside();
    let Some(hash) = inside.optional(context(0))? else {
        return Err(refuse("SHA-1".to_owned()));
    };
    let digest = digest(&mut hash.inside())?;
    let Some(mask) = inside.optional(context(1))? else {
        return Err(refuse("MGF1 with SHA-1".to_owned()));
    };
    let mut mask = mask
        .inside()
        .expect(SEQUENCE, "a mask generation function")?
        .inside();
    let function = mask.expect(OID, "its identifier")?.oid()?;
    if function != oid::MGF1 {
        return Err(refuse(oid::algorithm_text(&function)));
    }
    let mask_digest = self::digest(&mut mask)?;
    if mask_digest != digest {
        let (of, with) = (digest.text(), mask_digest.text());
        return Err(refuse(format!("{of}, but MGF1 with {with}")));
    }
    let salt = match inside.optional(context(2))? {
        Some(salt) => salt
            .inside()
            .expect(INTEGER, "a salt length")?
            .unsigned_u32()?,
        None => 20,
    };
    if salt != digest.len() {
        return Err(refuse(format!(
            "{} and a salt of {salt} bytes",
            digest.text()
        )));
    }
    if let Some(trailer) = inside.optional(context(3))?
        && trailer
            .inside()
            .expect(INTEGER, "a trailer")?
            .unsigned_u32()?
            != 1
    {
        return Err(refuse("another trailer than 1".to_owned()));
    }
    inside.finish()?;
    Ok(digest)
}

fn digest(reader: &mut Reader<'_>) -> Result<Digest, SignatureError> {
    let mut inside = reader.expect(SEQUENCE, "a digest algorithm")?.inside();
    let identifier = inside.expect(OID, "its identifier")?.oid()?;
    inside.optional(NULL)?;
    inside.finish()?;
    match identifier {
        oid::SHA256 => Ok(Digest::Sha256),
        oid::SHA384 => Ok(Digest::Sha384),
        oid::SHA512 => Ok(Digest::Sha512),
        other => Err(SignatureError::PssParameters {
            found: oid::algorithm_text(&other),
        }),
    }
}
