//! A certificate revocation list (RFC 5280 §5) as a verifier needs it.
//!
//! Reading one is linear in its entries and done once; afterwards nothing is: what the signature covers is hashed while
//! the list is read, and a serial number is found in a sorted index.
#![warn(clippy::indexing_slicing, clippy::arithmetic_side_effects)]

mod entries;
mod extensions;
mod number;
mod scope;
#[cfg(test)]
mod tests;

use std::time::SystemTime;

pub use self::entries::{Reason, Revoked};
pub use self::number::CrlNumber;
pub use self::scope::{Covers, Scope};
pub use crate::signature::SignatureError;

use self::entries::Entries;
use self::extensions::Extensions;
use crate::{
    asn1::{BIT_STRING, DerError, Element, INTEGER, Reader, SEQUENCE, context},
    cert::Certificate,
    digest,
    key::PublicKey,
    name,
    signature::{Scheme, Signed},
    time,
};

/// The largest list that is read, in bytes of DER: about a million entries.
pub const MAX_CRL: usize = 48 * 1024 * 1024;

/// Why a list could not be read, or may not be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CrlError {
    /// Larger than [`MAX_CRL`].
    #[error("revocation list of {found} bytes; accepted: at most {MAX_CRL}")]
    TooLarge {
        /// Its size in bytes.
        found: usize,
    },
    /// Not a revocation list, or bytes after it.
    #[error("not a valid X.509 revocation list")]
    Der(
        #[from]
        #[source]
        DerError,
    ),
    /// A signature algorithm that is not accepted.
    #[error("the revocation list is signed in a way that is not accepted")]
    Algorithm(#[source] SignatureError),
    /// It doesn't say until when it counts (RFC 5280 §5.1.2.5 asks for it).
    #[error(
        "revocation list has no nextUpdate; accepted: a list that says when the next one is due"
    )]
    NoNextUpdate,
    /// Only the changes since another list (RFC 5280 §5.2.4).
    #[error("revocation list is a delta list; accepted: complete lists")]
    Delta,
    /// One that lists certificates of other issuers (RFC 5280 §5.2.5).
    #[error("revocation list is indirect; accepted: lists of one issuer's own certificates")]
    Indirect,
    /// One whose scope is narrowed in a way that isn't applied here (RFC 5280 §5.2.5).
    #[error("revocation list {found}; accepted: lists of all reasons for public key certificates")]
    Scope {
        /// What narrows it.
        found: &'static str,
    },
    /// A critical extension that nothing here applies (RFC 5280 §5.2, §5.3).
    #[error("revocation list has the critical extension {oid}, which is not understood")]
    UnknownCritical {
        /// Which, dotted.
        oid: String,
    },
    /// One extension twice (RFC 5280 §4.2).
    #[error("revocation list has the extension {oid} twice; accepted: each at most once")]
    DuplicateExtension {
        /// Which, dotted.
        oid: String,
    },
}

/// A complete list of one issuer.
///
/// Reading one proves nothing: no signature is checked until [`RevocationList::verify_signature`].
#[derive(Debug)]
pub struct RevocationList {
    fingerprint: [u8; 32],
    issuer_der: Box<[u8]>,
    issuer_text: String,
    this_update: SystemTime,
    next_update: SystemTime,
    extensions: Extensions,
    entries: Entries,
    scheme: Scheme,
    signed: Signed,
    signature: Box<[u8]>,
}

impl RevocationList {
    /// Reads one list in DER.
    ///
    /// # Errors
    /// Too large, not a list, bytes after it, or a kind of list that is not accepted.
    pub fn parse(der: &[u8]) -> Result<Self, CrlError> {
        if der.len() > MAX_CRL {
            return Err(CrlError::TooLarge { found: der.len() });
        }
        let mut whole = Reader::single(der, SEQUENCE, "a revocation list")?.inside();
        let tbs = whole.expect(SEQUENCE, "a to-be-signed list")?;
        let outer_algorithm = whole.expect(SEQUENCE, "a signature algorithm")?;
        let signature = whole.expect(BIT_STRING, "a signature")?.octets_of_bits()?;
        whole.finish()?;

        let mut inside = tbs.inside();
        let is_version_2 = version(&mut inside)?;
        let inner_algorithm = inside.expect(SEQUENCE, "a signature algorithm")?;
        if inner_algorithm.raw != outer_algorithm.raw {
            // RFC 5280 §5.1.1.2, as for certificates.
            return Err(outer_algorithm
                .bad("algorithm: the list names two different ones")
                .into());
        }
        let scheme = Scheme::read(&outer_algorithm).map_err(CrlError::Algorithm)?;
        let issuer = name::read(&mut inside)?;
        let this_update = time::read(&mut inside)?;
        if !time::is_next(&inside) {
            return Err(CrlError::NoNextUpdate);
        }
        let next_update = time::read(&mut inside)?;
        let entries = inside.optional(SEQUENCE)?;
        let extensions = match inside.optional(context(0))? {
            Some(extensions) if is_version_2 => Extensions::read(&extensions)?,
            Some(extensions) => {
                return Err(extensions
                    .bad("list of version 1: it has extensions")
                    .into());
            }
            None => Extensions::default(),
        };
        inside.finish()?;
        // What kind of list it is comes first: that says more than an entry which other kinds have.
        let entries = match entries {
            Some(entries) => Entries::read(&entries, is_version_2)?,
            None => Entries::default(),
        };
        Ok(Self {
            fingerprint: digest::sha256(der),
            issuer_der: issuer.raw.into(),
            issuer_text: name::text(&issuer),
            this_update,
            next_update,
            extensions,
            entries,
            scheme,
            signed: scheme.hash(tbs.raw),
            signature: signature.into(),
        })
    }

