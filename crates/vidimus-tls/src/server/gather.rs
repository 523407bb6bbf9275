//! Gathers what a connection writes in one turn, so that it leaves as one TLS record by one system call.
//!
//! HTTP/2 flushes again and again in one turn: the acknowledgement of a ping or of settings before the call that came with
//! it is answered, and each answer before the next call is looked at. Each time would cost a record and a system call, which
//! on a busy connection is more than the call itself. So a flush by the protocol waits for the end of the turn, when
//! whoever drives the connection flushes it.

use std::future::{Future as _, poll_fn};
use std::io::{self, IoSlice};
use std::mem;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::task::unconstrained;

/// How much is gathered: the plaintext of one TLS record at most (RFC 8446 §5.1).
const MAX_GATHERED: usize = 16 * 1024;
/// What an idle connection may keep for its next turn.
const MAX_KEPT: usize = 1024;
/// How long something is kept while a turn goes on.
const MAX_DELAY: Duration = Duration::from_millis(1);

/// The stream for the protocol, and what ends its turns.
pub(super) fn gathering<IO>(io: IO) -> (Gathering<IO>, TurnEnd<IO>) {
    let shared = Arc::new(Mutex::new(Shared {
        io,
        gathered: Vec::new(),
        since: None,
        unflushed: false,
        behind: false,
    }));
    (Gathering(Arc::clone(&shared)), TurnEnd(shared))
}

/// A stream that takes its flushes as done, as long as the peer takes what it is sent.
#[derive(Debug)]
pub(super) struct Gathering<IO>(Arc<Mutex<Shared<IO>>>);

/// Writes what was gathered.
#[derive(Debug)]
pub(super) struct TurnEnd<IO>(Arc<Mutex<Shared<IO>>>);

#[derive(Debug)]
struct Shared<IO> {
    io: IO,
    gathered: Vec<u8>,
    /// Since when there is something.
    since: Option<Instant>,
    /// Whether the stream has been given something since it was flushed.
    unflushed: bool,
    /// Whether the peer didn't take all of the last turn. A flush waits for it then, as the protocol's time-outs expect.
    behind: bool,
}

fn lock<IO>(shared: &Mutex<Shared<IO>>) -> MutexGuard<'_, Shared<IO>> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<IO: AsyncWrite + Unpin> TurnEnd<IO> {
    /// Ends a turn. What the peer doesn't take yet goes as soon as it does, for which the task is woken.
    ///
    /// # Errors
    ///
    /// The stream's: it takes nothing any more.
    pub(super) fn flush(&self, context: &mut Context<'_>) -> io::Result<()> {
        let flushing = poll_fn(|context| lock(&self.0).poll_flush(context));
        // A turn may have used up the budget of its task, which would put this off from turn to turn.
        match pin!(unconstrained(flushing)).poll(context) {
            Poll::Ready(flushed) => flushed,
            Poll::Pending => {
                lock(&self.0).behind = true;
                Ok(())
            }
        }
    }
}

impl<IO: AsyncWrite + Unpin> Shared<IO> {
    fn poll_flush(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_write_gathered(context))?;
        if self.unflushed {
            ready!(Pin::new(&mut self.io).poll_flush(context))?;
            self.unflushed = false;
        }
        self.behind = false;
        Poll::Ready(Ok(()))
    }

    fn poll_write_gathered(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut written = 0;
        let outcome = loop {
            let rest = self.gathered.get(written..).unwrap_or_default();
            if rest.is_empty() {
                break Poll::Ready(Ok(()));
            }
            self.unflushed = true;
            match Pin::new(&mut self.io).poll_write(context, rest) {
                Poll::Ready(Ok(0)) => break Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                Poll::Ready(Ok(count)) => written = written.saturating_add(count),
                Poll::Ready(Err(error)) => break Poll::Ready(Err(error)),
                Poll::Pending => break Poll::Pending,
            }
        };
        self.gathered.drain(..written.min(self.gathered.len()));
        if self.gathered.is_empty() {
            self.since = None;
            if self.gathered.capacity() > MAX_KEPT {
                mem::take(&mut self.gathered);
            }
        }
        outcome
    }
}

impl<IO: AsyncRead + Unpin> AsyncRead for Gathering<IO> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut lock(&self.0).io).poll_read(context, buf)
    }
}

