//! The revoked certificates, in a form in which a hundred thousand of them cost little.

use std::{
    fmt,
    time::{Duration, SystemTime},
};

use const_oid::ObjectIdentifier;

use super::{CrlError, serial, shortest};
use crate::{
    asn1::{DerError, ENUMERATED, Element, GENERALIZED_TIME, INTEGER, SEQUENCE},
    extension::Extension,
    oid, time,
};

/// No serial number is longer; RFC 5280 §4.1.2.2 allows 20 octets.
const MAX_SERIAL: usize = 64;

/// What a list says about one certificate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Revoked {
    /// When it was revoked.
    pub since: SystemTime,
    /// Why, where the list says so.
    pub reason: Option<Reason>,
}

/// reasonCode (RFC 5280 §5.3.1). `removeFromCRL` belongs to delta lists and is not among them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// 0.
    Unspecified,
    /// 1.
    KeyCompromise,
    /// 2.
    CaCompromise,
    /// 3.
    AffiliationChanged,
    /// 4.
    Superseded,
    /// 5.
    CessationOfOperation,
    /// 6. Counts as revoked for as long as it is listed.
    CertificateHold,
    /// 9.
    PrivilegeWithdrawn,
    /// 10.
    AaCompromise,
}

const REASONS: [(u8, Reason, &str); 9] = [
    (0, Reason::Unspecified, "unspecified"),
    (1, Reason::KeyCompromise, "keyCompromise"),
    (2, Reason::CaCompromise, "cACompromise"),
    (3, Reason::AffiliationChanged, "affiliationChanged"),
    (4, Reason::Superseded, "superseded"),
    (5, Reason::CessationOfOperation, "cessationOfOperation"),
    (6, Reason::CertificateHold, "certificateHold"),
    (9, Reason::PrivilegeWithdrawn, "privilegeWithdrawn"),
    (10, Reason::AaCompromise, "aACompromise"),
];

impl fmt::Display for Reason {
    /// The name in RFC 5280.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let known = REASONS.iter().find(|(_, reason, _)| reason == self);
        f.write_str(known.map_or("unspecified", |(_, _, name)| name))
    }
}

/// All serial numbers one after the other, and an index into them that is sorted by serial number.
#[derive(Debug, Default)]
pub(super) struct Entries {
    serials: Box<[u8]>,
    index: Box<[Entry]>,
}

/// 16 bytes an entry, whatever the length of its serial number.
#[derive(Debug, Clone, Copy)]
struct Entry {
    /// Seconds since 1970.
    since: u64,
    start: u32,
    length: u8,
    reason: Option<Reason>,
}

impl Entry {
    fn serial<'a>(&self, serials: &'a [u8]) -> &'a [u8] {
        let start = usize::try_from(self.start).unwrap_or(usize::MAX);
        let end = start.saturating_add(usize::from(self.length));
        serials.get(start..end).unwrap_or_default()
    }
}

impl Entries {
    /// Reads `revokedCertificates`. Without entries the field must be absent (RFC 5280 §5.1.2.6); lists with an empty one
    /// exist and say the same.
    pub(super) fn read(list: &Element<'_>, is_version_2: bool) -> Result<Self, CrlError> {
        let (mut serials, mut index) = (Vec::new(), Vec::new());
        let mut rest = list.inside();
        while !rest.is_empty() {
            let element = rest.expect(SEQUENCE, "an entry")?;
            let mut inside = element.inside();
            let number = inside.expect(INTEGER, "a serial number")?;
            let octets = serial(&number)?;
            let since = time::read(&mut inside)?;
            let reason = match inside.optional(SEQUENCE)? {
                Some(extensions) if is_version_2 => read_extensions(&extensions)?,
                Some(extensions) => {
                    return Err(extensions
                        .bad("entry of a version 1 list: it has extensions")
                        .into());
                }
                None => None,
            };
            inside.finish()?;
            let length = u8::try_from(octets.len())
                .ok()
                .filter(|_| octets.len() <= MAX_SERIAL)
                .ok_or_else(|| number.bad("serial number of at most 64 octets"))?;
            let since = since.duration_since(SystemTime::UNIX_EPOCH);
            index.push(Entry {
                since: since.unwrap_or_default().as_secs(),
                // A list has fewer bytes than 2^32.
                start: u32::try_from(serials.len()).unwrap_or(u32::MAX),
                length,
                reason,
            });
            serials.extend_from_slice(octets);
        }
        index.sort_by(|one, two| one.serial(&serials).cmp(two.serial(&serials)));
        Ok(Self {
            serials: serials.into(),
            index: index.into(),
        })
    }

    pub(super) fn len(&self) -> usize {
        self.index.len()
    }

    pub(super) fn find(&self, serial: &[u8]) -> Option<Revoked> {
        let wanted = shortest(serial);
        let found = self
            .index
            .binary_search_by(|entry| entry.serial(&self.serials).cmp(wanted))
            .ok()?;
        let entry = self.index.get(found)?;
        let since = SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(entry.since));
        Some(Revoked {
            since: since.unwrap_or(SystemTime::UNIX_EPOCH),
            reason: entry.reason,
        })
    }
}

fn read_extensions(extensions: &Element<'_>) -> Result<Option<Reason>, CrlError> {
    let mut list = extensions.inside();
    let (mut reason, mut has_reason) = (None, false);
    while !list.is_empty() {
        let extension = Extension::read(&mut list)?;
        match ObjectIdentifier::from_bytes(extension.id) {
            Ok(oid::CRL_REASON) if has_reason => {
                return Err(CrlError::DuplicateExtension {
                    oid: oid::dotted(extension.id),
                });
            }
            Ok(oid::CRL_REASON) => {
                reason = Some(read_reason(&extension)?);
                has_reason = true;
            }
            // When the key is thought to have been lost: no matter for us.
            Ok(oid::INVALIDITY_DATE) => {
                let mut content = extension.value.inside();
                content.expect(GENERALIZED_TIME, "an invalidity date")?;
                content.finish()?;
            }
            Ok(oid::CERTIFICATE_ISSUER) => return Err(CrlError::Indirect),
            _ if extension.critical => {
                return Err(CrlError::UnknownCritical {
                    oid: oid::dotted(extension.id),
                });
            }
            _ => {}
        }
    }
    Ok(reason)
}

fn read_reason(extension: &Extension<'_>) -> Result<Reason, DerError> {
    let mut content = extension.value.inside();
    let code = content.expect(ENUMERATED, "a reason code")?;
    content.finish()?;
    let known = |octet: u8| REASONS.iter().find(|(number, _, _)| *number == octet);
    match code.value {
        [octet] => known(*octet).map(|(_, reason, _)| *reason),
        _ => None,
    }
    .ok_or_else(|| code.bad("reason code of a complete list"))
}
