//! DER (X.690) as this crate needs it: a strict reader over borrowed bytes, and a writer.
//!
//! The reader takes definite, minimal lengths and low tag numbers only. It keeps each element's
//! raw bytes: what is hashed, verified or copied into a certificate is what stood there, never a
//! second encoding of it.
#![warn(clippy::indexing_slicing, clippy::arithmetic_side_effects)]

#[cfg(any(test, feature = "issue"))]
pub(crate) mod write;

use const_oid::ObjectIdentifier;

pub(crate) const BOOLEAN: u8 = 0x01;
pub(crate) const INTEGER: u8 = 0x02;
pub(crate) const BIT_STRING: u8 = 0x03;
pub(crate) const OCTET_STRING: u8 = 0x04;
pub(crate) const NULL: u8 = 0x05;
pub(crate) const OID: u8 = 0x06;
pub(crate) const ENUMERATED: u8 = 0x0a;
pub(crate) const UTF8_STRING: u8 = 0x0c;
pub(crate) const NUMERIC_STRING: u8 = 0x12;
pub(crate) const PRINTABLE_STRING: u8 = 0x13;
pub(crate) const TELETEX_STRING: u8 = 0x14;
pub(crate) const IA5_STRING: u8 = 0x16;
pub(crate) const UTC_TIME: u8 = 0x17;
pub(crate) const GENERALIZED_TIME: u8 = 0x18;
pub(crate) const BMP_STRING: u8 = 0x1e;
pub(crate) const SEQUENCE: u8 = 0x30;
pub(crate) const SET: u8 = 0x31;

/// A constructed context tag: `[n]` around other elements.
pub(crate) const fn context(number: u8) -> u8 {
    0xa0 | number
}

/// A primitive context tag: `[n] IMPLICIT` of a string.
pub(crate) const fn context_primitive(number: u8) -> u8 {
    0x80 | number
}

/// Where DER stopped making sense.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("invalid DER at byte {offset}: {fault}")]
pub struct DerError {
    /// Counted from 0, from the start of the whole structure.
    pub offset: usize,
    /// What is wrong there.
    pub fault: DerFault,
}

/// What is wrong with a piece of DER.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum DerFault {
    /// An element is longer than what holds it.
    #[error("the element ends past the end of what holds it")]
    Truncated,
    /// A tag number above 30.
    #[error("a tag number above 30")]
    Tag,
    /// An indefinite length, or one not in its shortest form.
    #[error("a length that is not in its shortest definite form")]
    Length,
    /// Another element than the structure has here.
    #[error("tag {found:#04x} where {wanted} belongs")]
    Unexpected {
        /// The tag that stands here.
        found: u8,
        /// What belongs here.
        wanted: &'static str,
    },
    /// Nothing, where an element belongs.
    #[error("nothing where {wanted} belongs")]
    Missing {
        /// What belongs here.
        wanted: &'static str,
    },
    /// Bytes after the end.
    #[error("{extra} bytes after the end")]
    Trailing {
        /// How many.
        extra: usize,
    },
    /// Nested deeper than anything real.
    #[error("nested too deep")]
    Depth,
    /// An element of the right kind with a content that isn't.
    #[error("not a valid {what}")]
    Content {
        /// The kind.
        what: &'static str,
    },
}

/// One element.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Element<'a> {
    /// Its identifier octet.
    pub(crate) tag: u8,
    /// Its content.
    pub(crate) value: &'a [u8],
    /// Identifier, length and content.
    pub(crate) raw: &'a [u8],
    /// Where `value` starts.
    offset: usize,
}