impl<IO: AsyncWrite + Unpin> AsyncWrite for Gathering<IO> {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(context, &[IoSlice::new(buf)])
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let shared = &mut *lock(&self.0);
        let length = bufs.iter().map(|buf| buf.len()).sum();
        if shared.gathered.len().saturating_add(length) > MAX_GATHERED {
            ready!(shared.poll_write_gathered(context))?;
        }
        if length > MAX_GATHERED {
            shared.unflushed = true;
            return Pin::new(&mut shared.io).poll_write_vectored(context, bufs);
        }
        shared.since.get_or_insert_with(Instant::now);
        for buf in bufs {
            shared.gathered.extend_from_slice(buf);
        }
        Poll::Ready(Ok(length))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let shared = &mut *lock(&self.0);
        let waits = shared
            .since
            .is_some_and(|since| since.elapsed() > MAX_DELAY);
        if shared.behind || waits {
            return shared.poll_flush(context);
        }
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let shared = &mut *lock(&self.0);
        ready!(shared.poll_write_gathered(context))?;
        ready!(Pin::new(&mut shared.io).poll_shutdown(context))?;
        // A stream flushes itself when it is shut down.
        shared.unflushed = false;
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};

    use super::*;

    async fn end_turn(turn_end: &TurnEnd<DuplexStream>) {
        let ended = poll_fn(|context| Poll::Ready(turn_end.flush(context))).await;
        ended.expect("the other end is there");
    }

    /// T19. However often it is flushed, what one turn writes leaves at its end, in order.
    #[tokio::test]
    async fn what_one_turn_writes_leaves_at_its_end() {
        let (ours, mut theirs) = duplex(64 * 1024);
        let (mut stream, turn_end) = gathering(ours);
        for part in ["one", "two", "three"] {
            stream.write_all(part.as_bytes()).await.expect("room");
            stream.flush().await.expect("taken as done");
        }
        let mut got = [0; 64];
        let early = poll_fn(|context| {
            let mut buffer = ReadBuf::new(&mut got);
            Poll::Ready(
                Pin::new(&mut theirs)
                    .poll_read(context, &mut buffer)
                    .is_ready(),
            )
        });
        assert!(!early.await, "nothing leaves before the end of the turn");
        end_turn(&turn_end).await;
        let count = theirs.read(&mut got).await.expect("what was written");
        assert_eq!(got.get(..count), Some(&b"onetwothree"[..]));
    }

    /// V18. A peer that reads slowly gets everything in order, and no more than a bound is kept for it.
    #[tokio::test]
    async fn a_slow_reader_gets_everything_and_bounds_what_is_kept() {
        let (ours, mut theirs) = duplex(1000);
        let (mut stream, turn_end) = gathering(ours);
        let sent: Vec<u8> = (0_u32..100_000).map(|n| (n % 251) as u8).collect();
        let reading = async {
            let mut got = Vec::new();
            theirs.read_to_end(&mut got).await.expect("no fault");
            got
        };
        let writing = async {
            // Of all sizes: small ones that are gathered, and ones that are too large for it.
            let mut rest = &sent[..];
            for size in [1, 17, 5000, 12_000, 40_000, 3, 20_000].into_iter().cycle() {
                let (now, later) = rest.split_at(size.min(rest.len()));
                stream.write_all(now).await.expect("room");
                let kept = lock(&turn_end.0).gathered.len();
                assert!(kept <= MAX_GATHERED, "{kept} bytes are kept");
                end_turn(&turn_end).await;
                rest = later;
                if rest.is_empty() {
                    break;
                }
            }
            stream.shutdown().await.expect("no fault");
        };
        let (got, ()) = tokio::join!(reading, writing);
        assert!(got == sent, "everything came, in order");
        let shared = lock(&turn_end.0);
        assert!(
            shared.gathered.capacity() <= MAX_KEPT,
            "nothing large stays"
        );
    }

    /// V18. That the peer is gone is an error at the end of the turn.
    #[tokio::test]
    async fn the_end_of_a_turn_tells_that_the_peer_is_gone() {
        let (ours, theirs) = duplex(1000);
        let (mut stream, turn_end) = gathering(ours);
        stream.write_all(b"gathered").await.expect("room");
        drop(theirs);
        let ended = poll_fn(|context| Poll::Ready(turn_end.flush(context))).await;
        assert!(ended.is_err());
    }

    /// V18. What a slow peer didn't take leaves once it reads, by being woken alone; a flush waits as long.
    #[tokio::test]
    async fn what_a_peer_did_not_take_leaves_once_it_reads() {
        let (ours, mut theirs) = duplex(1000);
        let (mut stream, turn_end) = gathering(ours);
        stream.write_all(&[7; 5000]).await.expect("room");
        stream.flush().await.expect("taken as done");
        end_turn(&turn_end).await;
        let mut flushing = pin!(stream.flush());
        let flushed = poll_fn(|context| Poll::Ready(flushing.as_mut().poll(context))).await;
        assert!(flushed.is_pending(), "the peer hasn't read");
        let ending = poll_fn(|context| {
            let ended = turn_end.flush(context);
            assert!(ended.is_ok(), "the peer is there");
            if lock(&turn_end.0).behind {
                Poll::Pending
            } else {
                Poll::Ready(())
            }
        });
        let mut got = [0; 5000];
        let (count, ()) = tokio::join!(theirs.read_exact(&mut got), ending);
        assert_eq!(count.expect("everything"), 5000);
        flushing.await.expect("done");
    }

    /// T19. A turn that goes on keeps nothing for longer than a moment.
    #[tokio::test]
    async fn a_long_turn_flushes_as_it_goes() {
        let (ours, mut theirs) = duplex(1000);
        let (mut stream, _turn_end) = gathering(ours);
        stream.write_all(b"ready").await.expect("room");
        let began = Instant::now();
        // The turn works: its time passes without anybody waiting.
        while began.elapsed() <= MAX_DELAY {
            std::hint::spin_loop();
        }
        stream.flush().await.expect("no fault");
        let mut got = [0; 5];
        theirs.read_exact(&mut got).await.expect("it has left");
        assert_eq!(&got, b"ready");
    }
}
