//! The certificate of the CA that signs.

use std::time::SystemTime;

/// Why a certificate can't be an issuer's.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IssuerError {
    /// basicConstraints don't say CA.
    #[error("certificate of {subject} is not a CA's")]
    NotCa {
        /// Whose it is.
        subject: String,
    },
}

/// What of an issuer's certificate goes into those it signs, and bounds them.
#[derive(Debug, Clone)]
pub struct Issuer {
    subject_der: Vec<u8>,
    spki_der: Vec<u8>,
    key_id: Vec<u8>,
    not_before: SystemTime,
    not_after: SystemTime,
    path_len: Option<u32>,
    subject_text: String,
}

impl Issuer {
    /// From the issuer's own certificate.
    ///
    /// # Errors
    /// Not a CA's certificate, or a key that Vidimus doesn't sign with.
    pub fn from_certificate(der: &[u8]) -> Result<Self, IssuerError> {
        Self::from_chain(&[der])
    }

    /// From the issuer's certificate and those above it: no certificate outlives or outgrows any of them.
    ///
    /// # Errors
    /// As [`Issuer::from_certificate`], for each.
    pub fn from_chain(chain_der: &[&[u8]]) -> Result<Self, IssuerError> {
        let _ = chain_der;
        todo!()
    }

    /// The subject, as encoded; copied into what is issued byte for byte.
    #[must_use]
    pub fn subject_der(&self) -> &[u8] {
        &self.subject_der
    }

    /// The subject for people.
    #[must_use]
    pub fn subject_text(&self) -> &str {
        &self.subject_text
    }

    /// The subject public key info.
    #[must_use]
    pub fn spki_der(&self) -> &[u8] {
        &self.spki_der
    }

    /// The subject key identifier.
    #[must_use]
    pub fn key_id(&self) -> &[u8] {
        &self.key_id
    }

    /// Nothing issued begins before this.
    #[must_use]
    pub fn not_before(&self) -> SystemTime {
        self.not_before
    }

    /// Nothing issued ends after this.
    #[must_use]
    pub fn not_after(&self) -> SystemTime {
        self.not_after
    }

    /// How many CAs may stand below this one; `None` is no limit.
    #[must_use]
    pub fn path_len(&self) -> Option<u32> {
        self.path_len
    }
}
