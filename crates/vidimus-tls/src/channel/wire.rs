//! The byte stream under HTTP/2, which remembers what hyper would forget: whether the server has spoken, and how the
//! connection broke.

use std::error::Error;
use std::fmt;
use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// What a connection can run over.
pub(super) trait ByteStream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> ByteStream for T {}

/// What is known about a connection's bytes; shared with whoever asks.
#[derive(Debug, Default)]
pub(super) struct WireState {
    heard: AtomicBool,
    error: OnceLock<WireError>,
}

impl WireState {
    /// Whether a byte of the server's HTTP/2 has arrived. With it the server has accepted our certificate.
    pub(super) fn heard(&self) -> bool {
        self.heard.load(Ordering::Acquire)
    }

    /// How the connection broke, if it did.
    pub(super) fn error(&self) -> Option<WireError> {
        self.error.get().cloned()
    }
}

/// How a connection broke.
#[derive(Clone, Debug)]
pub(super) struct WireError(Arc<io::Error>);

impl WireError {
    pub(super) fn kind(&self) -> io::ErrorKind {
        self.0.kind()
    }
}

impl fmt::Display for WireError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Error for WireError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.0.source()
    }
}

/// Wraps the stream of one connection.
pub(super) struct Wire {
    io: Box<dyn ByteStream>,
    state: Arc<WireState>,
    /// Writing failed with this, and reading goes on: what the peer said before it hung up, such as an alert or a GOAWAY,
    /// is worth more than the news that it did.
    broken: Option<io::Error>,
}

impl Wire {
    pub(super) fn new(io: Box<dyn ByteStream>) -> (Self, Arc<WireState>) {
        let state = Arc::new(WireState::default());
        (
            Self {
                io,
                state: Arc::clone(&state),
                broken: None,
            },
            state,
        )
    }

    /// Remembers the first error and hands it on.
    fn fail(&self, error: io::Error) -> io::Error {
        let kind = error.kind();
        let error = WireError(Arc::new(error));
        let first = self.state.error.get_or_init(|| error);
        io::Error::new(kind, first.clone())
    }

    /// A write came to nothing. Pretends it went well if there may still be something to read.
    fn write_failed<T>(
        &mut self,
        error: io::Error,
        pretended: T,
        cx: &Context<'_>,
    ) -> Poll<io::Result<T>> {
        if !is_hang_up(&error) {
            return Poll::Ready(Err(self.fail(error)));
        }
        self.broken = Some(error);
        // The next read finds the end of the stream, whatever the last one registered for.
        cx.waker().wake_by_ref();
        Poll::Ready(Ok(pretended))
    }
}

impl AsyncRead for Wire {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        match Pin::new(&mut self.io).poll_read(cx, buf) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(Ok(())) if buf.filled().len() > before => {
                self.state.heard.store(true, Ordering::Release);
                Poll::Ready(Ok(()))
            }
            Poll::Ready(Ok(())) => match self.broken.take() {
                Some(error) => Poll::Ready(Err(self.fail(error))),
                None => Poll::Ready(Ok(())),
            },
            Poll::Ready(Err(error)) => Poll::Ready(Err(self.fail(error))),
        }
    }
}

impl AsyncWrite for Wire {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        if self.broken.is_some() {
            return Poll::Ready(Ok(buf.len()));
        }
        match Pin::new(&mut self.io).poll_write(cx, buf) {
            Poll::Ready(Err(error)) => self.write_failed(error, buf.len(), cx),
            other => other,
        }
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let length = bufs
            .iter()
            .fold(0_usize, |sum, buf| sum.saturating_add(buf.len()));
        if self.broken.is_some() {
            return Poll::Ready(Ok(length));
        }
        match Pin::new(&mut self.io).poll_write_vectored(cx, bufs) {
            Poll::Ready(Err(error)) => self.write_failed(error, length, cx),
            other => other,
        }
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.broken.is_some() {
            return Poll::Ready(Ok(()));
        }
        match Pin::new(&mut self.io).poll_flush(cx) {
            Poll::Ready(Err(error)) => self.write_failed(error, (), cx),
            other => other,
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.broken.is_some() {
            return Poll::Ready(Ok(()));
        }
        Pin::new(&mut self.io).poll_shutdown(cx)
    }
}

/// Whether the error says that the peer is gone, after which reading ends by itself.
fn is_hang_up(error: &io::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, NotConnected, TimedOut};
    matches!(
        error.kind(),
        BrokenPipe | ConnectionAborted | ConnectionReset | NotConnected | TimedOut
    )
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    /// A peer that said something and hung up.
    struct HungUp(&'static [u8]);

    impl AsyncRead for HungUp {
        fn poll_read(
            mut self: Pin<&mut Self>,
            _cx: &mut Context<'_>,
            buf: &mut ReadBuf<'_>,
        ) -> Poll<io::Result<()>> {
            buf.put_slice(std::mem::take(&mut self.0));
            Poll::Ready(Ok(()))
        }
    }

    impl AsyncWrite for HungUp {
        fn poll_write(
            self: Pin<&mut Self>,
            _cx: &mut Context<'_>,
            _buf: &[u8],
        ) -> Poll<io::Result<usize>> {
            Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()))
        }

        fn poll_flush(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }

        fn poll_shutdown(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }
    }

    #[tokio::test]
    async fn last_words_are_read_after_a_failed_write() {
        let (mut wire, state) = Wire::new(Box::new(HungUp(b"goodbye")));
        assert!(!state.heard());
        wire.write_all(b"hello").await.expect("a pretended success");
        let mut last_words = [0; 7];
        wire.read_exact(&mut last_words)
            .await
            .expect("what the peer said");
        assert_eq!(&last_words, b"goodbye");
        assert!(state.heard());
        assert!(
            state.error().is_none(),
            "nothing is over before everything is read"
        );
        let end = wire
            .read(&mut last_words)
            .await
            .expect_err("the failed write comes to light");
        assert_eq!(end.kind(), io::ErrorKind::BrokenPipe);
        assert_eq!(
            state.error().map(|error| error.to_string()),
            Some(end.to_string())
        );
    }
}
