//! cRLNumber (RFC 5280 §5.2.3).

use std::{cmp::Ordering, fmt};

use crate::asn1::{DerError, Element};

/// The number of a list. Grows with every list of one issuer and scope; at most 20 octets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CrlNumber(Box<[u8]>);

impl CrlNumber {
    pub(super) fn read(element: &Element<'_>) -> Result<Self, DerError> {
        let magnitude = element.unsigned()?;
        if magnitude.len() > 20 {
            return Err(element.bad("list number of at most 20 octets"));
        }
        Ok(Self(magnitude.into()))
    }
}

impl Ord for CrlNumber {
    fn cmp(&self, other: &Self) -> Ordering {
        // Magnitudes without leading zeros: the longer one is the larger.
        let by_length = self.0.len().cmp(&other.0.len());
        by_length.then_with(|| self.0.cmp(&other.0))
    }
}

impl PartialOrd for CrlNumber {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Display for CrlNumber {
    /// Decimal up to 128 bits, hex beyond.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.len() > 16 {
            return write!(f, "0x{}", crate::name::hex(&self.0));
        }
        let number = self
            .0
            .iter()
            .fold(0_u128, |sum, &octet| (sum << 8) | u128::from(octet));
        number.fmt(f)
    }
}
