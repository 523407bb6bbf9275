//! Object identifiers as profiles name them.

use std::{fmt, str::FromStr};

use crate::oid;

/// An object identifier of a profile: at least two decimal arcs without leading zeros, each below
/// 2^31; the first 0 to 2, the second below 40 under 0 and 1.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct ObjectIdentifier(Vec<u8>);

/// A text that is no object identifier.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{found:?} is no object identifier; accepted: decimal arcs such as 1.3.6.1.5.5.7.3.3")]
pub struct InvalidObjectIdentifier {
    /// The text, cut to 80 characters.
    pub found: String,
}

/// More arcs than any real identifier has.
const MAX_ARCS: usize = 64;

impl ObjectIdentifier {
    /// From its dotted form.
    ///
    /// # Errors
    /// The text is none.
    pub fn new(text: &str) -> Result<Self, InvalidObjectIdentifier> {
        text.parse()
    }

    /// The content octets of its DER.
    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl From<const_oid::ObjectIdentifier> for ObjectIdentifier {
    fn from(known: const_oid::ObjectIdentifier) -> Self {
        Self(known.as_bytes().to_vec())
    }
}

impl FromStr for ObjectIdentifier {
    type Err = InvalidObjectIdentifier;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let arcs: Option<Vec<u32>> = text.split('.').take(MAX_ARCS + 1).map(arc).collect();
        arcs.and_then(|arcs| encode(&arcs))
            .map(Self)
            .ok_or_else(|| InvalidObjectIdentifier {
                found: text.chars().take(80).collect(),
            })
    }
}

impl fmt::Display for ObjectIdentifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&oid::dotted(&self.0))
    }
}

impl fmt::Debug for ObjectIdentifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ObjectIdentifier({self})")
    }
}

fn arc(text: &str) -> Option<u32> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let shortest = text.len() == 1 || !text.starts_with('0');
    let arc = text.parse().ok().filter(|arc| *arc < 1 << 31);
    arc.filter(|_| digits && shortest)
}

fn encode(arcs: &[u32]) -> Option<Vec<u8>> {
    let (&[first, second], rest) = arcs.split_first_chunk()?;
    if arcs.len() > MAX_ARCS || first > 2 || (first < 2 && second >= 40) {
        return None;
    }
    let mut out = Vec::new();
    push_arc(&mut out, first * 40 + second);
    for arc in rest {
        push_arc(&mut out, *arc);
    }
    Some(out)
}

/// Base 128, most significant group first, the high bit on all but the last (X.690 §8.19).
fn push_arc(out: &mut Vec<u8>, arc: u32) {
    let groups = (32 - arc.leading_zeros()).div_ceil(7).max(1);
    for group in (0..groups).rev() {
        let bits = u8::try_from((arc >> (7 * group)) & 0x7f).unwrap_or(0);
        out.push(if group == 0 { bits } else { bits | 0x80 });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// C3: dotted identifiers are decimal, shortest, and inside the tree.
    #[test]
    fn identifiers_are_checked_arc_by_arc() {
        for good in [
            "1.3.6.1.5.5.7.3.3",
            "0.39",
            "2.999.1",
            "1.2.2147483647",
            "2.0",
            "0.0.0",
        ] {
            assert_eq!(good.parse::<ObjectIdentifier>().unwrap().to_string(), good);
        }
        for bad in [
            "1",
            "",
            "1.",
            ".1",
            "1.40",
            "0.40",
            "3.1",
            "1.02",
            "1.2.2147483648",
            "1.2.-3",
            "1.2. 3",
            "1.+2",
            "1.2.99999999999",
        ] {
            assert!(bad.parse::<ObjectIdentifier>().is_err(), "{bad}");
        }
        assert!(["1"; 65].join(".").parse::<ObjectIdentifier>().is_err());
    }

    #[test]
    fn they_are_encoded_as_the_library_encodes_them() {
        for known in [
            "1.2.840.113549.1.1.1",
            "2.5.29.37",
            "1.3.6.1.4.1.311.20.2.3",
        ] {
            let ours: ObjectIdentifier = known.parse().unwrap();
            let theirs = const_oid::ObjectIdentifier::new(known).unwrap();
            assert_eq!(ours.as_bytes(), theirs.as_bytes());
        }
    }
}
