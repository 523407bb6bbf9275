//! Chains: put in order, and checked link by link.
#![warn(clippy::indexing_slicing, clippy::arithmetic_side_effects)]

use std::time::SystemTime;

use crate::{
    cert::{CertError, Certificate, SignatureError},
    time,
};

/// The most certificates a chain may have.
pub const MAX_CHAIN: usize = 10;

/// Why a chain was refused. Positions count from 1; the anchor's is one past the last that counted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ChainError {
    /// There is no certificate.
    #[error("the chain is empty")]
    Empty,
    /// More than [`MAX_CHAIN`].
    #[error("the chain has {found} certificates; accepted: at most {MAX_CHAIN}")]
    TooLong {
        /// How many.
        found: usize,
    },
    /// One can't be read.
    #[error("certificate {position} of the chain can't be read")]
    Read {
        /// Which.
        position: usize,
        /// Why.
        #[source]
        source: CertError,
    },
    /// One isn't a CA's.
    #[error("certificate {position} ({subject}) is not a CA's: basicConstraints without CA:TRUE")]
    NotCa {
        /// Which.
        position: usize,
        /// Whose.
        subject: String,
    },
    /// One may not sign certificates.
    #[error("certificate {position} ({subject}) may not sign: keyUsage without keyCertSign")]
    NoCertSign {
        /// Which.
        position: usize,
        /// Whose.
        subject: String,
    },
    /// One is not valid at the time of the check.
    #[error(
        "certificate {position} ({subject}) is valid from {} to {}, and it is {}",
        time::text(*not_before), time::text(*not_after), time::text(*now)
    )]
    Date {
        /// Which.
        position: usize,
        /// Whose.
        subject: String,
        /// When it begins.
        not_before: SystemTime,
        /// When it ends.
        not_after: SystemTime,
        /// The time of the check.
        now: SystemTime,
    },
    /// More CAs below one than it allows.
    #[error(
        "certificate {position} ({subject}) allows {allowed} CAs below it, and there are {found}"
    )]
    PathLen {
        /// Which.
        position: usize,
        /// Whose.
        subject: String,
        /// Its pathLenConstraint.
        allowed: u32,
        /// How many there are.
        found: usize,
    },
    /// One names another issuer than the next one is.
    #[error("certificate {position} is issued by {issuer}, but the next one is {next}")]
    Issuer {
        /// Which.
        position: usize,
        /// Its issuer.
        issuer: String,
        /// The subject of the next.
        next: String,
    },
    /// One isn't signed by the next.
    #[error("certificate {position} ({subject}) is not signed by the next one")]
    Signature {
        /// Which.
        position: usize,
        /// Whose.
        subject: String,
        /// Why not.
        #[source]
        source: SignatureError,
    },
    /// One has a critical extension that nothing here understands (RFC 5280 §6.1.4 (o)).
    #[error("certificate {position} ({subject}) has the unknown critical extension {oid}")]
    UnknownExtension {
        /// Which.
        position: usize,
        /// Whose.
        subject: String,
        /// The extension, dotted.
        oid: String,
    },
}

/// The leaf, then each issuer that `others` has for the one before, by name and signature.
///
/// Ends at a self-signed certificate (which is included) or where no issuer is found. Certificates
/// that don't belong are left out.
#[must_use]
pub fn order<'a>(leaf: &'a Certificate, others: &'a [Certificate]) -> Vec<&'a Certificate> {
    let mut chain = vec![leaf];
    let mut last = leaf;
    while chain.len() < MAX_CHAIN && !is_self_signed(last) {
        let issuer = others.iter().find(|candidate| {
            candidate.subject_der() == last.issuer_der()
                && !chain.iter().any(|used| used.der() == candidate.der())
                && last.verify_signature(candidate.spki_der()).is_ok()
        });
        let Some(issuer) = issuer else { break };
        chain.push(issuer);
        last = issuer;
    }
    chain
}

