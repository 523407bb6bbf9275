//! `vidimus tls peers`: who is connected, and under which root.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use serde::Serialize;
use serde_json::Value;

use super::page::{self, Page, Summary, short};
use crate::{cli::OutputArgs, output};

/// Arguments of `vidimus tls peers`.
#[derive(Args, Debug)]
#[command(
    after_help = "Example:\n  vidimus tls peers --socket ./admin.sock --by root\n\n\
    The generation counts the changes of certificate and roots that the program has taken into use; a connection with an \
    older one came before the last change.\n\n\
    Exit code 0: the program answered; 3: no program answers on the socket."
)]
pub(crate) struct PeersArgs {
    /// The admin socket of the program, as given to `--admin-socket`; `admin.sock` in a node's data folder.
    #[arg(long, value_name = "PATH")]
    socket: PathBuf,

    /// What a line is.
    #[arg(long, value_enum, default_value_t, value_name = "WHAT")]
    by: By,

    #[command(flatten)]
    output: OutputArgs,
}

#[derive(Clone, Copy, Debug, Default, ValueEnum)]
enum By {
    /// A connection.
    #[default]
    Peer,
    /// The connections that rest on one root and came by the same material.
    Root,
}

#[derive(Serialize)]
struct Answer {
    /// As the program wrote it, with what this version knows nothing of.
    #[serde(flatten)]
    written: Value,
    #[serde(skip)]
    page: Page,
    #[serde(skip)]
    by: By,
}

impl PeersArgs {
    pub(super) async fn run(self) -> anyhow::Result<()> {
        let written = page::ask_for_text(&self.socket, None).await?;
        let answer = Answer {
            page: page::read(&self.socket, written.clone())?,
            written,
            by: self.by,
        };
        output::print(self.output.format, &answer)
    }
}

impl output::Tabular for Answer {
    fn columns(&self) -> Vec<&'static str> {
        match self.by {
            By::Peer => vec![
                "id",
                "peer",
                "remote",
                "root",
                "sha-256",
                "generation",
                "since",
                "expires",
                "calls",
                "state",
            ],
            By::Root => vec![
                "root",
                "sha-256",
                "generation",
                "connections",
                "draining",
                "calls",
                "oldest since",
                "next expiry",
            ],
        }
    }

    fn rows(&self) -> Vec<Vec<String>> {
        match self.by {
            By::Peer => self.page.by_peer(),
            By::Root => self.page.by_root(),
        }
    }
}

impl Page {
    fn by_peer(&self) -> Vec<Vec<String>> {
        let row = |connection: &page::Connection| {
            vec![
                connection.id.to_string(),
                connection.label(),
                connection.remote.clone(),
                or_none(connection.anchor_subject.as_deref()),
                or_none(connection.anchor.as_deref().map(short).as_deref()),
                generation(
                    connection.generation,
                    connection.generation == self.generation,
                ),
                connection.since.clone(),
                or_none(connection.not_after.as_deref()),
                connection.streams.to_string(),
                connection.state().to_owned(),
            ]
        };
        self.connections.iter().map(row).collect()
    }

    /// The groups, and a line for each root that nobody rests on: that is what one waits for.
    fn by_root(&self) -> Vec<Vec<String>> {
        let row = |group: &Summary| {
            vec![
                or_none(group.subject.as_deref()),
                or_none(group.anchor.as_deref().map(short).as_deref()),
                generation(group.generation, group.current),
                group.connections.to_string(),
                group.draining.to_string(),
                group.calls.to_string(),
                group.oldest_since.clone(),
                or_none(group.next_expiry.as_deref()),
            ]
        };
        let unused = self.roots.iter().filter(|root| root.connections == 0);
        let unused = unused.map(|root| {
            let none = || "-".to_owned();
            let (subject, sha256) = (root.subject.clone(), short(&root.fingerprint));
            let zero = || "0".to_owned();
            vec![
                subject,
                sha256,
                none(),
                zero(),
                zero(),
                zero(),
                none(),
                none(),
            ]
        });
        self.summary.iter().map(row).chain(unused).collect()
    }
}

fn generation(number: u64, current: bool) -> String {
    let age = if current { "current" } else { "older" };
    format!("{number}, {age}")
}

fn or_none(text: Option<&str>) -> String {
    text.unwrap_or("-").to_owned()
}
