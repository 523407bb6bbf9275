//! Extensions as they are read, in certificates and in requests.
#![warn(clippy::indexing_slicing, clippy::arithmetic_side_effects)]

use crate::asn1::{BOOLEAN, DerError, Element, OCTET_STRING, OID, Reader, SEQUENCE};

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