/// A CA certified by an older key of the same name is self-issued, but not self-signed: its chain
/// goes on.
fn is_self_signed(certificate: &Certificate) -> bool {
    certificate.issuer_der() == certificate.subject_der()
        && certificate.verify_signature(certificate.spki_der()).is_ok()
}

/// Checks a CA's chain, its own certificate first, up to one pinned anchor.
///
/// Each must be a CA with `keyCertSign`, valid at `now`, signed by the next, its issuer's name
/// equal byte for byte, within every path length above it. The chain counts up to the anchor, if that is
/// one of its certificates; otherwise the last must be signed by the anchor. The anchor's own dates
/// and path length are checked as well: RFC 5280 leaves that open, and verifiers differ.
///
/// Rules for names and policies of leaves (nameConstraints, certificatePolicies) aren't looked at.
///
/// # Errors
/// The first link that doesn't hold.
pub fn verify_ca_chain(
    chain_der: &[&[u8]],
    anchor_der: &[u8],
    now: SystemTime,
) -> Result<(), ChainError> {
    if chain_der.is_empty() {
        return Err(ChainError::Empty);
    }
    if chain_der.len() > MAX_CHAIN {
        let found = chain_der.len();
        return Err(ChainError::TooLong { found });
    }
    let below_anchor = chain_der.iter().take_while(|der| **der != anchor_der);
    let mut chain = Vec::new();
    for (der, position) in below_anchor.copied().chain([anchor_der]).zip(1..) {
        let certificate =
            Certificate::parse(der).map_err(|source| ChainError::Read { position, source })?;
        chain.push(certificate);
    }
    for (index, certificate) in chain.iter().enumerate() {
        check_ca(&chain, index, certificate, now)?;
    }
    for (pair, position) in chain.windows(2).zip(1..) {
        if let [certificate, issuer] = pair {
            check_link(certificate, issuer, position)?;
        }
    }
    Ok(())
}

fn check_ca(
    chain: &[Certificate],
    index: usize,
    certificate: &Certificate,
    now: SystemTime,
) -> Result<(), ChainError> {
    let position = index.saturating_add(1);
    let subject = || certificate.subject_text().to_owned();
    if !certificate.is_ca() {
        let subject = subject();
        return Err(ChainError::NotCa { position, subject });
    }
    if !certificate.may_sign_certificates() {
        let subject = subject();
        return Err(ChainError::NoCertSign { position, subject });
    }
    if !certificate.is_valid_at(now) {
        return Err(ChainError::Date {
            position,
            subject: subject(),
            not_before: certificate.not_before(),
            not_after: certificate.not_after(),
            now,
        });
    }
    if let Some(oid) = certificate.unknown_critical_extensions().first() {
        return Err(ChainError::UnknownExtension {
            position,
            subject: subject(),
            oid: oid.clone(),
        });
    }
    // RFC 5280 §6.1.4 (l): self-issued certificates don't count.
    let below = chain
        .iter()
        .take(index)
        .filter(|below| below.issuer_der() != below.subject_der())
        .count();
    match certificate.path_len() {
        Some(allowed) if u32::try_from(below).map_or(true, |below| below > allowed) => {
            Err(ChainError::PathLen {
                position,
                subject: subject(),
                allowed,
                found: below,
            })
        }
        _ => Ok(()),
    }
}

fn check_link(
    certificate: &Certificate,
    issuer: &Certificate,
    position: usize,
) -> Result<(), ChainError> {
    if certificate.issuer_der() != issuer.subject_der() {
        return Err(ChainError::Issuer {
            position,
            issuer: certificate.issuer_text().to_owned(),
            next: issuer.subject_text().to_owned(),
        });
    }
    certificate
        .verify_signature(issuer.spki_der())
        .map_err(|source| ChainError::Signature {
            position,
            subject: certificate.subject_text().to_owned(),
            source,
        })
}
