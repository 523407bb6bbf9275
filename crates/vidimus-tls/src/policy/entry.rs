//! One entry of an allow-list: plain, by VirtRigaud's rule, or typed.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use crate::identity::{CertificateIdentity, Fingerprint, NameForm, SpiffeId, UnixPeer};

/// The longest entry, in bytes: as long as the longest SPIFFE ID.
const MAX_ENTRY: usize = 2048;

/// The prefixes of typed entries.
const TYPES: [&str; 7] = ["dns", "uri", "spiffe", "ip", "cn", "uid", "gid"];

/// A name, as written and as it is compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    text: String,
    kind: Kind,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Kind {
    /// VirtRigaud's rule: a DNS name without case and trailing dot, else a URI, else the common name.
    Plain,
    /// Lower case, without a trailing dot.
    Dns(String),
    /// What follows `*.`, likewise: exactly one label stands in front of it.
    DnsBelow(String),
    Uri(String),
    Spiffe {
        id: SpiffeId,
        /// The roots of its trust domain.
        anchors: Arc<[Fingerprint]>,
    },
    Ip(IpAddr),
    CommonName(String),
    Uid(u32),
    Gid(u32),
}

/// Where the roots of a trust domain come from: `None` for a domain that is not known.
pub(super) type Anchors<'a> = &'a dyn Fn(&str) -> Option<Arc<[Fingerprint]>>;

/// Why a text is no entry: what is accepted instead. The text itself is with whoever asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Rejected(pub(super) &'static str);