    /// Checks the list's signature under an issuer's key. The cost doesn't depend on the entries, but for Ed25519, whose
    /// signatures are over the whole text.
    ///
    /// # Errors
    /// A signature of another key or over other bytes.
    pub fn verify_signature(&self, issuer_spki_der: &[u8]) -> Result<(), SignatureError> {
        let key = PublicKey::from_der(issuer_spki_der)?;
        self.scheme
            .verify_signed(&key, &self.signed, &self.signature)
    }

    /// What the list says about the certificate with this serial number: the content of its INTEGER, as
    /// [`Certificate::serial`] has it. `None` if it isn't listed.
    #[must_use]
    pub fn find(&self, serial: &[u8]) -> Option<Revoked> {
        self.entries.find(serial)
    }

    /// Whether the list speaks about this certificate at all, as far as its scope goes: that the certificate is of the
    /// list's issuer is for the caller to know.
    #[must_use]
    pub fn covers(&self, certificate: &Certificate) -> bool {
        self.extensions.scope.covers(certificate)
    }

    /// SHA-256 of the whole DER.
    #[must_use]
    pub fn fingerprint_sha256(&self) -> [u8; 32] {
        self.fingerprint
    }

    /// The issuer, as encoded.
    #[must_use]
    pub fn issuer_der(&self) -> &[u8] {
        &self.issuer_der
    }

    /// The issuer for people (RFC 4514), control characters escaped.
    #[must_use]
    pub fn issuer_text(&self) -> &str {
        &self.issuer_text
    }

    /// When the list was made.
    #[must_use]
    pub fn this_update(&self) -> SystemTime {
        self.this_update
    }

    /// When the next list is due, and this one no longer to be relied on.
    #[must_use]
    pub fn next_update(&self) -> SystemTime {
        self.next_update
    }

    /// cRLNumber, which grows with every list of one issuer and scope.
    #[must_use]
    pub fn number(&self) -> Option<&CrlNumber> {
        self.extensions.number.as_ref()
    }

    /// The key identifier of authorityKeyIdentifier: tells which of its issuer's keys signed the list.
    #[must_use]
    pub fn authority_key_id(&self) -> Option<&[u8]> {
        self.extensions.authority_key_id.as_deref()
    }

    /// Which certificates of the issuer the list is about.
    #[must_use]
    pub fn scope(&self) -> &Scope {
        &self.extensions.scope
    }

    /// How many entries it has.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether it lists nobody.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Version 1 has no field of its own (RFC 5280 §5.1.2.1).
fn version(inside: &mut Reader<'_>) -> Result<bool, DerError> {
    match inside.optional(INTEGER)? {
        None => Ok(false),
        Some(version) if version.value == [1] => Ok(true),
        Some(version) => Err(version.bad("version of a list: 2 is the only one that is written")),
    }
}

/// A serial number in its shortest form: certificates with leading zeros exist (X.690 §8.3.2 forbids them).
fn shortest(serial: &[u8]) -> &[u8] {
    let mut serial = serial;
    while let [first @ (0 | 0xff), rest @ ..] = serial
        && rest
            .first()
            .is_some_and(|next| (next & 0x80 != 0) == (*first == 0xff))
    {
        serial = rest;
    }
    serial
}

/// A serial number of an entry: any INTEGER in its shortest form.
fn serial<'a>(element: &Element<'a>) -> Result<&'a [u8], DerError> {
    if element.value.is_empty() || shortest(element.value) != element.value {
        return Err(element.bad("INTEGER in its shortest form"));
    }
    Ok(element.value)
}
