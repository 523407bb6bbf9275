//! The names that may call: plain entries by VirtRigaud's rule, and typed ones.

use std::fmt;

use super::PolicyRefusal;
use super::entry::{Anchors, Entry, Rejected};
use crate::identity::{CertificateIdentity, PeerIdentity};

/// The most entries of one list.
const MAX_ENTRIES: usize = 1024;

/// The names that may call. An empty list lets every verified peer call.
///
/// A plain entry matches a certificate's DNS name (without case and trailing dot), else a URI, else the common name (both
/// exactly): this is VirtRigaud's rule. A typed entry matches names of its form only:
///
/// - `dns:NAME`: a DNS name, without case and trailing dot; `dns:*.NAME` one with exactly one label in front of NAME. A
///   wildcard in a certificate matches only an entry that is written the same way.
/// - `uri:URI`: a URI, exactly.
/// - `spiffe:TRUST-DOMAIN/PATH`: a SPIFFE ID under a root of its own trust domain; only in a policy file, which names the
///   roots.
/// - `ip:ADDRESS`: an IP address, by its bytes.
/// - `cn:NAME`: the common name, exactly.
/// - `uid:NUMBER`, `gid:NUMBER`: the user or primary group of a UNIX socket's peer.
///
/// A type followed by `//` is a plain URI: `spiffe://prod.example/manager`. Names count only as far as
/// [`CertificateIdentity::counts`] says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AllowList(Vec<Entry>);

/// What is wrong with an allow-list.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AllowListError {
    /// A malformed typed entry, or one that nothing could match.
    #[error("allow-list entry {position}: found {entry:?}; accepted: {accepted}")]
    Entry {
        /// Its position among the entries, from 1.
        position: usize,
        /// The entry, cut to a line.
        entry: String,
        /// What is accepted.
        accepted: &'static str,
    },
    /// More entries than any list needs.
    #[error("allow-list: found more than {MAX_ENTRIES} entries; accepted: at most {MAX_ENTRIES}")]
    Length,
}

impl AllowList {
    /// Parses a comma-separated list: white space around entries and empty entries don't count.
    ///
    /// # Errors
    ///
    /// The first typed entry that is malformed, a `spiffe:` entry, for which there are no roots here, or too many entries.
    pub fn parse(list: &str) -> Result<Self, AllowListError> {
        let entries = list.split(',').map(str::trim);
        let entries = entries.filter(|entry| !entry.is_empty()).enumerate();
        let mut parsed = Self::default();
        for (index, text) in entries {
            let rejected = |Rejected(accepted)| AllowListError::Entry {
                position: index.saturating_add(1),
                entry: text.chars().take(80).collect(),
                accepted,
            };
            parsed
                .push(text, &|_| None)
                .map_err(|error| error.map_or(AllowListError::Length, rejected))?;
        }
        Ok(parsed)
    }

    /// Adds an entry; `None` in the error if there are too many.
    pub(super) fn push(
        &mut self,
        text: &str,
        anchors: Anchors<'_>,
    ) -> Result<(), Option<Rejected>> {
        if self.0.len() >= MAX_ENTRIES {
            return Err(None);
        }
        self.0.push(Entry::parse(text, anchors)?);
        Ok(())
    }

    /// The entries as written, trimmed.
    pub fn entries(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(Entry::text)
    }

