//! Who is at the other end of a connection, parsed once and put into every request's extensions.

#![warn(clippy::indexing_slicing, clippy::arithmetic_side_effects)]

mod spiffe;

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;
use std::sync::Arc;
use std::time::SystemTime;

use serde::{Serialize, Serializer};

pub(crate) use spiffe::is_trust_domain;
pub use spiffe::{SpiffeId, SpiffeIdError};

use crate::clock::serialize_time;

/// The SHA-256 of a certificate's DER.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fingerprint([u8; 32]);

impl Fingerprint {
    /// The fingerprint of a certificate's DER.
    #[must_use]
    pub fn of(der: &[u8]) -> Self {
        let digest = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, der);
        let mut bytes = [0; 32];
        bytes.copy_from_slice(digest.as_ref());
        Self(bytes)
    }

    /// A fingerprint known from elsewhere, such as a configuration file.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The 32 bytes.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

/// Why a text is no [`Fingerprint`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a SHA-256 fingerprint is 64 hexadecimal digits, with or without colons between the bytes")]
pub struct FingerprintError;

impl FromStr for Fingerprint {
    type Err = FingerprintError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut bytes = [0_u8; 32];
        let mut digits = text.chars().filter(|c| *c != ':');
        for byte in &mut bytes {
            let mut digit = || digits.next().and_then(|c| c.to_digit(16));
            let (Some(high), Some(low)) = (digit(), digit()) else {
                return Err(FingerprintError);
            };
            let value = high.checked_mul(16).and_then(|high| high.checked_add(low));
            *byte = value
                .and_then(|value| value.try_into().ok())
                .ok_or(FingerprintError)?;
        }
        match digits.next() {
            None => Ok(Self(bytes)),
            Some(_) => Err(FingerprintError),
        }
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Fingerprint({self})")
    }
}

impl Serialize for Fingerprint {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// The peer of a connection, as far as it was verified. In the extensions of every request. Cheap to clone.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
#[non_exhaustive]
pub enum PeerIdentity {
    /// The holder of a certificate that passed verification.
    Certificate(#[serde(serialize_with = "through_arc")] Arc<CertificateIdentity>),
    /// A process on the same machine, as the kernel reports it.
    Unix(UnixPeer),
    /// Nobody in particular: the listener is in plaintext.
    Unauthenticated,
}

impl PeerIdentity {
    /// The certificate's names, if the peer has one.
    #[must_use]
    pub fn certificate(&self) -> Option<&CertificateIdentity> {
        match self {
            Self::Certificate(identity) => Some(identity),
            Self::Unix(_) | Self::Unauthenticated => None,
        }
    }

    /// One short name for logs and audit entries: the first DNS or URI name, else the subject; `uid=N`; `unauthenticated`.
    #[must_use]
    pub fn label(&self) -> String {
        match self {
            Self::Certificate(identity) => identity.label().to_owned(),
            Self::Unix(peer) => format!("uid={}", peer.uid),
            Self::Unauthenticated => "unauthenticated".to_owned(),
        }
    }
}

fn through_arc<S: Serializer>(
    identity: &Arc<CertificateIdentity>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    identity.as_ref().serialize(serializer)
}

/// The process at the other end of a UNIX socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct UnixPeer {
    /// Its user.
    pub uid: u32,
    /// Its primary group.
    pub gid: u32,
    /// Its process id when it connected. For logs only: ids are reused, so nothing is decided by it.
    pub pid: Option<i32>,
}

/// What a certificate says about its holder. In a [`PeerIdentity`] it has been verified.
#[derive(Clone, Debug, Serialize)]
pub struct CertificateIdentity {
    pub(crate) subject: String,
    pub(crate) common_name: Option<String>,
    pub(crate) dns_names: Vec<String>,
    pub(crate) uri_names: Vec<String>,
    pub(crate) email_names: Vec<String>,
    pub(crate) ip_addresses: Vec<IpAddr>,
    pub(crate) serial: String,
    pub(crate) issuer: String,
    #[serde(serialize_with = "serialize_time")]
    pub(crate) not_before: SystemTime,
    #[serde(serialize_with = "serialize_time")]
    pub(crate) not_after: SystemTime,
    pub(crate) fingerprint: Fingerprint,
    pub(crate) spiffe_id: Option<SpiffeId>,
    pub(crate) anchor: Option<Fingerprint>,
    /// The forms that every name-constrained CA of the path constrains; `None` if there is no such CA.
    #[serde(skip)]
    pub(crate) constrained: Option<Vec<NameForm>>,
}

/// A form of name by which a certificate's holder may be recognised.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum NameForm {
    /// The common name of the subject.
    CommonName,
    /// A DNS name.
    Dns,
    /// A mail address.
    Email,
    /// An IP address.
    Ip,
    /// A URI, SPIFFE IDs included.
    Uri,
}

