//! VirtRigaud's rule: a certificate matches by a DNS name, else by a URI, else by its common name.

use std::fmt;

use crate::identity::{CertificateIdentity, PeerIdentity};

use super::PolicyRefusal;

/// The names that may call. An empty list lets every verified peer call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AllowList(Vec<String>);

impl AllowList {
    /// Parses a comma-separated list: white space around entries and empty entries don't count.
    #[must_use]
    pub fn parse(list: &str) -> Self {
        let entries = list.split(',').map(str::trim);
        Self(
            entries
                .filter(|e| !e.is_empty())
                .map(str::to_owned)
                .collect(),
        )
    }

    /// The entries as written, trimmed.
    #[must_use]
    pub fn entries(&self) -> &[String] {
        &self.0
    }

    /// Whether every verified peer may call.
    #[must_use]
    pub fn is_permissive(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether the certificate has a name on the list, or the list is empty.
    ///
    /// DNS names compare without case, as DNS does; URIs and common names exactly. There are no wildcards: a wildcard in
    /// a certificate matches only an entry written the same way. IP addresses and mail addresses never match.
    #[must_use]
    pub fn permits(&self, identity: &CertificateIdentity) -> bool {
        self.is_permissive()
            || self.any(|e| {
                identity
                    .dns_names()
                    .iter()
                    .any(|n| n.eq_ignore_ascii_case(e))
            })
            || self.any(|e| identity.uri_names().iter().any(|n| n == e))
            || self.any(|e| identity.common_name() == Some(e))
    }

    /// Judges a connection's peer.
    ///
    /// # Errors
    ///
    /// [`PolicyRefusal::Unauthenticated`] for a peer without a verified certificate, before the list is looked at;
    /// [`PolicyRefusal::NotAllowed`] for one that is not on it.
    pub fn check(&self, peer: Option<&PeerIdentity>) -> Result<(), PolicyRefusal> {
        match peer {
            Some(PeerIdentity::Certificate(identity)) if self.permits(identity) => Ok(()),
            Some(PeerIdentity::Certificate(_)) => Err(PolicyRefusal::NotAllowed),
            Some(PeerIdentity::Unix(_)) => Err(PolicyRefusal::Unauthenticated(
                "the connection came over a UNIX socket without TLS",
            )),
            Some(PeerIdentity::Unauthenticated) => {
                Err(PolicyRefusal::Unauthenticated("the connection is not TLS"))
            }
            None => Err(PolicyRefusal::Unauthenticated(
                "the connection's peer is unknown",
            )),
        }
    }

    fn any(&self, matches: impl Fn(&str) -> bool) -> bool {
        self.0.iter().any(|entry| matches(entry))
    }
}

impl fmt::Display for AllowList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join(", "))
    }
}
