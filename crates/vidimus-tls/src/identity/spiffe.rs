//! SPIFFE IDs (the SPIFFE ID standard §2, X509-SVID §2 and §3.2).

use std::fmt;
use std::str::FromStr;

use serde::{Serialize, Serializer};

/// The longest SPIFFE ID, in bytes (SPIFFE ID §2.3).
const MAX_ID: usize = 2048;
/// The longest trust domain, in bytes (SPIFFE ID §2.3).
const MAX_TRUST_DOMAIN: usize = 255;
/// What every SPIFFE ID begins with.
const SCHEME: &str = "spiffe://";

/// The identity of a workload: `spiffe://trust-domain/path`. Valid by construction.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SpiffeId {
    text: String,
    /// Where the trust domain ends in `text`.
    domain_end: usize,
}

/// Why a text is no SPIFFE ID of a workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SpiffeIdError {
    /// Too long, or its trust domain is.
    #[error("longer than {MAX_ID} bytes, or with a trust domain longer than {MAX_TRUST_DOMAIN}")]
    Length,
    /// An empty path or path segment, `.` or `..`, or a character that no segment may have.
    #[error(
        "its path is not one or more segments of letters, digits, dots, dashes and underscores; `.` and `..` are none"
    )]
    Path,
    /// Another scheme than `spiffe`, in lower case.
    #[error("it does not begin with {SCHEME}")]
    Scheme,
    /// An empty trust domain, or a character that none may have, such as those before a port or a user.
    #[error("its trust domain is not lower-case letters, digits, dots, dashes and underscores")]
    TrustDomain,
}

impl SpiffeId {
    /// The whole ID.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The trust domain's name, without the scheme.
    #[must_use]
    pub fn trust_domain(&self) -> &str {
        self.text.get(SCHEME.len()..self.domain_end).unwrap_or("")
    }

    /// The path with its leading `/`.
    #[must_use]
    pub fn path(&self) -> &str {
        self.text.get(self.domain_end..).unwrap_or("")
    }

    /// The ID of the certificate with these URI names: there is exactly one, and it is valid (X509-SVID §2).
    pub(crate) fn of_certificate(uris: &[String]) -> Option<Self> {
        match uris {
            [only] => only.parse().ok(),
            _ => None,
        }
    }
}

impl FromStr for SpiffeId {
    type Err = SpiffeIdError;

    /// Query, fragment, port and user are refused by the characters they need, percent-encoding by its own.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let rest = text.strip_prefix(SCHEME).ok_or(SpiffeIdError::Scheme)?;
        let (domain, path) = rest.split_once('/').ok_or(SpiffeIdError::Path)?;
        if text.len() > MAX_ID || domain.len() > MAX_TRUST_DOMAIN {
            return Err(SpiffeIdError::Length);
        }
        if !is_trust_domain(domain) {
            return Err(SpiffeIdError::TrustDomain);
        }
        if !path.split('/').all(is_segment) {
            return Err(SpiffeIdError::Path);
        }
        Ok(Self {
            text: text.to_owned(),
            domain_end: SCHEME.len().saturating_add(domain.len()),
        })
    }
}

impl fmt::Display for SpiffeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Serialize for SpiffeId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text)
    }
}

/// Whether `name` can be a trust domain's (SPIFFE ID §2.1).
pub(crate) fn is_trust_domain(name: &str) -> bool {
    let allowed =
        |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || matches!(b, b'.' | b'-' | b'_');
    !name.is_empty() && name.len() <= MAX_TRUST_DOMAIN && name.bytes().all(allowed)
}

fn is_segment(segment: &str) -> bool {
    let allowed = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'_');
    !matches!(segment, "" | "." | "..") && segment.bytes().all(allowed)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SPIFFE ID §2.1 to §2.3.
    #[test]
    fn what_the_standard_forbids_is_no_spiffe_id() {
        for good in [
            "spiffe://example.org/manager",
            "spiffe://td_1-x/ns/virt/sa/Manager.1",
            "spiffe://10.0.0.1/a",
            "spiffe://td/...",
        ] {
            let id: SpiffeId = good.parse().expect(good);
            assert_eq!(id.as_str(), good);
        }
        let id: SpiffeId = "spiffe://td/ns/x".parse().expect("an ID");
        assert_eq!((id.trust_domain(), id.path()), ("td", "/ns/x"));
        for (bad, why) in [
            ("", SpiffeIdError::Scheme),
            ("https://td/a", SpiffeIdError::Scheme),
            ("SPIFFE://td/a", SpiffeIdError::Scheme),
            ("spiffe:/td/a", SpiffeIdError::Scheme),
            ("spiffe:td/a", SpiffeIdError::Scheme),
            ("spiffe://td", SpiffeIdError::Path),
            ("spiffe://td/", SpiffeIdError::Path),
            ("spiffe://td/a/", SpiffeIdError::Path),
            ("spiffe://td//a", SpiffeIdError::Path),
            ("spiffe://td/a/../b", SpiffeIdError::Path),
            ("spiffe://td/./b", SpiffeIdError::Path),
            ("spiffe://td/a%20b", SpiffeIdError::Path),
            ("spiffe://td/a?q=1", SpiffeIdError::Path),
            ("spiffe://td/a#f", SpiffeIdError::Path),
            ("spiffe://td/ä", SpiffeIdError::Path),
            ("spiffe:///a", SpiffeIdError::TrustDomain),
            ("spiffe://TD/a", SpiffeIdError::TrustDomain),
            ("spiffe://td:8443/a", SpiffeIdError::TrustDomain),
            ("spiffe://user@td/a", SpiffeIdError::TrustDomain),
            ("spiffe://td?q/a", SpiffeIdError::TrustDomain),
        ] {
            assert_eq!(bad.parse::<SpiffeId>(), Err(why), "{bad}");
        }
        let domain = "d".repeat(255);
        let id = |domain: &str, path: usize| format!("spiffe://{domain}/{}", "p".repeat(path));
        assert!(id(&domain, 1783).parse::<SpiffeId>().is_ok());
        assert!(id(&domain, 1784).parse::<SpiffeId>().is_err());
        assert!(id(&format!("{domain}d"), 1).parse::<SpiffeId>().is_err());
    }
}