impl CertificateIdentity {
    /// Whether something may be decided by names of this form.
    ///
    /// Name constraints on a CA hold back only names of the forms that they speak of, and never the common name. A CA
    /// that may issue for `host.example` alone could give its leaf the common name or the URI of anybody. So with a
    /// name-constrained CA in the path, the root included, the common name doesn't count, and a URI, a mail address or an
    /// IP address counts only if each such CA's constraints speak of that form. DNS names always count: constraints
    /// are written for them, and were applied.
    #[must_use]
    pub fn counts(&self, form: NameForm) -> bool {
        match (&self.constrained, form) {
            (None, _) | (Some(_), NameForm::Dns) => true,
            (Some(constrained), form) => constrained.contains(&form),
        }
    }

    /// The SPIFFE ID: the certificate's only URI, if it is a valid one of a workload and URIs count.
    #[must_use]
    pub fn spiffe_id(&self) -> Option<&SpiffeId> {
        self.spiffe_id.as_ref()
    }

    /// The root that the path ends at; `None` for a certificate that was pinned, or not verified.
    #[must_use]
    pub fn anchor(&self) -> Option<Fingerprint> {
        self.anchor
    }

    /// The subject as text, for people.
    #[must_use]
    pub fn subject(&self) -> &str {
        &self.subject
    }

    /// The common name, if the subject has exactly one. Two common names identify nobody.
    #[must_use]
    pub fn common_name(&self) -> Option<&str> {
        self.common_name.as_deref()
    }

    /// The DNS names of the subject alternative name.
    #[must_use]
    pub fn dns_names(&self) -> &[String] {
        &self.dns_names
    }

    /// The URIs of the subject alternative name.
    #[must_use]
    pub fn uri_names(&self) -> &[String] {
        &self.uri_names
    }

    /// The mail addresses of the subject alternative name.
    #[must_use]
    pub fn email_names(&self) -> &[String] {
        &self.email_names
    }

    /// The IP addresses of the subject alternative name.
    #[must_use]
    pub fn ip_addresses(&self) -> &[IpAddr] {
        &self.ip_addresses
    }

    /// The serial number in lower-case hexadecimal.
    #[must_use]
    pub fn serial(&self) -> &str {
        &self.serial
    }

    /// The issuer's name as text, for people.
    #[must_use]
    pub fn issuer(&self) -> &str {
        &self.issuer
    }

    /// The first instant at which the certificate is valid.
    #[must_use]
    pub fn not_before(&self) -> SystemTime {
        self.not_before
    }

    /// The last instant at which the certificate is valid.
    #[must_use]
    pub fn not_after(&self) -> SystemTime {
        self.not_after
    }

    /// The SHA-256 of the certificate's DER.
    #[must_use]
    pub fn fingerprint(&self) -> Fingerprint {
        self.fingerprint
    }

    /// The first DNS or URI name, else the common name, else the whole subject; of those that count.
    #[must_use]
    pub fn label(&self) -> &str {
        let uri = || {
            self.uri_names
                .first()
                .filter(|_| self.counts(NameForm::Uri))
        };
        let common_name = || {
            self.common_name()
                .filter(|_| self.counts(NameForm::CommonName))
        };
        let name = self.dns_names.first().or_else(uri);
        name.map(String::as_str)
            .or_else(common_name)
            .unwrap_or(&self.subject)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fingerprint_reads_as_openssl_and_as_we_write_it() {
        let fingerprint = Fingerprint::of(b"anything");
        let plain = fingerprint.to_string();
        let bytes = fingerprint.as_bytes().iter();
        let colons: Vec<String> = bytes.map(|byte| format!("{byte:02X}")).collect();
        assert_eq!(plain.parse(), Ok(fingerprint));
        assert_eq!(colons.join(":").parse(), Ok(fingerprint));
        for bad in ["", "ab", &format!("{plain}0"), "zz"] {
            assert_eq!(bad.parse::<Fingerprint>(), Err(FingerprintError), "{bad}");
        }
    }
}