/// Elements one after the other.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reader<'a> {
    rest: &'a [u8],
    offset: usize,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self {
            rest: bytes,
            offset: 0,
        }
    }

    /// The only element of `bytes`.
    pub(crate) fn single(
        bytes: &'a [u8],
        tag: u8,
        wanted: &'static str,
    ) -> Result<Element<'a>, DerError> {
        let mut reader = Self::new(bytes);
        let element = reader.expect(tag, wanted)?;
        reader.finish()?;
        Ok(element)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// The tag of the next element.
    pub(crate) fn peek(&self) -> Option<u8> {
        self.rest.first().copied()
    }

    /// The next element, whatever it is.
    pub(crate) fn any(&mut self, wanted: &'static str) -> Result<Element<'a>, DerError> {
        let start = self.rest;
        let (&tag, rest) = start
            .split_first()
            .ok_or_else(|| self.fault(DerFault::Missing { wanted }))?;
        if tag & 0x1f == 0x1f {
            return Err(self.fault(DerFault::Tag));
        }
        let (length, rest) = self.length(rest)?;
        let (value, rest) = rest
            .split_at_checked(length)
            .ok_or_else(|| self.fault(DerFault::Truncated))?;
        // Both differences are lengths of prefixes of `start`.
        let raw_len = start.len().saturating_sub(rest.len());
        let raw = start.get(..raw_len).unwrap_or_default();
        let offset = self
            .offset
            .saturating_add(raw_len.saturating_sub(value.len()));
        self.offset = self.offset.saturating_add(raw_len);
        self.rest = rest;
        Ok(Element {
            tag,
            value,
            raw,
            offset,
        })
    }

    /// The next element, which must have this tag.
    pub(crate) fn expect(
        &mut self,
        tag: u8,
        wanted: &'static str,
    ) -> Result<Element<'a>, DerError> {
        let here = *self;
        let element = self.any(wanted)?;
        if element.tag == tag {
            return Ok(element);
        }
        let found = element.tag;
        Err(here.fault(DerFault::Unexpected { found, wanted }))
    }

    /// The next element if it has this tag.
    pub(crate) fn optional(&mut self, tag: u8) -> Result<Option<Element<'a>>, DerError> {
        if self.rest.first() == Some(&tag) {
            self.any("an optional element").map(Some)
        } else {
            Ok(None)
        }
    }

    /// That nothing follows.
    pub(crate) fn finish(self) -> Result<(), DerError> {
        match self.rest.len() {
            0 => Ok(()),
            extra => Err(self.fault(DerFault::Trailing { extra })),
        }
    }

    fn length(&self, rest: &'a [u8]) -> Result<(usize, &'a [u8]), DerError> {
        let (&first, rest) = rest
            .split_first()
            .ok_or_else(|| self.fault(DerFault::Truncated))?;
        if first < 0x80 {
            return Ok((usize::from(first), rest));
        }
        let count = usize::from(first & 0x7f);
        if count == 0 || count > 4 {
            return Err(self.fault(DerFault::Length));
        }
        let (octets, rest) = rest
            .split_at_checked(count)
            .ok_or_else(|| self.fault(DerFault::Truncated))?;
        let length = octets
            .iter()
            .fold(0_u64, |sum, &octet| (sum << 8) | u64::from(octet));
        if length < 0x80 || octets.first() == Some(&0) {
            return Err(self.fault(DerFault::Length));
        }
        let length = usize::try_from(length).map_err(|_| self.fault(DerFault::Length))?;
        Ok((length, rest))
    }

    fn fault(&self, fault: DerFault) -> DerError {
        DerError {
            offset: self.offset,
            fault,
        }
    }
}

impl<'a> Element<'a> {
    /// The elements inside.
    pub(crate) fn inside(&self) -> Reader<'a> {
        Reader {
            rest: self.value,
            offset: self.offset,
        }
    }

    /// That the content isn't what it should be.
    pub(crate) fn bad(&self, what: &'static str) -> DerError {
        DerError {
            offset: self.offset,
            fault: DerFault::Content { what },
        }
    }

    /// BOOLEAN: 0x00 or 0xff (X.690 §11.1).
    pub(crate) fn boolean(&self) -> Result<bool, DerError> {
        match self.value {
            [0x00] => Ok(false),
            [0xff] => Ok(true),
            _ => Err(self.bad("BOOLEAN")),
        }
    }

    /// The magnitude of a non-negative INTEGER, without leading zeros; zero is no bytes at all.
    pub(crate) fn unsigned(&self) -> Result<&'a [u8], DerError> {
        match self.value {
            [] => Err(self.bad("INTEGER")),
            [0] => Ok(&[]),
            [0, next, ..] if next & 0x80 == 0 => Err(self.bad("INTEGER in its shortest form")),
            [0, magnitude @ ..] => Ok(magnitude),
            [first, ..] if first & 0x80 != 0 => Err(self.bad("non-negative INTEGER")),
            magnitude => Ok(magnitude),
        }
    }

    /// A small non-negative INTEGER.
    pub(crate) fn unsigned_u32(&self) -> Result<u32, DerError> {
        let magnitude = self.unsigned()?;
        if magnitude.len() > 4 {
            return Err(self.bad("INTEGER below 2^32"));
        }
        Ok(magnitude
            .iter()
            .fold(0, |sum, &octet| (sum << 8) | u32::from(octet)))
    }

    /// The bytes of a BIT STRING of whole octets.
    pub(crate) fn octets_of_bits(&self) -> Result<&'a [u8], DerError> {
        match self.value {
            [0, octets @ ..] => Ok(octets),
            _ => Err(self.bad("BIT STRING of whole octets")),
        }
    }

    /// OBJECT IDENTIFIER.
    pub(crate) fn oid(&self) -> Result<ObjectIdentifier, DerError> {
        ObjectIdentifier::from_bytes(self.value).map_err(|_| self.bad("OBJECT IDENTIFIER"))
    }

    /// An ASCII string, as `IA5String` and the name forms built on it are.
    pub(crate) fn ia5(&self) -> Result<&'a str, DerError> {
        std::str::from_utf8(self.value)
            .ok()
            .filter(|text| text.is_ascii())
            .ok_or_else(|| self.bad("IA5String"))
    }
}

