//! Certification requests (PKCS#10, RFC 2986): read, checked against the key policy, signature verified.

use std::net::IpAddr;

use crate::key::KeyPolicyError;

/// The largest request that is read, in bytes, whether DER or PEM.
pub const MAX_CSR: usize = 64 * 1024;

/// Why a request was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CsrError {
    /// The key is not one this CA certifies.
    #[error(transparent)]
    Key(#[from] KeyPolicyError),
    /// Larger than [`MAX_CSR`].
    #[error("certification request of {found} bytes; accepted: at most {MAX_CSR}")]
    TooLarge {
        /// Its size in bytes.
        found: usize,
    },
}

/// A request whose signature verified under the key it contains, and whose key the policy accepts.
///
/// Only [`VerifiedCsr::parse`] makes one.
#[derive(Debug, Clone)]
pub struct VerifiedCsr {
    der: Vec<u8>,
    dns_names: Vec<String>,
    ip_addresses: Vec<IpAddr>,
    subject_text: String,
}

impl VerifiedCsr {
    /// Reads a request in DER or PEM and verifies it.
    ///
    /// # Errors
    /// Everything that makes a request unusable; the message names what was found and what is accepted.
    pub fn parse(bytes: &[u8]) -> Result<Self, CsrError> {
        let _ = bytes;
        todo!()
    }

    /// The whole request.
    #[must_use]
    pub fn der(&self) -> &[u8] {
        &self.der
    }

    /// The subject, as encoded in the request.
    #[must_use]
    pub fn subject_der(&self) -> &[u8] {
        todo!()
    }

    /// The subject public key info, as encoded in the request.
    #[must_use]
    pub fn spki_der(&self) -> &[u8] {
        todo!()
    }

    /// The DNS names it asks for, as written.
    #[must_use]
    pub fn dns_names(&self) -> &[String] {
        &self.dns_names
    }

    /// The IP addresses it asks for.
    #[must_use]
    pub fn ip_addresses(&self) -> &[IpAddr] {
        &self.ip_addresses
    }

    /// The subject for people (RFC 4514), control characters escaped.
    #[must_use]
    pub fn subject_text(&self) -> &str {
        &self.subject_text
    }
}
