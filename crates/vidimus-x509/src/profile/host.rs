//! DNS names: what may stand in a certificate.

use std::net::{IpAddr, Ipv4Addr};

/// What a name that a requester brings must look like.
pub(crate) const ACCEPTED_REQUEST_NAME: &str = "a DNS name of at least two labels of letters, \
     digits and inner hyphens, at most 253 characters, without wildcard";

/// What a name in a profile must look like.
pub(crate) const ACCEPTED_STATIC_NAME: &str = "a DNS name of labels of letters, digits and inner \
     hyphens, at most 253 characters; the first label may be *";

/// The form in which a requester's name is certified: lower case, without the dot at its end.
///
/// `None` where it may not be: wildcards, single labels, and what any reader would take for an IP
/// address rather than a name.
pub(crate) fn normalize_request_name(name: &str) -> Option<String> {
    let name = name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase();
    let good = has_good_labels(&name) && name.contains('.') && !looks_like_ipv4(&name);
    good.then_some(name)
}

/// The same for a name in a profile, where its author may want a wildcard or a single label.
pub(crate) fn normalize_static_name(name: &str) -> Option<String> {
    let name = name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase();
    let good = match name.strip_prefix("*.") {
        Some(rest) => has_good_labels(rest) && rest.contains('.') && name.len() <= 253,
        None => has_good_labels(&name),
    };
    (good && !looks_like_ipv4(&name)).then_some(name)
}

fn has_good_labels(name: &str) -> bool {
    name.len() <= 253
        && name.split('.').all(|label| {
            (1..=63).contains(&label.len())
                && label
                    .bytes()
                    .all(|b| b.is_ascii_alphanumeric() || b == b'-')
                && !label.starts_with('-')
                && !label.ends_with('-')
        })
}

/// A last label of digits alone: no such top-level domain can exist (RFC 1123 §2.1), and address
/// parsers take even `1.2` and `127.1` for addresses.
fn looks_like_ipv4(name: &str) -> bool {
    let last = name.rsplit('.').next().unwrap_or_default();
    last.bytes().all(|byte| byte.is_ascii_digit())
        || last
            .strip_prefix("0x")
            .is_some_and(|hex| hex.bytes().all(|b| b.is_ascii_hexdigit()))
}

/// An IPv6 address that only carries an IPv4 one is certified as that (RFC 4291 §2.5.5.2): it is
/// what peers compare with.
pub(crate) fn normalize_ip(ip: IpAddr) -> IpAddr {
    match ip {
        IpAddr::V6(v6) => v6.to_ipv4_mapped().map_or(ip, IpAddr::from),
        IpAddr::V4(_) => ip,
    }
}

/// An address no peer can have.
pub(crate) fn is_no_peer(ip: IpAddr) -> bool {
    ip.is_unspecified() || ip.is_multicast() || ip == IpAddr::from(Ipv4Addr::BROADCAST)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// C4: names that requesters bring.
    #[test]
    fn request_names_are_plain_host_names() {
        let label = "a".repeat(63);
        let long = format!("{label}.{label}.{label}.{}", "b".repeat(61));
        assert_eq!(long.len(), 253);
        for (name, certified) in [
            ("Web.Example.ORG.", Some("web.example.org")),
            ("xn--bcher-kva.example", Some("xn--bcher-kva.example")),
            ("a-b.c1.d", Some("a-b.c1.d")),
            (long.as_str(), Some(long.as_str())),
            ("localhost", None),
            ("*.example.org", None),
            ("a.*.org", None),
            ("under_score.org", None),
            ("-a.org", None),
            ("a-.org", None),
            ("a..org", None),
            ("", None),
            (".", None),
            ("a.org..", None),
            ("10.0.0.1", None),
            ("127.1", None),
            ("a.0x7f", None),
            ("bücher.example", None),
            ("a b.org", None),
            ("a.org\0.evil", None),
        ] {
            assert_eq!(
                normalize_request_name(name).as_deref(),
                certified,
                "{name:?}"
            );
        }
        let too_long = format!("{long}b");
        assert_eq!(normalize_request_name(&too_long), None);
        assert_eq!(
            normalize_request_name(&format!("{}.org", "a".repeat(64))),
            None
        );
    }

    /// C3: a profile's author may also write a wildcard or a single label.
    #[test]
    fn static_names_may_have_a_wildcard_or_one_label() {
        for (name, certified) in [
            ("localhost", Some("localhost")),
            ("*.Example.org", Some("*.example.org")),
            ("*.org", None),
            ("*", None),
            ("a*.example.org", None),
            ("*.*.org", None),
            ("10.0.0.1", None),
        ] {
            assert_eq!(
                normalize_static_name(name).as_deref(),
                certified,
                "{name:?}"
            );
        }
    }
}
