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
