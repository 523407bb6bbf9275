//! Public keys, and which of them this CA certifies.
#![warn(clippy::indexing_slicing, clippy::arithmetic_side_effects)]

use std::{fmt, str::FromStr};

use const_oid::ObjectIdentifier;

use crate::{
    asn1::{BIT_STRING, DerError, Element, INTEGER, NULL, OID, Reader, SEQUENCE},
    digest, oid,
};

/// What the key policy accepts, and how to ask cert-manager for it.
pub const ACCEPTED_KEYS: &str = "EC P-384, or RSA of 3072 to 8192 bits with an odd exponent of at \
     least 65537 and at most 33 bits (in cert-manager: privateKey: {algorithm: ECDSA, size: 384})";

/// The largest exponent that the crypto library verifies with: 33 bits, against denial of service.
const MAX_EXPONENT: u64 = (1 << 33) - 1;

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

/// A text that names none of the three kinds of key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("key algorithm {found:?}; accepted: ECDSA-P384, RSA-3072, RSA-4096")]
pub struct UnknownKeyAlgorithm {
    /// The text.
    pub found: String,
}

/// Why a subject key isn't certified.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("subject key is {found}; accepted: {ACCEPTED_KEYS}")]
pub struct KeyPolicyError {
    /// The key, as people call it: `EC P-256`, `RSA 2048`.
    pub found: String,
}

/// A subject public key info (RFC 5280 §4.1.2.7), read.
#[derive(Debug, Clone)]
pub(crate) struct PublicKey<'a> {
    /// The content of the BIT STRING.
    pub(crate) bits: &'a [u8],
    pub(crate) kind: Kind,
}

/// What kind of key it is, as far as anything here depends on it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Kind {
    Ec(ObjectIdentifier),
    EcExplicit,
    Ed25519,
    Rsa(Rsa),
    RsaPss,
    Unknown(ObjectIdentifier),
}

/// The numbers of an RSA key that rules are about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Rsa {
    pub(crate) bits: usize,
    modulus_is_odd: bool,
    /// `None` where it has more than 64 bits.
    exponent: Option<u64>,
}

/// A key for people: `EC P-384`, `RSA 3072`.
#[must_use]
pub fn describe(spki_der: &[u8]) -> String {
    Reader::single(spki_der, SEQUENCE, "a subject public key info")
        .and_then(|spki| PublicKey::read(&spki))
        .map_or_else(|_| "unreadable".to_owned(), |key| key.describe())
}

/// The identifier of a key: RFC 7093 §2, method 1. All zeros where it can't be read.
#[cfg(feature = "issue")]
pub(crate) fn key_id(spki_der: &[u8]) -> [u8; 20] {
    PublicKey::from_der(spki_der).map_or([0; 20], |key| key.key_id())
}

impl<'a> PublicKey<'a> {
    pub(crate) fn from_der(spki_der: &'a [u8]) -> Result<Self, DerError> {
        Self::read(&Reader::single(
            spki_der,
            SEQUENCE,
            "a subject public key info",
        )?)
    }

    pub(crate) fn read(spki: &Element<'a>) -> Result<Self, DerError> {
        let mut inside = spki.inside();
        let algorithm = inside.expect(SEQUENCE, "a key algorithm")?;
        let key = inside.expect(BIT_STRING, "a public key")?;
        inside.finish()?;
        let bits = key.octets_of_bits()?;
        let mut inside = algorithm.inside();
        let algorithm = inside.expect(OID, "a key algorithm's identifier")?.oid()?;
        let kind = if algorithm == oid::RSA_ENCRYPTION {
            // RFC 3279 §2.3.1: the parameters are NULL, not absent.
            inside.expect(NULL, "the NULL parameters of an RSA key")?;
            Kind::Rsa(Rsa::read(&key, bits)?)
        } else if algorithm == oid::EC_PUBLIC_KEY {
            let curve = inside.any("the curve of an EC key")?;
            if curve.tag == OID {
                Kind::Ec(curve.oid()?)
            } else {
                Kind::EcExplicit
            }
        } else {
            match algorithm {
                oid::ED25519 => Kind::Ed25519,
                oid::RSASSA_PSS => Kind::RsaPss,
                other => Kind::Unknown(other),
            }
        };
        if matches!(kind, Kind::Rsa(_) | Kind::Ec(_)) {
            inside.finish()?;
        }
        Ok(Self { bits, kind })
    }

    /// The key policy: what this CA certifies and signs with.
    pub(crate) fn check_policy(&self) -> Result<(), KeyPolicyError> {
        let accepted = match &self.kind {
            // 0x04: an uncompressed point. A compressed one is legal, but Go can't read it.
            Kind::Ec(oid::SECP384R1) => self.bits.len() == 97 && self.bits.first() == Some(&4),
            Kind::Rsa(rsa) => rsa.is_accepted(),
            Kind::Ec(_) | Kind::EcExplicit | Kind::Ed25519 | Kind::RsaPss | Kind::Unknown(_) => {
                false
            }
        };
        if accepted {
            Ok(())
        } else {
            Err(KeyPolicyError {
                found: self.describe(),
            })
        }
    }

    pub(crate) fn describe(&self) -> String {
        match &self.kind {
            Kind::Ec(curve) => {
                let form = match self.bits.first() {
                    Some(4) => "",
                    Some(2 | 3) => " as a compressed point",
                    _ => " without a readable point",
                };
                format!("EC {}{form}", oid::algorithm_text(curve))
            }
            Kind::EcExplicit => "EC with explicit curve parameters".to_owned(),
            Kind::Ed25519 => "Ed25519".to_owned(),
            Kind::Rsa(rsa) => rsa.describe(),
            Kind::RsaPss => "RSA restricted to PSS (id-RSASSA-PSS)".to_owned(),
            Kind::Unknown(algorithm) => oid::algorithm_text(algorithm),
        }
    }

