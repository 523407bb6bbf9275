//! Writing DER.

use const_oid::ObjectIdentifier;

use super::{BIT_STRING, BOOLEAN, INTEGER, OCTET_STRING, OID, SEQUENCE, SET};

/// One element of these contents, one after the other.
pub(crate) fn element(tag: u8, contents: &[&[u8]]) -> Vec<u8> {
    let length: usize = contents.iter().map(|part| part.len()).sum();
    let mut out = Vec::with_capacity(length.saturating_add(6));
    out.push(tag);
    push_length(&mut out, length);
    for part in contents {
        out.extend_from_slice(part);
    }
    out
}

/// SEQUENCE.
pub(crate) fn sequence(contents: &[&[u8]]) -> Vec<u8> {
    element(SEQUENCE, contents)
}

/// SET OF one.
pub(crate) fn set_of_one(content: &[u8]) -> Vec<u8> {
    element(SET, &[content])
}

/// OBJECT IDENTIFIER.
pub(crate) fn oid(oid: &ObjectIdentifier) -> Vec<u8> {
    element(OID, &[oid.as_bytes()])
}

/// OCTET STRING.
pub(crate) fn octet_string(bytes: &[u8]) -> Vec<u8> {
    element(OCTET_STRING, &[bytes])
}

/// BIT STRING of whole octets.
pub(crate) fn bit_string(bytes: &[u8]) -> Vec<u8> {
    element(BIT_STRING, &[&[0], bytes])
}

/// BIT STRING of named bits: trailing zero bits left out (X.690 §11.2.2). Bit 0 is the first.
#[cfg(feature = "issue")]
pub(crate) fn named_bits(bits: impl IntoIterator<Item = u8>) -> Vec<u8> {
    let octet = bits
        .into_iter()
        .filter(|&bit| bit < 8)
        .fold(0_u8, |sum, bit| sum | (0x80 >> bit));
    if octet == 0 {
        return element(BIT_STRING, &[&[0]]);
    }
    let unused = u8::try_from(octet.trailing_zeros()).unwrap_or(0);
    element(BIT_STRING, &[&[unused, octet]])
}

/// BOOLEAN TRUE; FALSE is only ever a default, which DER leaves out.
pub(crate) fn boolean_true() -> Vec<u8> {
    element(BOOLEAN, &[&[0xff]])
}

/// INTEGER from the magnitude of a non-negative number.
pub(crate) fn unsigned(magnitude: &[u8]) -> Vec<u8> {
    let start = magnitude
        .iter()
        .position(|&octet| octet != 0)
        .unwrap_or(magnitude.len());
    let (_, digits) = magnitude.split_at(start);
    match digits.first() {
        None => element(INTEGER, &[&[0]]),
        Some(first) if first & 0x80 != 0 => element(INTEGER, &[&[0], digits]),
        Some(_) => element(INTEGER, &[digits]),
    }
}

fn push_length(out: &mut Vec<u8>, length: usize) {
    if let Some(short) = u8::try_from(length).ok().filter(|&length| length < 0x80) {
        out.push(short);
        return;
    }
    let octets = length.to_be_bytes();
    let zeros = octets.iter().take_while(|&&octet| octet == 0).count();
    let (_, octets) = octets.split_at(zeros);
    let count = u8::try_from(octets.len()).expect("a usize has at most 8 octets");
    out.push(0x80 | count);
    out.extend_from_slice(octets);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_and_integers_are_written_in_their_shortest_form() {
        assert_eq!(octet_string(&[7]), [4, 1, 7]);
        assert_eq!(
            octet_string(&[0; 0x80]).get(..3),
            Some(&[4, 0x81, 0x80][..])
        );
        assert_eq!(
            octet_string(&[0; 0x100]).get(..4),
            Some(&[4, 0x82, 1, 0][..])
        );
        assert_eq!(unsigned(&[0, 0]), [2, 1, 0]);
        assert_eq!(unsigned(&[0, 0x80]), [2, 2, 0, 0x80]);
        assert_eq!(unsigned(&[0, 0x7f]), [2, 1, 0x7f]);
    }

    #[cfg(feature = "issue")]
    #[test]
    fn named_bits_have_no_trailing_zeros() {
        assert_eq!(named_bits([0]), [3, 2, 7, 0x80]);
        assert_eq!(named_bits([5, 6]), [3, 2, 1, 0x06]);
        assert_eq!(named_bits([]), [3, 1, 0]);
    }
}
