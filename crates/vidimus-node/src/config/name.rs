//! Syntax of the names that a config may contain.

use std::net::IpAddr;

/// A DNS name: at most 253 characters of labels of 1 to 63 letters, digits and inner hyphens (RFC 1123 §2.1), that is
/// not an address.
pub(super) fn is_dns_name(name: &str) -> bool {
    !name.is_empty()
        && name.len() <= 253
        && name.parse::<IpAddr>().is_err()
        && name.split('.').all(is_label)
}

/// A DNS name whose first label may be `*` (RFC 9525 §6.3).
pub(super) fn is_dns_name_or_wildcard(name: &str) -> bool {
    is_dns_name(name.strip_prefix("*.").unwrap_or(name))
}

/// `local@domain`, ASCII (RFC 5280 §4.2.1.6).
pub(super) fn is_email(address: &str) -> bool {
    address.split_once('@').is_some_and(|(local, domain)| {
        let plain = |byte: u8| byte.is_ascii_graphic() && !b"<>()[],;:\\\"@".contains(&byte);
        !local.is_empty() && local.len() <= 64 && local.bytes().all(plain) && is_dns_name(domain)
    })
}

/// An absolute URI with a scheme, ASCII without spaces (RFC 5280 §4.2.1.6).
pub(super) fn is_uri(uri: &str) -> bool {
    uri.split_once(':').is_some_and(|(scheme, rest)| {
        scheme.starts_with(|first: char| first.is_ascii_alphabetic())
            && scheme
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
            && !rest.is_empty()
            && rest.bytes().all(|byte| byte.is_ascii_graphic())
    })
}

fn is_label(label: &str) -> bool {
    (1..=63).contains(&label.len())
        && label
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
        && !label.starts_with('-')
        && !label.ends_with('-')
}

#[cfg(test)]
mod tests {
    use super::*;

    /// C2.
    #[test]
    fn names_follow_their_syntax() {
        for good in ["a", "a.example", "xn--bcher-kva.example", "1a.example"] {
            assert!(is_dns_name(good), "{good}");
        }
        for bad in [
            "", ".", "a..b", "-a", "a-", "a_b", "*.a", "a.", "ä", "10.0.0.1",
        ] {
            assert!(!is_dns_name(bad), "{bad}");
        }
        assert!(is_dns_name_or_wildcard("*.example.org"));
        assert!(!is_dns_name_or_wildcard("*"));
        assert!(!is_dns_name_or_wildcard("a.*.example"));
        assert!(is_email("ops@example.org") && !is_email("example.org") && !is_email("a b@c"));
        assert!(is_uri("spiffe://example.org/ns/a") && !is_uri("example.org") && !is_uri("a: b"));
    }
}
