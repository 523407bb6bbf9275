//! Letting a refused peer read why.
//!
//! Closing a socket with unread data in it makes the kernel send a reset, and a reset overtakes the alert: a client that
//! had already written would see "connection reset" instead of "certificate expired". So the write side is closed first
//! and the peer is read for a moment.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::timeout;

use super::socket::Socket;

/// How long a refused peer is read.
const LINGER: Duration = Duration::from_secs(1);
/// How much is read of it.
const MAX_DISCARDED: usize = 256 * 1024;

pub(super) async fn linger(mut socket: Socket) {
    // Whatever goes wrong from here on, the peer is gone, which is all that is left to happen.
    let _ended = timeout(LINGER, async {
        socket.shutdown().await?;
        let mut buffer = vec![0; 4096];
        let mut discarded: usize = 0;
        while discarded < MAX_DISCARDED {
            match socket.read(&mut buffer).await? {
                0 => break,
                n => discarded = discarded.saturating_add(n),
            }
        }
        Ok::<_, std::io::Error>(())
    })
    .await;
}

#[cfg(test)]
mod tests {
    use tokio::net::UnixStream;
    use tokio::time::Instant;

    use super::*;

    /// V5, T17. A refused peer that goes on writing is read so far and no further: then its writes fail.
    #[tokio::test]
    async fn a_peer_that_keeps_writing_is_read_up_to_a_bound() {
        let (ours, mut theirs) = UnixStream::pair().expect("a pair");
        let writing = async {
            let mut written: usize = 0;
            while theirs.write_all(&[0; 4096]).await.is_ok() {
                written = written.saturating_add(4096);
            }
            written
        };
        let (written, ()) = tokio::join!(writing, linger(Socket::Unix(ours)));
        // What the kernel keeps for a reader comes on top.
        assert!((1..1 << 20).contains(&written), "{written}");
    }

    /// V5, T17. One that says nothing sees the end of what is said to it at once, and is left alone after a moment.
    #[tokio::test(start_paused = true)]
    async fn a_silent_peer_is_waited_for_a_moment() {
        let (ours, mut theirs) = UnixStream::pair().expect("a pair");
        let began = Instant::now();
        let mut said = Vec::new();
        let reading = theirs.read_to_end(&mut said);
        let (read, ()) = tokio::join!(reading, linger(Socket::Unix(ours)));
        assert_eq!(read.expect("a clean end"), 0);
        assert_eq!(began.elapsed().as_secs(), LINGER.as_secs());
    }
}
