//! A certificate (RFC 5280 §4.1) as others show or check it.
#![warn(clippy::indexing_slicing, clippy::arithmetic_side_effects)]

mod extensions;

use std::{net::IpAddr, time::SystemTime};

use self::extensions::Extensions;
use crate::{
    asn1::{BIT_STRING, DerError, Element, INTEGER, Reader, SEQUENCE, context, context_primitive},
    digest,
    key::PublicKey,
    name,
    signature::Scheme,
    time,
};

pub use crate::signature::SignatureError;

/// The largest certificate that is read, in bytes of DER.
pub const MAX_CERTIFICATE: usize = 64 * 1024;

/// Why a certificate could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CertError {
    /// Larger than [`MAX_CERTIFICATE`].
    #[error("certificate of {found} bytes; accepted: at most {MAX_CERTIFICATE}")]
    TooLarge {
        /// Its size in bytes.
        found: usize,
    },
    /// Not a certificate, or bytes after it.
    #[error("not a valid X.509 certificate")]
    Der(
        #[from]
        #[source]
        DerError,
    ),
    /// One extension twice (RFC 5280 §4.2).
    #[error("certificate has the extension {oid} twice; accepted: each at most once")]
    DuplicateExtension {
        /// Which, dotted.
        oid: String,
    },
}

/// A form of `GeneralName` (RFC 5280 §4.2.1.6).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum NameForm {
    /// directoryName: what subjects are held to.
    Directory,
    /// dNSName.
    Dns,
    /// rfc822Name, a mail address.
    Email,
    /// iPAddress.
    Ip,
    /// Any other.
    Other,
    /// uniformResourceIdentifier.
    Uri,
}

impl NameForm {
    /// By the tag. Whether it is constructed doesn't matter: a constraint that is written oddly still is one.
    fn of(name: &Element<'_>) -> Self {
        match name.tag & 0x1f {
            1 => Self::Email,
            2 => Self::Dns,
            4 => Self::Directory,
            6 => Self::Uri,
            7 => Self::Ip,
            _ => Self::Other,
        }
    }
}

/// The parts of a certificate that Vidimus shows or checks.
///
/// Reading one proves nothing: no signature is checked until [`Certificate::verify_signature`].
#[derive(Debug, Clone)]
pub struct Certificate {
    der: Vec<u8>,
    tbs_der: Vec<u8>,
    inner_algorithm: Vec<u8>,
    outer_algorithm: Vec<u8>,
    signature: Vec<u8>,
    serial: Vec<u8>,
    serial_hex: String,
    issuer_der: Vec<u8>,
    issuer_text: String,
    not_before: SystemTime,
    not_after: SystemTime,
    subject_der: Vec<u8>,
    subject_text: String,
    common_name: Option<String>,
    spki_der: Vec<u8>,
    key_text: String,
    key_id: [u8; 20],
    extensions: Extensions,
}