    /// Whether every verified peer may call.
    #[must_use]
    pub fn is_permissive(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether there are `uid:` or `gid:` entries, so that the list is about the peers of UNIX sockets too.
    #[must_use]
    pub fn names_users(&self) -> bool {
        self.0.iter().any(Entry::is_local)
    }

    /// Whether the certificate has a name on the list, or the list is empty.
    #[must_use]
    pub fn permits(&self, identity: &CertificateIdentity) -> bool {
        self.is_permissive() || self.lists(identity)
    }

    /// Judges a connection's peer.
    ///
    /// # Errors
    ///
    /// [`PolicyRefusal::Unauthenticated`] for a peer without a verified certificate, before the list is looked at, unless
    /// it is the peer of a UNIX socket and the list names users; [`PolicyRefusal::NotAllowed`] or
    /// [`PolicyRefusal::UserNotAllowed`] for one that is not on it.
    pub fn check(&self, peer: Option<&PeerIdentity>) -> Result<(), PolicyRefusal> {
        match peer {
            Some(PeerIdentity::Certificate(identity)) if self.permits(identity) => Ok(()),
            Some(PeerIdentity::Certificate(_)) => Err(PolicyRefusal::NotAllowed),
            Some(PeerIdentity::Unix(_)) if !self.names_users() => {
                Err(PolicyRefusal::Unauthenticated(
                    "the connection came over a UNIX socket without TLS",
                ))
            }
            Some(peer @ PeerIdentity::Unix(_)) if self.lists_peer(peer) => Ok(()),
            Some(PeerIdentity::Unix(_)) => Err(PolicyRefusal::UserNotAllowed),
            Some(PeerIdentity::Unauthenticated) => {
                Err(PolicyRefusal::Unauthenticated("the connection is not TLS"))
            }
            None => Err(PolicyRefusal::Unauthenticated(
                "the connection's peer is unknown",
            )),
        }
    }

    /// Whether an entry matches; an empty list lists nobody.
    pub(super) fn lists_peer(&self, peer: &PeerIdentity) -> bool {
        match peer {
            PeerIdentity::Certificate(identity) => self.lists(identity),
            PeerIdentity::Unix(peer) => self.0.iter().any(|entry| entry.matches_user(peer)),
            PeerIdentity::Unauthenticated => false,
        }
    }

    fn lists(&self, identity: &CertificateIdentity) -> bool {
        self.0.iter().any(|entry| entry.matches(identity))
    }
}

impl fmt::Display for AllowList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, entry) in self.0.iter().enumerate() {
            let comma = if index == 0 { "" } else { ", " };
            write!(f, "{comma}{entry}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// T14. A typed entry that nothing could match is an error, not a silent refusal of everybody.
    #[test]
    fn malformed_typed_entries_are_named_with_what_is_accepted() {
        for bad in [
            "dns:",
            "dns:*",
            "dns:*.",
            "dns:a.*.b",
            "dns:a*.b",
            "dns:*.*.b",
            "dns:a..b",
            "dns:.a",
            "dns: a",
            "dns:a/b",
            "dns:bücher.example",
            "uri:",
            "uri:no-scheme",
            "uri:urn:a b",
            "spiffe:",
            "spiffe:td/x",
            "ip:",
            "ip:192.0.2.1/24",
            "ip:[::1]",
            "ip:fe80::1%1",
            "ip:192.0.2",
            "cn:",
            "cn: x",
            "uid:",
            "uid:root",
            "uid:-1",
            "uid:+1",
            "uid:4294967296",
            "gid:x",
            "DNS:client.test",
            "Uri:urn:x",
            "a\u{7}b",
        ] {
            let error = AllowList::parse(&format!("first, {bad}")).expect_err(bad);
            let AllowListError::Entry {
                position, entry, ..
            } = &error
            else {
                unreachable!("{error}");
            };
            assert_eq!((*position, entry.as_str()), (2, bad));
            assert!(error.to_string().contains("accepted: "), "{error}");
        }
    }

    #[test]
    fn entries_stay_as_they_were_written() {
        let text = "Client.test,dns:*.Example., uri:urn:a, spiffe://td/a, dns://x,ip:2001:db8::1, cn:a b,uid:0,gid:5, x:y";
        let list = AllowList::parse(text).expect("good entries");
        let written: Vec<_> = text.split(',').map(str::trim).collect();
        assert_eq!(list.entries().collect::<Vec<_>>(), written);
        assert_eq!(list.to_string(), written.join(", "));
        assert!(list.names_users());
    }

    #[test]
    fn a_list_is_bounded_in_length_and_its_entries_too() {
        let many = |count: usize| AllowList::parse(&vec!["a"; count].join(","));
        assert!(many(MAX_ENTRIES).is_ok());
        assert_eq!(many(MAX_ENTRIES + 1), Err(AllowListError::Length));
        assert!(AllowList::parse(&"a".repeat(2048)).is_ok());
        let error = AllowList::parse(&"a".repeat(2049)).expect_err("too long");
        assert!(error.to_string().len() < 200, "{error}");
    }
}
