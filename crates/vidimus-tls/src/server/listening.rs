//! A stream that notices whether the peer has begun to speak HTTP.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// What a client of HTTP/2 begins with (RFC 9113 §3.4).
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Notices whether the peer has begun to speak HTTP: with the whole preface of HTTP/2, or with something else, of which
/// the time-outs of HTTP/1.1 or an error make an end. Whoever begins the preface and falls silent has said nothing.
pub(super) struct Listening<IO> {
    io: IO,
    spoke: Arc<AtomicBool>,
    /// What has yet to come of the preface; empty once the peer has spoken.
    expected: &'static [u8],
}

impl<IO> Listening<IO> {
    /// `spoke` is set once the peer has spoken.
    pub(super) fn new(io: IO, spoke: Arc<AtomicBool>) -> Self {
        Self {
            io,
            spoke,
            expected: PREFACE,
        }
    }

    fn hear(&mut self, bytes: &[u8]) {
        let beginning = bytes.get(..self.expected.len()).unwrap_or(bytes);
        self.expected = self.expected.strip_prefix(beginning).unwrap_or_default();
        if self.expected.is_empty() {
            self.spoke.store(true, Ordering::Relaxed);
        }
    }
}

impl<IO: AsyncRead + Unpin> AsyncRead for Listening<IO> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let polled = Pin::new(&mut self.io).poll_read(cx, buf);
        if !self.expected.is_empty() {
            self.hear(buf.filled().get(before..).unwrap_or_default());
        }
        polled
    }
}

impl<IO: AsyncWrite + Unpin> AsyncWrite for Listening<IO> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write(cx, buf)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(cx)
    }
}
