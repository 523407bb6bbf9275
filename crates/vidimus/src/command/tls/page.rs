//! What a running program's admin page `/peers` says. Fields that other versions have and this one doesn't know are left
//! alone.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use serde::Deserialize;
use serde_json::Value;
use vidimus_tls::identity::Fingerprint;

use crate::{
    admin,
    exit::{Exit, Stop},
};

/// The page, with the times as the program wrote them.
#[derive(Debug, Deserialize)]
pub(super) struct Page {
    pub(super) generation: u64,
    pub(super) roots: Vec<RootUse>,
    pub(super) summary: Vec<Summary>,
    pub(super) connections: Vec<Connection>,
    pub(super) without: Option<Without>,
}

#[derive(Debug, Deserialize)]
pub(super) struct RootUse {
    pub(super) subject: String,
    pub(super) fingerprint: String,
    pub(super) connections: usize,
}

#[derive(Debug, Deserialize)]
pub(super) struct Summary {
    pub(super) anchor: Option<String>,
    pub(super) subject: Option<String>,
    pub(super) generation: u64,
    pub(super) current: bool,
    pub(super) connections: usize,
    pub(super) draining: usize,
    pub(super) calls: usize,
    pub(super) oldest_since: String,
    pub(super) next_expiry: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Connection {
    pub(super) id: u64,
    pub(super) peer: Value,
    pub(super) remote: String,
    pub(super) anchor: Option<String>,
    pub(super) anchor_subject: Option<String>,
    pub(super) generation: u64,
    pub(super) since: String,
    pub(super) not_after: Option<String>,
    pub(super) streams: usize,
    pub(super) draining: bool,
    pub(super) withdrawn: bool,
}

#[derive(Debug, Deserialize)]
pub(super) struct Without {
    pub(super) known: bool,
    pub(super) needed_by: Vec<u64>,
}

impl Connection {
    /// One short name: the first DNS or URI name, else the subject; a UNIX peer's user; `-` for nobody in particular.
    pub(super) fn label(&self) -> String {
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let first = |names: &str| self.peer.get(names)?.get(0).and_then(text);
        first("dns_names")
            .or_else(|| first("uri_names"))
            .or_else(|| self.peer.get("subject").and_then(text))
            .or_else(|| Some(format!("uid={}", self.peer.get("uid")?)))
            .unwrap_or_else(|| "-".to_owned())
    }

    /// What it is doing, in a word.
    pub(super) fn state(&self) -> &'static str {
        match (self.withdrawn, self.draining) {
            (true, _) => "withdrawn",
            (false, true) => "draining",
            (false, false) => "open",
        }
    }
}

/// Asks a program who is connected; with a root also who would need it.
pub(super) async fn ask(socket: &Path, without: Option<Fingerprint>) -> anyhow::Result<Page> {
    read(socket, ask_for_text(socket, without).await?)
}

/// The same, as the program wrote it.
pub(super) async fn ask_for_text(
    socket: &Path,
    without: Option<Fingerprint>,
) -> anyhow::Result<Value> {
    let path = match without {
        Some(root) => format!("/peers/without/{root}"),
        None => "/peers".to_owned(),
    };
    let answer = admin::json(socket, &path).await;
    Ok(answer.map_err(|error| Stop {
        exit: Exit::Unreachable,
        message: format!(
            "no answer about peers from the admin socket {}: {error:#}. Is it the socket of a running program, as given \
             with --admin-socket or in the node's data folder, and does this user own it?",
            socket.display()
        ),
    })?)
}

/// Understands what a program wrote.
pub(super) fn read(socket: &Path, answer: Value) -> anyhow::Result<Page> {
    serde_json::from_value(answer)
        .with_context(|| format!("read the answer of the admin socket {}", socket.display()))
}

/// Asks each of the programs.
pub(super) async fn ask_all(
    sockets: &[PathBuf],
    without: Option<Fingerprint>,
) -> anyhow::Result<Vec<(PathBuf, Page)>> {
    let mut pages = Vec::new();
    for socket in sockets {
        pages.push((socket.clone(), ask(socket, without).await?));
    }
    Ok(pages)
}

/// The first part of a fingerprint, which is enough to tell a folder's roots apart.
pub(super) fn short(fingerprint: &str) -> String {
    fingerprint.chars().take(16).collect()
}
