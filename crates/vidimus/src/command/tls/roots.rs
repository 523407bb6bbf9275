//! `vidimus tls roots`: the rotation of a CA in phases. Add the new root, re-issue, see that nobody needs the old one,
//! remove it.

mod add;
mod bundle;
mod list;
mod remove;

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Subcommand;
use vidimus_daemon::clock::{Clock as _, SystemClock};
use vidimus_fs::bundle::{PATIENCE, Turn};
use vidimus_tls::identity::Fingerprint;

use super::page;
use crate::output;

/// How long a program is waited for that follows the files.
const RELOAD: Duration = Duration::from_secs(30);
const PAUSE: Duration = Duration::from_millis(100);

/// The subcommands of `vidimus tls roots`.
#[derive(Debug, Subcommand)]
pub(crate) enum RootsCommand {
    /// Adds a root to a folder's `ca.crt`.
    Add(add::AddArgs),
    /// Shows the roots in a folder's `ca.crt`, and how many connections rest on each.
    List(list::ListArgs),
    /// Removes a root from a folder's `ca.crt`, unless somebody still needs it.
    Remove(remove::RemoveArgs),
}

impl RootsCommand {
    pub(super) async fn run(self) -> anyhow::Result<()> {
        match self {
            Self::Add(args) => args.run().await,
            Self::List(args) => args.run().await,
            Self::Remove(args) => args.run().await,
        }
    }
}

/// Whoever else changes the folder waits from here on: what is written is made of what is read in the turn.
async fn take_turn(folder: &Path) -> anyhow::Result<Turn> {
    let folder = folder.to_owned();
    Ok(tokio::task::spawn_blocking(move || Turn::take(folder, PATIENCE)).await??)
}

fn now() -> std::time::SystemTime {
    SystemClock.now()
}

/// Waits until each program has, or no longer has, the root in use, and says so. That one doesn't is said and changes
/// nothing: the files are as they should be.
async fn wait_until_in_use(sockets: &[PathBuf], root: Fingerprint, wanted: bool) {
    for socket in sockets {
        let state = if wanted { "in use" } else { "no longer in use" };
        let text = match tokio::time::timeout(RELOAD, reloaded(socket, root, wanted)).await {
            Ok(generation) => format!("generation {generation}: {state}"),
            Err(_) => format!(
                "not seen to be {state} within {} s: does the program follow this folder?",
                RELOAD.as_secs()
            ),
        };
        output::note(&format!("{}: {text}", socket.display()));
    }
}

async fn reloaded(socket: &Path, root: Fingerprint, wanted: bool) -> u64 {
    let root = root.to_string();
    loop {
        if let Ok(page) = page::ask(socket, None).await
            && page.roots.iter().any(|own| own.fingerprint == root) == wanted
        {
            return page.generation;
        }
        tokio::time::sleep(PAUSE).await;
    }
}