    /// RFC 7093 §2, method 1: the leftmost 160 bits of SHA-256 over the key's bits.
    pub(crate) fn key_id(&self) -> [u8; 20] {
        let [key_id @ .., _, _, _, _, _, _, _, _, _, _, _, _] = digest::sha256(self.bits);
        key_id
    }
}

impl Rsa {
    fn read(key: &Element<'_>, bits: &[u8]) -> Result<Self, DerError> {
        let bad = |_| key.bad("RSA public key");
        let pair = Reader::single(bits, SEQUENCE, "an RSA public key").map_err(bad)?;
        let mut inside = pair.inside();
        let mut number = || inside.expect(INTEGER, "a number")?.unsigned();
        let modulus = number().map_err(bad)?;
        let exponent = number().map_err(bad)?;
        inside.finish().map_err(bad)?;
        let leading_zeros = modulus.first().map_or(0, |first| first.leading_zeros());
        let exponent = (exponent.len() <= 8).then(|| {
            exponent
                .iter()
                .fold(0_u64, |sum, &octet| (sum << 8) | u64::from(octet))
        });
        Ok(Self {
            bits: modulus
                .len()
                .saturating_mul(8)
                .saturating_sub(usize::try_from(leading_zeros).unwrap_or(0)),
            modulus_is_odd: modulus.last().is_some_and(|last| last & 1 == 1),
            exponent,
        })
    }

    fn is_accepted(&self) -> bool {
        (3072..=8192).contains(&self.bits)
            && self.modulus_is_odd
            && self
                .exponent
                .is_some_and(|e| e & 1 == 1 && (65_537..=MAX_EXPONENT).contains(&e))
    }

    fn describe(&self) -> String {
        let exponent = match self.exponent {
            Some(65_537) => String::new(),
            Some(exponent) => format!(" with exponent {exponent}"),
            None => " with an exponent of more than 64 bits".to_owned(),
        };
        let modulus = if self.modulus_is_odd {
            ""
        } else {
            " with an even modulus"
        };
        format!("RSA {}{modulus}{exponent}", self.bits)
    }
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

impl FromStr for KeyAlgorithm {
    type Err = UnknownKeyAlgorithm;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "ECDSA-P384" => Ok(Self::EcdsaP384),
            "RSA-3072" => Ok(Self::Rsa3072),
            "RSA-4096" => Ok(Self::Rsa4096),
            _ => Err(UnknownKeyAlgorithm {
                found: text.to_owned(),
            }),
        }
    }
}

#[cfg(test)]
#[expect(
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    reason = "the tests' own bytes"
)]
mod tests {
    use super::*;
    use crate::asn1::write::{bit_string, element, oid as write_oid, sequence, unsigned};

    fn rsa(modulus: &[u8], exponent: u64) -> Vec<u8> {
        let key = sequence(&[&unsigned(modulus), &unsigned(&exponent.to_be_bytes())]);
        let algorithm = sequence(&[&write_oid(&oid::RSA_ENCRYPTION), &element(NULL, &[])]);
        sequence(&[&algorithm, &bit_string(&key)])
    }

    fn policy(spki: &[u8]) -> Result<(), String> {
        let key = PublicKey::from_der(spki).unwrap();
        key.check_policy().map_err(|refused| refused.found)
    }

    fn modulus(bits: usize) -> Vec<u8> {
        let mut modulus = vec![0xff; bits.div_ceil(8)];
        modulus[0] >>= (8 - bits % 8) % 8;
        modulus
    }

    /// C5: the edges of the RSA rule.
    #[test]
    fn rsa_keys_are_judged_by_size_and_exponent() {
        for (bits, exponent, verdict) in [
            (3072, 65_537, Ok(())),
            (8192, 65_537, Ok(())),
            (3072, 65_539, Ok(())),
            (3072, MAX_EXPONENT, Ok(())),
            (3071, 65_537, Err("RSA 3071")),
            (2048, 65_537, Err("RSA 2048")),
            (8193, 65_537, Err("RSA 8193")),
            (16_384, 65_537, Err("RSA 16384")),
            (3072, 3, Err("RSA 3072 with exponent 3")),
            (3072, 65_535, Err("RSA 3072 with exponent 65535")),
            (3072, 65_538, Err("RSA 3072 with exponent 65538")),
            (3072, 1 << 33 | 1, Err("RSA 3072 with exponent 8589934593")),
        ] {
            let verdict: Result<(), String> = verdict.map_err(str::to_owned);
            assert_eq!(policy(&rsa(&modulus(bits), exponent)), verdict);
        }
    }

    /// C5: an even modulus isn't a product of two odd primes.
    #[test]
    fn an_even_modulus_is_refused() {
        let mut even = modulus(3072);
        *even.last_mut().unwrap() = 0xfe;
        assert_eq!(
            policy(&rsa(&even, 65_537)),
            Err("RSA 3072 with an even modulus".to_owned())
        );
    }

    /// C5: points must be whole and uncompressed.
    #[test]
    fn a_compressed_point_is_refused_by_name() {
        let spki = |point: &[u8]| {
            let algorithm =
                sequence(&[&write_oid(&oid::EC_PUBLIC_KEY), &write_oid(&oid::SECP384R1)]);
            sequence(&[&algorithm, &bit_string(point)])
        };
        let mut point = vec![4; 97];
        assert_eq!(policy(&spki(&point)), Ok(()));
        point.truncate(49);
        point[0] = 2;
        assert_eq!(
            policy(&spki(&point)),
            Err("EC P-384 as a compressed point".to_owned())
        );
    }
}