impl Entry {
    pub(super) fn parse(text: &str, anchors: Anchors<'_>) -> Result<Self, Rejected> {
        if text.len() > MAX_ENTRY {
            return Err(Rejected("an entry of at most 2048 bytes"));
        }
        if text.is_empty() || text.trim() != text || text.contains(char::is_control) {
            return Err(Rejected(
                "a name without white space around it and without control characters",
            ));
        }
        let kind = match typed(text)? {
            None => Kind::Plain,
            Some(("dns", name)) => dns(name)?,
            Some(("uri", uri)) => Kind::Uri(some_uri(uri)?),
            Some(("spiffe", id)) => spiffe(id, anchors)?,
            Some(("ip", address)) => Kind::Ip(
                address
                    .parse()
                    .map_err(|_| Rejected("ip:ADDRESS, one IPv4 or IPv6 address"))?,
            ),
            Some(("cn", name)) => Kind::CommonName(some_name(name)?),
            Some(("uid", id)) => Kind::Uid(number(id).ok_or(Rejected("uid:NUMBER"))?),
            Some((_, id)) => Kind::Gid(number(id).ok_or(Rejected("gid:NUMBER"))?),
        };
        Ok(Self {
            text: text.to_owned(),
            kind,
        })
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// Whether it is about the peers of UNIX sockets.
    pub(super) fn is_local(&self) -> bool {
        matches!(self.kind, Kind::Uid(_) | Kind::Gid(_))
    }

    pub(super) fn matches_user(&self, peer: &UnixPeer) -> bool {
        match self.kind {
            Kind::Uid(uid) => peer.uid == uid,
            Kind::Gid(gid) => peer.gid == gid,
            _ => false,
        }
    }

    pub(super) fn matches(&self, identity: &CertificateIdentity) -> bool {
        let any_dns = |is: &dyn Fn(&str) -> bool| identity.dns_names().iter().any(|name| is(name));
        let any_uri = |text: &str| {
            identity.counts(NameForm::Uri) && identity.uri_names().iter().any(|uri| uri == text)
        };
        let is_common_name = |text: &str| {
            identity.counts(NameForm::CommonName) && identity.common_name() == Some(text)
        };
        match &self.kind {
            Kind::Plain => {
                let wanted = undotted(&self.text);
                any_dns(&|name| undotted(name).eq_ignore_ascii_case(wanted))
                    || any_uri(&self.text)
                    || is_common_name(&self.text)
            }
            Kind::Dns(wanted) => any_dns(&|name| undotted(name).eq_ignore_ascii_case(wanted)),
            Kind::DnsBelow(parent) => any_dns(&|name| is_below(undotted(name), parent)),
            Kind::Uri(wanted) => any_uri(wanted),
            Kind::Spiffe { id, anchors } => {
                let anchor = identity.anchor();
                identity.spiffe_id() == Some(id)
                    && anchor.is_some_and(|anchor| anchors.contains(&anchor))
            }
            Kind::Ip(wanted) => {
                identity.counts(NameForm::Ip) && identity.ip_addresses().contains(wanted)
            }
            Kind::CommonName(wanted) => is_common_name(wanted),
            Kind::Uid(_) | Kind::Gid(_) => false,
        }
    }
}

impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Type and value of a typed entry. What follows a prefix with `//` is a plain URI.
fn typed(text: &str) -> Result<Option<(&'static str, &str)>, Rejected> {
    let Some((prefix, value)) = text.split_once(':') else {
        return Ok(None);
    };
    if value.starts_with("//") {
        return Ok(None);
    }
    let named = TYPES.iter().find(|kind| kind.eq_ignore_ascii_case(prefix));
    match named {
        None => Ok(None),
        Some(kind) if *kind == prefix => Ok(Some((kind, value))),
        // As other tools write it: silently plain, it would never match.
        Some(_) => Err(Rejected(
            "the type in lower case: dns:, uri:, spiffe:, ip:, cn:, uid: or gid:",
        )),
    }
}

fn dns(name: &str) -> Result<Kind, Rejected> {
    const ACCEPTED: Rejected = Rejected(
        "dns:NAME or dns:*.NAME, where NAME is labels of letters, digits, dashes and underscores",
    );
    let (below, name) = match name.strip_prefix("*.") {
        Some(parent) => (true, parent),
        None => (false, name),
    };
    let name = undotted(name).to_ascii_lowercase();
    let is_label = |label: &str| {
        let allowed = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_');
        (1..=63).contains(&label.len()) && label.bytes().all(allowed)
    };
    if name.len() > 253 || !name.split('.').all(is_label) {
        return Err(ACCEPTED);
    }
    Ok(if below {
        Kind::DnsBelow(name)
    } else {
        Kind::Dns(name)
    })
}

fn some_uri(uri: &str) -> Result<String, Rejected> {
    if uri.contains(char::is_whitespace) || !uri.contains(':') {
        return Err(Rejected("uri:URI, such as uri:urn:example:manager"));
    }
    Ok(uri.to_owned())
}

fn some_name(name: &str) -> Result<String, Rejected> {
    if name.is_empty() || name.trim() != name {
        return Err(Rejected("cn:NAME without white space around the name"));
    }
    Ok(name.to_owned())
}

fn spiffe(rest: &str, anchors: Anchors<'_>) -> Result<Kind, Rejected> {
    let id: SpiffeId = format!("spiffe://{rest}").parse().map_err(|_| {
        Rejected("spiffe:TRUST-DOMAIN/PATH, what follows spiffe:// in a valid SPIFFE ID")
    })?;
    match anchors(id.trust_domain()) {
        Some(anchors) => Ok(Kind::Spiffe { id, anchors }),
        None => Err(Rejected(
            "a SPIFFE ID whose trust domain is in trust_domains, so that its roots are known",
        )),
    }
}

/// Decimal digits; `parse` would take a sign as well.
fn number(text: &str) -> Option<u32> {
    let digits = text.bytes().all(|b| b.is_ascii_digit());
    digits.then(|| text.parse().ok()).flatten()
}

fn undotted(name: &str) -> &str {
    name.strip_suffix('.').unwrap_or(name)
}

/// Whether exactly one label stands in front of `parent`: also `*`, which is how a certificate says the same.
fn is_below(name: &str, parent: &str) -> bool {
    name.split_once('.')
        .is_some_and(|(label, rest)| !label.is_empty() && rest.eq_ignore_ascii_case(parent))
}
