//! Certification requests (PKCS#10, RFC 2986): read, checked against the key policy, verified.
//!
//! Of a request only the key, the subject and the DNS and IP names are ever used. Whatever else it
//! carries (a challenge password, private extensions, names of other kinds) is read over.
#![warn(clippy::indexing_slicing, clippy::arithmetic_side_effects)]

use std::net::IpAddr;

use crate::{
    asn1::{BIT_STRING, DerError, Element, INTEGER, OID, Reader, SEQUENCE, SET, context},
    extension::Extension,
    key::{KeyPolicyError, PublicKey},
    name::{self, NameError},
    oid,
    pem::{self, PemError},
    san::{self, Names},
    signature::{Scheme, SignatureError},
};

/// The largest request that is read, in bytes, whether DER or PEM.
pub const MAX_CSR: usize = 64 * 1024;

/// The labels a request comes under: RFC 7468's, and the one that older programs write.
const LABELS: [&str; 2] = ["CERTIFICATE REQUEST", "NEW CERTIFICATE REQUEST"];

/// Why a request was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CsrError {
    /// Nothing at all.
    #[error("certification request is empty; accepted: PKCS#10 in DER or PEM")]
    Empty,
    /// Larger than [`MAX_CSR`].
    #[error("certification request of {found} bytes; accepted: at most {MAX_CSR}")]
    TooLarge {
        /// Its size in bytes.
        found: usize,
    },
    /// Not DER, and not PEM with one request in it.
    #[error("certification request is not DER, and not PEM with one request")]
    Pem(#[source] PemError),
    /// Not a certification request, or bytes after it.
    #[error("certification request is not valid PKCS#10")]
    Der(
        #[from]
        #[source]
        DerError,
    ),
    /// Another version than 1.
    #[error("certification request of an unknown version; accepted: version 1")]
    Version,
    /// A subject that can't be copied into a certificate.
    #[error("subject of the certification request can't be certified")]
    Subject(
        #[from]
        #[source]
        NameError,
    ),
    /// More than one list of extensions, or more than one subjectAltName: which one counts?
    #[error("certification request with more than one {what}; accepted: at most one")]
    Ambiguous {
        /// What there is more than one of.
        what: &'static str,
    },
    /// The key is not one this CA certifies.
    #[error(transparent)]
    Key(#[from] KeyPolicyError),
    /// The signature is of an algorithm not taken, or doesn't verify.
    #[error("signature of the certification request is not accepted")]
    Signature(#[source] SignatureError),
}

/// A request whose signature verified under the key it contains, and whose key the policy accepts.
///
/// Only [`VerifiedCsr::parse`] makes one.
#[derive(Debug, Clone)]
pub struct VerifiedCsr {
    der: Vec<u8>,
    subject_der: Vec<u8>,
    spki_der: Vec<u8>,
    subject_text: String,
    key_id: [u8; 20],
    names: Names,
}

impl VerifiedCsr {
    /// Reads a request in DER or PEM and verifies it.
    ///
    /// # Errors
    /// Everything that makes a request unusable; the message and its sources name what was found
    /// and what is accepted.
    pub fn parse(bytes: &[u8]) -> Result<Self, CsrError> {
        if bytes.is_empty() {
            return Err(CsrError::Empty);
        }
        if bytes.len() > MAX_CSR {
            return Err(CsrError::TooLarge { found: bytes.len() });
        }
        let der = match bytes {
            // Every request is longer than 127 bytes, so in DER its length has the high bit set:
            // no ASCII text begins like this.
            [SEQUENCE, 0x80..=0xff, ..] => bytes.to_vec(),
            _ => pem::decode_one_of(&LABELS, bytes).map_err(CsrError::Pem)?,
        };
        let request = Request::read(&der)?;
        request.key.check_policy()?;
        request.verify().map_err(CsrError::Signature)?;
        Ok(Self {
            subject_der: request.subject.raw.to_vec(),
            spki_der: request.spki.raw.to_vec(),
            subject_text: name::text(&request.subject),
            key_id: request.key.key_id(),
            names: request.names,
            der,
        })
    }

    /// The whole request.
    #[must_use]
    pub fn der(&self) -> &[u8] {
        &self.der
    }

    /// The subject, as encoded in the request.
    #[must_use]
    pub fn subject_der(&self) -> &[u8] {
        &self.subject_der
    }

    /// The subject public key info, as encoded in the request.
    #[must_use]
    pub fn spki_der(&self) -> &[u8] {
        &self.spki_der
    }

    /// The DNS names it asks for, as written.
    #[must_use]
    pub fn dns_names(&self) -> &[String] {
        &self.names.dns
    }

    /// The IP addresses it asks for.
    #[must_use]
    pub fn ip_addresses(&self) -> &[IpAddr] {
        &self.names.ip
    }

    /// The subject for people (RFC 4514), control characters escaped.
    #[must_use]
    pub fn subject_text(&self) -> &str {
        &self.subject_text
    }

    /// The key's identifier: RFC 7093 §2, method 1.
    #[must_use]
    pub fn key_id(&self) -> [u8; 20] {
        self.key_id
    }
}

/// A request that has been read and not yet judged.
pub(crate) struct Request<'a> {
    info: Element<'a>,
    subject: Element<'a>,
    spki: Element<'a>,
    key: PublicKey<'a>,
    names: Names,
    algorithm: Element<'a>,
    signature: &'a [u8],
}

impl<'a> Request<'a> {
    /// `CertificationRequest` (RFC 2986 §4).
    pub(crate) fn read(der: &'a [u8]) -> Result<Self, CsrError> {
        let whole = Reader::single(der, SEQUENCE, "a certification request")?;
        let mut inside = whole.inside();
        let info = inside.expect(SEQUENCE, "the certification request info")?;
        let algorithm = inside.expect(SEQUENCE, "a signature algorithm")?;
        let signature = inside.expect(BIT_STRING, "a signature")?.octets_of_bits()?;
        inside.finish()?;

        let mut inside = info.inside();
        let version = inside.expect(INTEGER, "a version")?;
        if version.unsigned_u32() != Ok(0) {
            return Err(CsrError::Version);
        }
        let subject = name::read(&mut inside)?;
        name::check(&subject)?;
        let spki = inside.expect(SEQUENCE, "a subject public key info")?;
        let key = PublicKey::read(&spki)?;
        // The attributes aren't optional, but programs leave them out where there are none.
        let names = match inside.optional(context(0))? {
            Some(attributes) => names_of_attributes(&attributes)?,
            None => Names::default(),
        };
        inside.finish()?;
        Ok(Self {
            info,
            subject,
            spki,
            key,
            names,
            algorithm,
            signature,
        })
    }

    /// Over the bytes as they came, so that no second encoding is trusted.
    fn verify(&self) -> Result<(), SignatureError> {
        Scheme::read(&self.algorithm)?.verify(&self.key, self.info.raw, self.signature)
    }
}

/// The names among the attributes. Their order isn't checked: programs get SET OF wrong, and the
/// signature covers the bytes as they are.
fn names_of_attributes(attributes: &Element<'_>) -> Result<Names, CsrError> {
    let mut found = None;
    let mut reader = attributes.inside();
    while !reader.is_empty() {
        let mut attribute = reader.expect(SEQUENCE, "an attribute")?.inside();
        let kind = attribute.expect(OID, "an attribute type")?;
        let values = attribute.expect(SET, "attribute values")?;
        attribute.finish()?;
        if kind.value != oid::EXTENSION_REQUEST.as_bytes() {
            continue;
        }
        let mut inside = values.inside();
        let extensions = inside.expect(SEQUENCE, "extensions")?;
        if found.is_some() || !inside.is_empty() {
            return Err(CsrError::Ambiguous {
                what: "list of extensions",
            });
        }
        found = Some(names_of_extensions(&extensions)?);
    }
    Ok(found.unwrap_or_default())
}

fn names_of_extensions(extensions: &Element<'_>) -> Result<Names, CsrError> {
    let mut found = None;
    let mut reader = extensions.inside();
    while !reader.is_empty() {
        let extension = Extension::read(&mut reader)?;
        if extension.id != oid::SUBJECT_ALT_NAME.as_bytes() {
            continue;
        }
        if found.is_some() {
            return Err(CsrError::Ambiguous {
                what: "subjectAltName",
            });
        }
        found = Some(san::read(extension.value.value)?);
    }
    Ok(found.unwrap_or_default())
}
