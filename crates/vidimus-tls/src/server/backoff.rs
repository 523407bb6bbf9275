//! What an error of `accept` means for the next one.

use std::io;
use std::time::{Duration, Instant};

use super::Inner;

/// The pauses after an error of `accept`: the first one and the longest.
const BACKOFF: (Duration, Duration) = (Duration::from_millis(10), Duration::from_secs(1));

/// When to accept again after an error. A moment, not a length: the loop starts to wait anew whenever anything else
/// happens, and connections that end more often than the pause is long would put it off for ever.
#[derive(Debug, Default)]
pub(super) struct Backoff {
    pause: Duration,
    pub(super) until: Option<Instant>,
}

impl Backoff {
    /// A connection that broke before it was accepted is no reason to wait; a process without free file descriptors is,
    /// or the loop would spin.
    pub(super) fn after(&mut self, error: &io::Error, server: &Inner) {
        match error.kind() {
            io::ErrorKind::ConnectionAborted
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::ConnectionRefused
            | io::ErrorKind::HostUnreachable
            | io::ErrorKind::Interrupted
            | io::ErrorKind::NetworkDown
            | io::ErrorKind::NetworkUnreachable => *self = Self::default(),
            _ => {
                server.counters.accept_errors.add();
                if self.pause.is_zero() {
                    tracing::error!(error = %error, "cannot accept connections; trying again");
                }
                let (first, longest) = BACKOFF;
                self.pause = self.pause.saturating_mul(2).clamp(first, longest);
                self.until = Instant::now().checked_add(self.pause);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::{LocalPeers, Security, Server};

    /// T17. Running out of file descriptors slows accepting down instead of spinning or ending; a peer's reset doesn't.
    #[test]
    fn accepting_pauses_longer_and_longer_without_file_descriptors() {
        let server = Server::builder(Security::Local(LocalPeers::owner())).build();
        let too_many = io::Error::from_raw_os_error(rustix::io::Errno::MFILE.raw_os_error());
        let mut backoff = Backoff::default();
        let mut pauses = Vec::new();
        for _ in 0..10 {
            backoff.after(&too_many, &server.0);
            pauses.push(backoff.pause.as_millis());
        }
        assert_eq!(pauses, [10, 20, 40, 80, 160, 320, 640, 1000, 1000, 1000]);
        assert_eq!(server.stats().accept_errors, 10);
        assert!(backoff.until.is_some());
        let reset = io::Error::from(io::ErrorKind::ConnectionAborted);
        backoff.after(&reset, &server.0);
        assert_eq!((backoff.pause, backoff.until), (Duration::ZERO, None));
        assert_eq!(server.stats().accept_errors, 10);
    }
}