impl Certificate {
    /// Reads one certificate in DER.
    ///
    /// # Errors
    /// Too large, not a certificate, or bytes after it.
    pub fn parse(der: &[u8]) -> Result<Self, CertError> {
        if der.len() > MAX_CERTIFICATE {
            return Err(CertError::TooLarge { found: der.len() });
        }
        let mut whole = Reader::single(der, SEQUENCE, "a certificate")?.inside();
        let tbs = whole.expect(SEQUENCE, "a to-be-signed certificate")?;
        let outer_algorithm = whole.expect(SEQUENCE, "a signature algorithm")?;
        let signature = whole.expect(BIT_STRING, "a signature")?.octets_of_bits()?;
        whole.finish()?;

        let mut inside = tbs.inside();
        // Version 1 has no field of its own, and roots of version 1 exist.
        inside.optional(context(0))?;
        let serial = inside.expect(INTEGER, "a serial number")?;
        let inner_algorithm = inside.expect(SEQUENCE, "a signature algorithm")?;
        let issuer = name::read(&mut inside)?;
        let mut validity = inside.expect(SEQUENCE, "a validity")?.inside();
        let not_before = time::read(&mut validity)?;
        let not_after = time::read(&mut validity)?;
        validity.finish()?;
        let subject = name::read(&mut inside)?;
        let spki = inside.expect(SEQUENCE, "a subject public key info")?;
        let key = PublicKey::read(&spki)?;
        // Unique identifiers: obsolete, skipped (RFC 5280 §4.1.2.8).
        inside.optional(context_primitive(1))?;
        inside.optional(context_primitive(2))?;
        let extensions = match inside.optional(context(3))? {
            Some(extensions) => Extensions::read(&extensions)?,
            None => Extensions::default(),
        };
        inside.finish()?;
        Ok(Self {
            der: der.to_vec(),
            tbs_der: tbs.raw.to_vec(),
            inner_algorithm: inner_algorithm.raw.to_vec(),
            outer_algorithm: outer_algorithm.raw.to_vec(),
            signature: signature.to_vec(),
            serial: serial.value.to_vec(),
            serial_hex: serial_hex(&serial),
            issuer_der: issuer.raw.to_vec(),
            issuer_text: name::text(&issuer),
            not_before,
            not_after,
            subject_der: subject.raw.to_vec(),
            subject_text: name::text(&subject),
            common_name: name::common_name(&subject),
            spki_der: spki.raw.to_vec(),
            key_text: key.describe(),
            key_id: key.key_id(),
            extensions,
        })
    }

    /// Checks this certificate's signature under an issuer's key.
    ///
    /// # Errors
    /// An algorithm that isn't accepted, or a signature of another key or over other bytes.
    pub fn verify_signature(&self, issuer_spki_der: &[u8]) -> Result<(), SignatureError> {
        let outer = Reader::single(&self.outer_algorithm, SEQUENCE, "an algorithm")?;
        if self.inner_algorithm != self.outer_algorithm {
            // RFC 5280 §4.1.1.2: they are the same, or nobody knows what was signed how.
            return Err(SignatureError::Der(
                outer.bad("algorithm: the certificate names two different ones"),
            ));
        }
        let key = PublicKey::from_der(issuer_spki_der)?;
        Scheme::read(&outer)?.verify(&key, &self.tbs_der, &self.signature)
    }

    /// The whole certificate.
    #[must_use]
    pub fn der(&self) -> &[u8] {
        &self.der
    }

    /// The subject for people (RFC 4514), control characters escaped.
    #[must_use]
    pub fn subject_text(&self) -> &str {
        &self.subject_text
    }

    /// The subject, as encoded.
    #[must_use]
    pub fn subject_der(&self) -> &[u8] {
        &self.subject_der
    }

    /// The most specific common name of the subject, as it is: not escaped.
    #[must_use]
    pub fn common_name(&self) -> Option<&str> {
        self.common_name.as_deref()
    }

    /// The issuer for people.
    #[must_use]
    pub fn issuer_text(&self) -> &str {
        &self.issuer_text
    }

    /// The issuer, as encoded.
    #[must_use]
    pub fn issuer_der(&self) -> &[u8] {
        &self.issuer_der
    }

    /// The serial number: the content of the INTEGER, as encoded.
    #[must_use]
    pub fn serial(&self) -> &[u8] {
        &self.serial
    }

    /// The serial number in lower-case hex without leading zeros.
    #[must_use]
    pub fn serial_hex(&self) -> &str {
        &self.serial_hex
    }

    /// The first moment at which it is valid.
    #[must_use]
    pub fn not_before(&self) -> SystemTime {
        self.not_before
    }

    /// The last moment at which it is valid, to the second.
    #[must_use]
    pub fn not_after(&self) -> SystemTime {
        self.not_after
    }

    /// Whether `now` is within its validity, both ends included.
    #[must_use]
    pub fn is_valid_at(&self, now: SystemTime) -> bool {
        self.not_before <= now && now <= self.not_after
    }

    /// The subject public key info, as encoded.
    #[must_use]
    pub fn spki_der(&self) -> &[u8] {
        &self.spki_der
    }

    /// The key for people: `EC P-384`, `RSA 3072`.
    #[must_use]
    pub fn key_text(&self) -> &str {
        &self.key_text
    }

