//! Entries for fuzzers: each takes any bytes, and must return.

use crate::policy::{AllowList, Policy};

/// A header of the PROXY protocol: the client that it names, if it names one, and the number of bytes that were read.
#[cfg(feature = "proxy-protocol")]
#[must_use]
pub fn proxy_header(bytes: &[u8]) -> Option<(Option<std::net::SocketAddr>, usize)> {
    use std::future::Future;
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use crate::server::proxy_header::{Claim, read};

    let mut left = bytes;
    let read = pin!(read(&mut left)).poll(&mut Context::from_waker(Waker::noop()));
    let used = bytes.len().saturating_sub(left.len());
    match read {
        Poll::Ready(Ok(Claim::Client(address))) => Some((Some(address), used)),
        Poll::Ready(Ok(Claim::Proxy)) => Some((None, used)),
        Poll::Ready(Err(_)) | Poll::Pending => None,
    }
}

/// A policy file and, as far as it is one, the list of an environment variable: the file's entries as text and how each
/// of some paths is decided, so that a second reading can be compared.
#[must_use]
pub fn policy(bytes: &[u8]) -> Option<String> {
    if let Ok(text) = std::str::from_utf8(bytes)
        && let Ok(list) = AllowList::parse(text)
    {
        let again = AllowList::parse(&list.to_string());
        assert_eq!(again.as_ref(), Ok(&list), "a list reads as it writes");
    }
    Policy::from_bytes(bytes).ok().map(|policy| {
        let rules = policy.methods();
        let paths = ["", "/", "/a.B/", "/a.B/C", "/a.B/C/", "/api/v1/x"];
        let found = paths.map(|path| {
            rules
                .and_then(|rules| rules.find(path))
                .map(ToString::to_string)
        });
        format!("{:?} {} {found:?}", policy.mode(), policy.allow_list())
    })
}
