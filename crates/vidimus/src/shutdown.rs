//! When a program that runs on is to stop.

use std::io::Read as _;

use anyhow::Context as _;
use clap::Args;
use tokio_util::sync::CancellationToken;
use vidimus_daemon::signal;

/// Ways to stop beside a signal.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct StopArgs {
    /// Stops when standard input ends: how a parent process takes its children along.
    #[arg(long, hide = true)]
    stop_with_stdin: bool,
}

impl StopArgs {
    /// A token that is cancelled at SIGTERM or SIGINT, and at the end of standard input where that was asked for.
    pub(crate) fn token(self) -> anyhow::Result<CancellationToken> {
        let token = signal::shutdown_token().context("listen for signals")?;
        if self.stop_with_stdin {
            let token = token.clone();
            // A thread of its own: a read of standard input can't be cancelled, and this one lives as long as the process.
            std::thread::Builder::new()
                .name("stdin".to_owned())
                .spawn(move || {
                    let mut buffer = [0; 64];
                    while std::io::stdin()
                        .read(&mut buffer)
                        .is_ok_and(|read| read > 0)
                    {}
                    token.cancel();
                })
                .context("watch standard input")?;
        }
        Ok(token)
    }
}
