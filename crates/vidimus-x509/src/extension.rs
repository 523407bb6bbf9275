//! Extensions as they are read, in certificates, requests and revocation lists.
#![warn(clippy::indexing_slicing, clippy::arithmetic_side_effects)]

use std::collections::HashSet;

use crate::asn1::{BOOLEAN, DerError, Element, OCTET_STRING, OID, Reader, SEQUENCE};
use crate::oid;

/// One extension (RFC 5280 §4.1.2.9).
pub(crate) struct Extension<'a> {
    /// The content of extnID.
    pub(crate) id: &'a [u8],
    pub(crate) critical: bool,
    /// extnValue.
    pub(crate) value: Element<'a>,
}

impl<'a> Extension<'a> {
    pub(crate) fn read(reader: &mut Reader<'a>) -> Result<Self, DerError> {
        let mut inside = reader.expect(SEQUENCE, "an extension")?.inside();
        let id = inside.expect(OID, "an extension's identifier")?.value;
        let critical = match inside.optional(BOOLEAN)? {
            Some(critical) => critical.boolean()?,
            None => false,
        };
        let value = inside.expect(OCTET_STRING, "an extension's value")?;
        inside.finish()?;
        Ok(Self {
            id,
            critical,
            value,
        })
    }
}

/// Takes each extension of an explicitly tagged sequence of them. One that occurs twice is an error (RFC 5280 §4.2), which
/// `duplicate` makes of its dotted identifier.
pub(crate) fn each<'a, E: From<DerError>>(
    explicit: &Element<'a>,
    duplicate: impl FnOnce(String) -> E,
    mut take: impl FnMut(&Extension<'a>) -> Result<(), E>,
) -> Result<(), E> {
    let mut inside = explicit.inside();
    let mut list = inside.expect(SEQUENCE, "extensions")?.inside();
    inside.finish()?;
    let mut seen = HashSet::new();
    while !list.is_empty() {
        let extension = Extension::read(&mut list)?;
        if !seen.insert(extension.id) {
            return Err(duplicate(oid::dotted(extension.id)));
        }
        take(&extension)?;
    }
    Ok(())
}
