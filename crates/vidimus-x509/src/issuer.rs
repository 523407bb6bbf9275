//! The certificate of the CA that signs.

use std::time::SystemTime;

use crate::{
    cert::{CertError, Certificate},
    key::KeyPolicyError,
    signer::SignatureAlgorithm,
};

/// Why a certificate can't be an issuer's. Positions count from 1: the issuer's own.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IssuerError {
    /// No certificate was given.
    #[error("the issuer's chain is empty")]
    Empty,
    /// One can't be read.
    #[error("certificate {position} of the issuer's chain can't be read")]
    Read {
        /// Which.
        position: usize,
        /// Why.
        #[source]
        source: CertError,
    },
    /// basicConstraints don't say CA, or keyUsage doesn't say keyCertSign.
    #[error("certificate {position} of the issuer's chain ({subject}) is not a CA's")]
    NotCa {
        /// Which.
        position: usize,
        /// Whose it is.
        subject: String,
    },
    /// The issuer's key isn't one that Vidimus signs with.
    #[error("key of the issuer {subject} is not accepted")]
    Key {
        /// Whose it is.
        subject: String,
        /// Why not.
        #[source]
        source: KeyPolicyError,
    },
    /// A certificate without a subject can't be named as an issuer (RFC 5280 §4.1.2.6).
    #[error("the issuer's certificate has an empty subject; accepted: a CA with a name")]
    Nameless,
    /// A CA above allows fewer CAs below it than there already are.
    #[error(
        "certificate {position} of the issuer's chain ({subject}) allows fewer CAs below it than \
         there are"
    )]
    PathLen {
        /// Which.
        position: usize,
        /// Whose it is.
        subject: String,
    },
}

/// What of an issuer's certificate goes into those it signs, and what bounds them.
#[derive(Debug, Clone)]
pub struct Issuer {
    subject_der: Vec<u8>,
    spki_der: Vec<u8>,
    algorithm: SignatureAlgorithm,
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

    /// From the issuer's certificate and those above it: nothing issued outlives or outgrows any of
    /// them. The links aren't checked; that is [`crate::chain::verify_ca_chain`]'s part.
    ///
    /// # Errors
    /// As [`Issuer::from_certificate`], for each.
    pub fn from_chain(chain_der: &[&[u8]]) -> Result<Self, IssuerError> {
        let (own, above) = chain_der.split_first().ok_or(IssuerError::Empty)?;
        let own = read_ca(own, 1)?;
        let algorithm =
            SignatureAlgorithm::of_key(own.spki_der()).map_err(|source| IssuerError::Key {
                subject: own.subject_text().to_owned(),
                source,
            })?;
        if own.subject_text().is_empty() {
            return Err(IssuerError::Nameless);
        }
        let mut issuer = Self {
            subject_der: own.subject_der().to_vec(),
            spki_der: own.spki_der().to_vec(),
            algorithm,
            key_id: own.key_id().to_vec(),
            not_before: own.not_before(),
            not_after: own.not_after(),
            path_len: own.path_len(),
            subject_text: own.subject_text().to_owned(),
        };
        for ((der, position), cas_between) in above.iter().zip(2..).zip(1_u32..) {
            let ca = read_ca(der, position)?;
            issuer.bound_by(&ca, position, cas_between)?;
        }
        Ok(issuer)
    }

    fn bound_by(
        &mut self,
        ca: &Certificate,
        position: usize,
        cas_between: u32,
    ) -> Result<(), IssuerError> {
        self.not_before = self.not_before.max(ca.not_before());
        self.not_after = self.not_after.min(ca.not_after());
        if let Some(allowed) = ca.path_len() {
            let left = allowed
                .checked_sub(cas_between)
                .ok_or_else(|| IssuerError::PathLen {
                    position,
                    subject: ca.subject_text().to_owned(),
                })?;
            self.path_len = Some(self.path_len.map_or(left, |own| own.min(left)));
        }
        Ok(())
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

    /// How its key signs.
    #[must_use]
    pub fn algorithm(&self) -> SignatureAlgorithm {
        self.algorithm
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

fn read_ca(der: &[u8], position: usize) -> Result<Certificate, IssuerError> {
    let ca = Certificate::parse(der).map_err(|source| IssuerError::Read { position, source })?;
    if ca.is_ca() && ca.may_sign_certificates() {
        Ok(ca)
    } else {
        Err(IssuerError::NotCa {
            position,
            subject: ca.subject_text().to_owned(),
        })
    }
}
