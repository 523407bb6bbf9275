//! A certificate as others show or check it.

use std::{net::IpAddr, time::SystemTime};

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
}

/// Why a signature was not taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SignatureError {
    /// The signature was not made by this key over these bytes.
    #[error("signature does not verify under the given key")]
    Mismatch,
}

/// The parts of a certificate that Vidimus shows or checks.
///
/// Reading one proves nothing: no signature is checked until [`Certificate::verify_signature`].
#[derive(Debug, Clone)]
pub struct Certificate {
    der: Vec<u8>,
}

impl Certificate {
    /// Reads one certificate in DER.
    ///
    /// # Errors
    /// Too large, not a certificate, or bytes after it.
    pub fn parse(der: &[u8]) -> Result<Self, CertError> {
        let _ = der;
        todo!()
    }

    /// The whole certificate.
    #[must_use]
    pub fn der(&self) -> &[u8] {
        &self.der
    }

    /// The subject for people (RFC 4514), control characters escaped.
    #[must_use]
    pub fn subject_text(&self) -> &str {
        todo!()
    }

    /// The subject, as encoded.
    #[must_use]
    pub fn subject_der(&self) -> &[u8] {
        todo!()
    }

    /// The last common name of the subject, where it has one.
    #[must_use]
    pub fn common_name(&self) -> Option<&str> {
        todo!()
    }

    /// The issuer for people.
    #[must_use]
    pub fn issuer_text(&self) -> &str {
        todo!()
    }

    /// The issuer, as encoded.
    #[must_use]
    pub fn issuer_der(&self) -> &[u8] {
        todo!()
    }

    /// The serial number in lower-case hex without leading zeros.
    #[must_use]
    pub fn serial_hex(&self) -> &str {
        todo!()
    }

    /// The first moment at which it is valid.
    #[must_use]
    pub fn not_before(&self) -> SystemTime {
        todo!()
    }

    /// The last moment at which it is valid.
    #[must_use]
    pub fn not_after(&self) -> SystemTime {
        todo!()
    }

    /// The subject public key info, as encoded.
    #[must_use]
    pub fn spki_der(&self) -> &[u8] {
        todo!()
    }

    /// Whether basicConstraints say CA.
    #[must_use]
    pub fn is_ca(&self) -> bool {
        todo!()
    }

    /// pathLenConstraint.
    #[must_use]
    pub fn path_len(&self) -> Option<u32> {
        todo!()
    }

    /// keyUsage by RFC 5280 name (`digitalSignature`, ...); `None` where the extension is absent.
    #[must_use]
    pub fn key_usage(&self) -> Option<&[&'static str]> {
        todo!()
    }

    /// extKeyUsage as names (`serverAuth`, `clientAuth`, ...) or dotted OIDs; empty where absent.
    #[must_use]
    pub fn ext_key_usage(&self) -> &[String] {
        todo!()
    }

    /// DNS names of the subjectAltName.
    #[must_use]
    pub fn dns_names(&self) -> &[String] {
        todo!()
    }

    /// IP addresses of the subjectAltName.
    #[must_use]
    pub fn ip_addresses(&self) -> &[IpAddr] {
        todo!()
    }

    /// URIs of the subjectAltName.
    #[must_use]
    pub fn uris(&self) -> &[String] {
        todo!()
    }

    /// Mail addresses of the subjectAltName.
    #[must_use]
    pub fn emails(&self) -> &[String] {
        todo!()
    }

    /// subjectKeyIdentifier.
    #[must_use]
    pub fn subject_key_id(&self) -> Option<&[u8]> {
        todo!()
    }

    /// The key identifier of authorityKeyIdentifier.
    #[must_use]
    pub fn authority_key_id(&self) -> Option<&[u8]> {
        todo!()
    }

    /// SHA-256 of the whole DER.
    #[must_use]
    pub fn fingerprint_sha256(&self) -> [u8; 32] {
        todo!()
    }

    /// Checks this certificate's signature under an issuer's key.
    ///
    /// # Errors
    /// An algorithm that isn't accepted, or a signature of another key or other bytes.
    pub fn verify_signature(&self, issuer_spki_der: &[u8]) -> Result<(), SignatureError> {
        let _ = issuer_spki_der;
        todo!()
    }
}