/// Checks that `bytes` are one well-formed element, all the way down.
#[cfg(feature = "issue")]
pub(crate) fn check_well_formed(bytes: &[u8]) -> Result<(), DerError> {
    let mut reader = Reader::new(bytes);
    let element = reader.any("an element")?;
    reader.finish()?;
    check_inside(&element, 16)
}

#[cfg(feature = "issue")]
fn check_inside(element: &Element<'_>, depth: u8) -> Result<(), DerError> {
    let constructed = element.tag & 0x20 != 0;
    match element.tag {
        BOOLEAN => element.boolean().map(drop),
        NULL if !element.value.is_empty() => Err(element.bad("NULL")),
        OID => crate::oid::check(element),
        _ if !constructed => Ok(()),
        _ => {
            let depth = depth.checked_sub(1).ok_or(DerError {
                offset: element.offset,
                fault: DerFault::Depth,
            })?;
            let mut inside = element.inside();
            while !inside.is_empty() {
                check_inside(&inside.any("an element")?, depth)?;
            }
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lengths must be the shortest; the same content in its shortest form is taken.
    #[test]
    fn only_minimal_definite_lengths_are_read() {
        let read = |bytes: &[u8]| Reader::single(bytes, OCTET_STRING, "it").map(|e| e.value.len());
        assert_eq!(read(&[4, 1, 0]), Ok(1));
        for (bytes, fault) in [
            (&[4, 0x81, 1, 0][..], DerFault::Length),
            (&[4, 0x80, 0, 0], DerFault::Length),
            (&[4, 0x82, 0, 0x80], DerFault::Length),
            (&[4, 0x85, 1, 1, 1, 1, 1], DerFault::Length),
            (&[4, 2, 0], DerFault::Truncated),
            (&[4, 0x84, 0xff, 0xff, 0xff, 0xff], DerFault::Truncated),
            (&[0x1f, 1, 0], DerFault::Tag),
            (&[4, 1, 0, 9], DerFault::Trailing { extra: 1 }),
            (&[], DerFault::Missing { wanted: "it" }),
        ] {
            assert_eq!(read(bytes).unwrap_err().fault, fault, "{bytes:02x?}");
        }
        let mut long = vec![4, 0x82, 0x01, 0x00];
        long.resize(260, 7);
        assert_eq!(read(&long), Ok(256));
    }

    /// An offset counts from the start of the whole, however deep the fault.
    #[test]
    fn faults_carry_the_offset_in_the_whole() {
        let bytes = [0x30, 5, 0x30, 3, 0x02, 0x01, 0xff];
        let outer = Reader::single(&bytes, SEQUENCE, "outer").unwrap();
        let inner = outer.inside().any("inner").unwrap();
        let number = inner.inside().any("number").unwrap();
        assert_eq!(number.unsigned().unwrap_err().offset, 6);
        let unexpected = inner.inside().expect(OID, "an OID").unwrap_err();
        assert_eq!(unexpected.offset, 4);
        assert_eq!(
            unexpected.to_string(),
            "invalid DER at byte 4: tag 0x02 where an OID belongs"
        );
    }

    /// INTEGER: shortest form, not negative.
    #[test]
    fn integers_are_read_in_their_shortest_form() {
        let read = |bytes: &[u8]| {
            Reader::single(bytes, INTEGER, "it").and_then(|e| e.unsigned().map(<[u8]>::to_vec))
        };
        assert_eq!(read(&[2, 1, 0]), Ok(vec![]));
        assert_eq!(read(&[2, 2, 0, 0x80]), Ok(vec![0x80]));
        assert!(read(&[2, 2, 0, 0x7f]).is_err());
        assert!(read(&[2, 1, 0x80]).is_err());
        assert!(read(&[2, 0]).is_err());
    }
}
