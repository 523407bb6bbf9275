//! keyUsage and extKeyUsage as profiles name them.

use std::{fmt, str::FromStr};

use super::ObjectIdentifier;
use crate::oid;

/// A bit of keyUsage (RFC 5280 §4.2.1.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum KeyUsage {
    /// `digital_signature`.
    DigitalSignature,
    /// `key_encipherment`.
    KeyEncipherment,
    /// `key_agreement`.
    KeyAgreement,
    /// `cert_sign`.
    CertSign,
    /// `crl_sign`.
    CrlSign,
}

/// A purpose of extKeyUsage (RFC 5280 §4.2.1.12).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum ExtendedKeyUsage {
    /// `server_auth`.
    ServerAuth,
    /// `client_auth`.
    ClientAuth,
    /// Any other, by its identifier.
    Oid(ObjectIdentifier),
}

/// A text that names no usage.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{found:?} is no usage; accepted: {accepted}")]
pub struct UnknownUsage {
    /// The text.
    pub found: String,
    /// What is.
    pub accepted: &'static str,
}

const KEY_USAGES: [(&str, KeyUsage, u8); 5] = [
    ("digital_signature", KeyUsage::DigitalSignature, 0),
    ("key_encipherment", KeyUsage::KeyEncipherment, 2),
    ("key_agreement", KeyUsage::KeyAgreement, 4),
    ("cert_sign", KeyUsage::CertSign, 5),
    ("crl_sign", KeyUsage::CrlSign, 6),
];

impl KeyUsage {
    /// Its bit, 0 being the first.
    pub(crate) fn bit(self) -> u8 {
        self.row().2
    }

    fn row(self) -> (&'static str, Self, u8) {
        let row = KEY_USAGES.into_iter().find(|(_, usage, _)| *usage == self);
        row.expect("every usage has a row")
    }
}

impl FromStr for KeyUsage {
    type Err = UnknownUsage;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let row = KEY_USAGES.into_iter().find(|(name, ..)| *name == text);
        row.map(|(_, usage, _)| usage).ok_or_else(|| UnknownUsage {
            found: text.to_owned(),
            accepted: "digital_signature, key_encipherment, key_agreement, cert_sign, crl_sign",
        })
    }
}

impl fmt::Display for KeyUsage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.row().0)
    }
}

impl ExtendedKeyUsage {
    /// Its identifier; a named usage and its identifier are the same.
    #[must_use]
    pub fn oid(&self) -> ObjectIdentifier {
        match self {
            Self::ServerAuth => oid::SERVER_AUTH.into(),
            Self::ClientAuth => oid::CLIENT_AUTH.into(),
            Self::Oid(oid) => oid.clone(),
        }
    }
}

impl FromStr for ExtendedKeyUsage {
    type Err = UnknownUsage;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "server_auth" => Ok(Self::ServerAuth),
            "client_auth" => Ok(Self::ClientAuth),
            dotted => dotted.parse().map(Self::Oid).map_err(|_| UnknownUsage {
                found: text.to_owned(),
                accepted: "server_auth, client_auth, or an object identifier such as \
                           1.3.6.1.5.5.7.3.3",
            }),
        }
    }
}

impl fmt::Display for ExtendedKeyUsage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ServerAuth => f.write_str("server_auth"),
            Self::ClientAuth => f.write_str("client_auth"),
            Self::Oid(oid) => oid.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// C3: the names of the machine config, and nothing near them.
    #[test]
    fn usages_have_exactly_their_names() {
        for (name, usage, _) in KEY_USAGES {
            assert_eq!(name.parse(), Ok(usage));
            assert_eq!(usage.to_string(), name);
        }
        assert!("Digital_Signature".parse::<KeyUsage>().is_err());
        assert_eq!("server_auth".parse(), Ok(ExtendedKeyUsage::ServerAuth));
        assert!("serverAuth".parse::<ExtendedKeyUsage>().is_err());
        let dotted: ExtendedKeyUsage = "2.999.1".parse().unwrap();
        assert_eq!(dotted.to_string(), "2.999.1");
    }
}
