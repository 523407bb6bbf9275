//! Entries for fuzzers: each takes any bytes, and must return.

use std::future::Future;
use std::net::SocketAddr;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use crate::server::proxy_header::{Claim, read};

/// A header of the PROXY protocol: the client that it names, if it names one, and the number of bytes that were read.
#[must_use]
pub fn proxy_header(bytes: &[u8]) -> Option<(Option<SocketAddr>, usize)> {
    let mut left = bytes;
    let read = pin!(read(&mut left)).poll(&mut Context::from_waker(Waker::noop()));
    let used = bytes.len().saturating_sub(left.len());
    match read {
        Poll::Ready(Ok(Claim::Client(address))) => Some((Some(address), used)),
        Poll::Ready(Ok(Claim::Proxy)) => Some((None, used)),
        Poll::Ready(Err(_)) | Poll::Pending => None,
    }
}
