//! Issued certificates.

use std::fmt;
use std::str::FromStr;
use std::time::SystemTime;

use vidimus_audit::Draft;
use vidimus_x509::issue::Signed;
use vidimus_x509::serial::Serial;

/// The most rows that one page holds, whatever is asked for.
pub const MAX_PAGE_SIZE: u32 = 1000;

/// The details by which an audit entry names the certificate that was recorded with it. No other
/// entry has [`CERTIFICATE_SHA256`](detail::CERTIFICATE_SHA256).
pub mod detail {
    /// SHA-256 of the certificate, lower-case hex.
    pub const CERTIFICATE_SHA256: &str = "certificate_sha256";
    /// The profile it was issued under.
    pub const PROFILE: &str = "profile";
    /// Its serial number, lower-case hex.
    pub const SERIAL_HEX: &str = "serial_hex";
}

/// A certificate that is signed and not recorded yet: it must not leave the process.
#[derive(Debug)]
pub struct Issuance {
    /// The certificate.
    pub signed: Signed,
    /// The name of the profile it was issued under.
    pub profile: String,
    /// Who asked for it.
    pub requester: String,
    /// What the audit log says of it. The store sets the details named in [`detail`] and the
    /// outcome (`OK`) itself: they can't differ from what is recorded.
    pub audit: Draft,
}

/// A recorded certificate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IssuedCertificate {
    /// Its serial number.
    pub serial: Serial,
    /// The whole certificate.
    pub der: Vec<u8>,
    /// Its subject, for people (RFC 4514).
    pub subject: String,
    /// The profile it was issued under.
    pub profile: String,
    /// Who asked for it.
    pub requester: String,
    /// The first moment at which it is valid.
    pub not_before: SystemTime,
    /// The last moment at which it is valid.
    pub not_after: SystemTime,
    /// When it was recorded, to the millisecond.
    pub issued_at: SystemTime,
    /// Its subject key identifier, lower-case hex.
    pub ski_hex: String,
    /// The names of its subjectAltName, for people.
    pub names: Vec<String>,
    /// The number of the audit entry written with it.
    pub audit_seq: u64,
}

/// Which certificates to list; the default is all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct IssuedFilter {
    /// Only those issued under this profile.
    pub profile: Option<String>,
}

/// Some rows of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page<T> {
    /// The rows, oldest first.
    pub items: Vec<T>,
    /// Where the next page starts; absent on the last one.
    pub next: Option<Cursor>,
}

/// A place in a list. Its text form is a page token; rows recorded later don't move it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Cursor(pub(crate) i64);

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A text that is no [`Cursor`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a page token of this list")]
pub struct CursorError;

impl FromStr for Cursor {
    type Err = CursorError;

    fn from_str(text: &str) -> Result<Self, CursorError> {
        let place: i64 = text.parse().map_err(|_| CursorError)?;
        if place < 0 {
            return Err(CursorError);
        }
        Ok(Self(place))
    }
}
