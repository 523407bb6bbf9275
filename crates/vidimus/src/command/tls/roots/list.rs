//! `vidimus tls roots list`: what there is, and what rests on it.

use std::path::PathBuf;

use clap::Args;
use serde::Serialize;
use vidimus_tls::{check, material::Root};

use super::{bundle::Bundle, now};
use crate::{
    cli::OutputArgs,
    command::tls::page::{self, Page},
    output, time,
};

/// Arguments of `vidimus tls roots list`.
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  vidimus tls roots list ./tls --socket ./admin.sock")]
pub(crate) struct ListArgs {
    /// The folder with `ca.crt`.
    #[arg(value_name = "DIR")]
    folder: PathBuf,

    /// Admin socket of a program that uses the folder, to count the connections that rest on each root; may be given
    /// several times.
    #[arg(long, value_name = "PATH")]
    socket: Vec<PathBuf>,

    #[command(flatten)]
    output: OutputArgs,
}

#[derive(Serialize)]
#[serde(transparent)]
struct Answer(Vec<Row>);

#[derive(Serialize)]
struct Row {
    subject: String,
    sha256: String,
    not_before: String,
    not_after: String,
    /// `ok`, or why it verifies nobody.
    state: String,
    /// Whether the folder's own certificate leads to it.
    own: bool,
    /// Connections that rest on it, where a program was asked.
    connections: Option<usize>,
}

impl ListArgs {
    pub(super) async fn run(self) -> anyhow::Result<()> {
        let bundle = Bundle::read(&self.folder)?;
        let own = check::own_root(&bundle.files, &bundle.trust, now());
        let pages = page::ask_all(&self.socket, None).await?;
        let row = |root: &Root| {
            let sha256 = root.fingerprint().to_string();
            Row {
                subject: root.subject().to_owned(),
                not_before: time::of_system(root.not_before()),
                not_after: time::of_system(root.not_after()),
                state: state(root),
                own: own == Some(root.fingerprint()),
                connections: (!pages.is_empty()).then(|| count(&pages, &sha256)),
                sha256,
            }
        };
        let rows = bundle.trust.roots().iter().map(row).collect();
        output::print(self.output.format, &Answer(rows))
    }
}

fn state(root: &Root) -> String {
    match root.fault() {
        Some(fault) => fault.to_owned(),
        None if now() > root.not_after() => "expired".to_owned(),
        None if !root.is_valid_at(now()) => "not valid yet".to_owned(),
        None => "ok".to_owned(),
    }
}

fn count(pages: &[(PathBuf, Page)], sha256: &str) -> usize {
    let roots = pages.iter().flat_map(|(_, page)| &page.roots);
    let same = roots.filter(|root| root.fingerprint == sha256);
    same.map(|root| root.connections).sum()
}

impl output::Tabular for Answer {
    fn columns(&self) -> Vec<&'static str> {
        vec![
            "root",
            "sha-256",
            "from",
            "until",
            "state",
            "own certificate",
            "connections",
        ]
    }

    fn rows(&self) -> Vec<Vec<String>> {
        let row = |row: &Row| {
            let connections = row.connections.map(|count| count.to_string());
            vec![
                row.subject.clone(),
                row.sha256.clone(),
                row.not_before.clone(),
                row.not_after.clone(),
                row.state.clone(),
                if row.own { "yes" } else { "-" }.to_owned(),
                connections.unwrap_or_else(|| "-".to_owned()),
            ]
        };
        self.0.iter().map(row).collect()
    }
}