    /// Whether basicConstraints say CA.
    #[must_use]
    pub fn is_ca(&self) -> bool {
        self.extensions.is_ca
    }

    /// pathLenConstraint.
    #[must_use]
    pub fn path_len(&self) -> Option<u32> {
        self.extensions.path_len
    }

    /// keyUsage by RFC 5280 name (`digitalSignature`, ...); `None` where the extension is absent.
    #[must_use]
    pub fn key_usage(&self) -> Option<&[&'static str]> {
        self.extensions.key_usage.as_deref()
    }

    /// Whether its key may sign certificates: keyUsage says `keyCertSign`, or doesn't exist.
    #[must_use]
    pub fn may_sign_certificates(&self) -> bool {
        self.key_usage()
            .is_none_or(|usages| usages.contains(&"keyCertSign"))
    }

    /// extKeyUsage as names (`serverAuth`, `clientAuth`, ...) or dotted; empty where absent.
    #[must_use]
    pub fn ext_key_usage(&self) -> &[String] {
        &self.extensions.ext_key_usage
    }

    /// DNS names of the subjectAltName.
    #[must_use]
    pub fn dns_names(&self) -> &[String] {
        &self.extensions.names.dns
    }

    /// IP addresses of the subjectAltName.
    #[must_use]
    pub fn ip_addresses(&self) -> &[IpAddr] {
        &self.extensions.names.ip
    }

    /// URIs of the subjectAltName.
    #[must_use]
    pub fn uris(&self) -> &[String] {
        &self.extensions.names.uri
    }

    /// Mail addresses of the subjectAltName.
    #[must_use]
    pub fn emails(&self) -> &[String] {
        &self.extensions.names.email
    }

    /// The forms of name that nameConstraints say anything about, permitted or excluded, each once; `None` where the
    /// extension is absent. Applying them is for whoever verifies a path.
    #[must_use]
    pub fn constrained_name_forms(&self) -> Option<&[NameForm]> {
        self.extensions.name_constraints.as_deref()
    }

    /// subjectKeyIdentifier.
    #[must_use]
    pub fn subject_key_id(&self) -> Option<&[u8]> {
        self.extensions.subject_key_id.as_deref()
    }

    /// The key identifier of authorityKeyIdentifier.
    #[must_use]
    pub fn authority_key_id(&self) -> Option<&[u8]> {
        self.extensions.authority_key_id.as_deref()
    }

    /// The content of cRLDistributionPoints, unread.
    #[must_use]
    pub(crate) fn crl_distribution_points_der(&self) -> Option<&[u8]> {
        self.extensions.crl_distribution_points.as_deref()
    }

    /// Whether its key may sign revocation lists: keyUsage says `cRLSign`, or doesn't exist.
    #[must_use]
    pub fn may_sign_crls(&self) -> bool {
        self.key_usage()
            .is_none_or(|usages| usages.contains(&"cRLSign"))
    }

    /// subjectKeyIdentifier, or what it would be by RFC 7093 where the certificate has none.
    #[must_use]
    pub fn key_id(&self) -> &[u8] {
        self.subject_key_id().unwrap_or(&self.key_id)
    }

    /// Identifiers, dotted, of critical extensions that nothing here understands.
    #[must_use]
    pub fn unknown_critical_extensions(&self) -> &[String] {
        &self.extensions.unknown_critical
    }

    /// SHA-256 of the whole DER.
    #[must_use]
    pub fn fingerprint_sha256(&self) -> [u8; 32] {
        fingerprint_sha256(&self.der)
    }
}

/// SHA-256 of a certificate's DER, without reading it.
#[must_use]
pub fn fingerprint_sha256(der: &[u8]) -> [u8; 32] {
    digest::sha256(der)
}

/// Serial numbers of others may be negative or zero; shown as their bytes, without leading zeros.
fn serial_hex(serial: &Element<'_>) -> String {
    let text = name::hex(serial.value);
    match text.trim_start_matches('0') {
        "" => "0".to_owned(),
        digits => digits.to_owned(),
    }
}
