//! Serial numbers.

use std::fmt;

use aws_lc_rs::rand::SecureRandom;

/// A certificate's serial number: 128 random bits, positive and never zero.
///
/// All 128 bits are kept; where the first is set, the DER INTEGER has a leading zero octet, 17
/// octets in all (RFC 5280 §4.1.2.2 allows 20). Shown in lower-case hex without leading zeros.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Serial([u8; 16]);

/// Why a text is not a serial number.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SerialError {
    /// Something else than hex digits, colons, spaces and a leading `0x`.
    #[error("serial number {found:?} is not hexadecimal")]
    NotHex {
        /// The text, cut to 64 characters.
        found: String,
    },
    /// More than 128 bits.
    #[error("serial number has more than 32 hex digits")]
    TooLong,
    /// No digits, or nothing but zeros.
    #[error("serial number is empty or zero")]
    Zero,
    /// The random source failed.
    #[error("no random bytes to be had")]
    Random,
}

impl Serial {
    /// A new one.
    ///
    /// # Errors
    /// The random source failed.
    pub fn random(rng: &dyn SecureRandom) -> Result<Self, SerialError> {
        let mut bytes = [0; 16];
        rng.fill(&mut bytes).map_err(|_| SerialError::Random)?;
        Self::from_bytes(bytes)
    }

    /// From its 16 bytes, most significant first.
    ///
    /// # Errors
    /// All zeros.
    pub fn from_bytes(bytes: [u8; 16]) -> Result<Self, SerialError> {
        if bytes == [0; 16] {
            Err(SerialError::Zero)
        } else {
            Ok(Self(bytes))
        }
    }

    /// From hex as people paste it: any case, colons, spaces, leading zeros and `0x` are fine.
    ///
    /// # Errors
    /// Not hex, zero, or longer than 128 bits.
    pub fn parse_hex(text: &str) -> Result<Self, SerialError> {
        let bare: String = text
            .chars()
            .filter(|c| !matches!(c, ':' | ' ' | '\t'))
            .collect();
        let digits = bare
            .strip_prefix("0x")
            .or_else(|| bare.strip_prefix("0X"))
            .unwrap_or(&bare);
        if !digits.bytes().all(|b| b.is_ascii_hexdigit()) {
            return Err(SerialError::NotHex {
                found: text.chars().take(64).collect(),
            });
        }
        let digits = digits.trim_start_matches('0');
        if digits.is_empty() {
            return Err(SerialError::Zero);
        }
        if digits.len() > 32 {
            return Err(SerialError::TooLong);
        }
        let number = u128::from_str_radix(digits, 16).map_err(|_| SerialError::TooLong)?;
        Self::from_bytes(number.to_be_bytes())
    }

    /// Its 16 bytes, most significant first.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }
}

impl fmt::Display for Serial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:x}", u128::from_be_bytes(self.0))
    }
}

#[cfg(test)]
mod tests {
    use aws_lc_rs::rand::SystemRandom;

    use super::*;

    /// C4: what people paste is read, what is no serial number is refused and said why.
    #[test]
    fn only_hex_of_at_most_128_bits_is_a_serial_number() {
        let parsed = |text: &str| Serial::parse_hex(text).map(|serial| serial.to_string());
        assert_eq!(parsed("0x0A:b C"), Ok("abc".to_owned()));
        assert_eq!(parsed(&"f".repeat(32)), Ok("f".repeat(32)));
        assert_eq!(
            parsed(&format!("000{}", "f".repeat(32))),
            Ok("f".repeat(32))
        );
        assert_eq!(parsed(&"f".repeat(33)), Err(SerialError::TooLong));
        for zero in ["", "0", "0x", "00:00", "   "] {
            assert_eq!(parsed(zero), Err(SerialError::Zero), "{zero:?}");
        }
        for bad in ["-1", "+1", "xyz", "1.2", "0x0x1", "é"] {
            assert!(
                matches!(parsed(bad), Err(SerialError::NotHex { .. })),
                "{bad:?}"
            );
        }
    }

    #[test]
    fn random_serial_numbers_differ() {
        let random = SystemRandom::new();
        let numbers: std::collections::HashSet<Serial> = (0..1000)
            .map(|_| Serial::random(&random).unwrap())
            .collect();
        assert_eq!(numbers.len(), 1000);
    }
}
