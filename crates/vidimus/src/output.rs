//! Data on stdout, everything else on stderr; the same answer as a table, JSON or YAML.

use std::io::{self, Write as _};

use anyhow::Context as _;
use comfy_table::{ContentArrangement, Table, presets};
use serde::Serialize;

use crate::cli::Format;

/// An answer that a person can read as a table.
pub(crate) trait Tabular: Serialize {
    /// The table's columns.
    fn columns(&self) -> Vec<&'static str>;
    /// The table's rows, a cell a column.
    fn rows(&self) -> Vec<Vec<String>>;
}

/// Prints an answer in the format that was asked for.
pub(crate) fn print(format: Format, answer: &impl Tabular) -> anyhow::Result<()> {
    match format {
        Format::Table => line(&table(&answer.columns(), answer.rows())),
        Format::Json => json(answer),
        Format::Yaml => yaml(answer),
    }
}

/// Prints one object: two columns for people, its fields for programs.
pub(crate) fn print_fields(
    format: Format,
    answer: &impl Serialize,
    fields: &[(&'static str, String)],
) -> anyhow::Result<()> {
    match format {
        Format::Table => {
            let rows = fields
                .iter()
                .map(|(name, value)| vec![(*name).to_owned(), value.clone()]);
            line(&table(&[], rows.collect()))
        }
        Format::Json => json(answer),
        Format::Yaml => yaml(answer),
    }
}

fn json(answer: &impl Serialize) -> anyhow::Result<()> {
    line(&serde_json::to_string_pretty(answer).context("write the answer as JSON")?)
}

fn yaml(answer: &impl Serialize) -> anyhow::Result<()> {
    let text = serde_saphyr::to_string(answer).context("write the answer as YAML")?;
    line(text.trim_end())
}

/// Lays out a table without colour or borders, so that it reads and greps well.
pub(crate) fn table(columns: &[&str], rows: Vec<Vec<String>>) -> String {
    let mut table = Table::new();
    table
        .load_style(presets::NOTHING)
        .set_content_arrangement(ContentArrangement::Disabled);
    if !columns.is_empty() {
        table.set_header(columns.iter().map(|column| column.to_uppercase()));
    }
    table.add_rows(rows);
    let lines: Vec<String> = table
        .to_string()
        .lines()
        .map(|line| line.trim_end().to_owned())
        .collect();
    lines.join("\n")
}

/// Writes a line to stdout; a reader that has gone away is no error.
pub(crate) fn line(text: &str) -> anyhow::Result<()> {
    stop_at_broken_pipe(writeln!(io::stdout().lock(), "{text}")).context("write to stdout")
}

/// Writes bytes to stdout as they are.
pub(crate) fn bytes(bytes: &[u8]) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    stop_at_broken_pipe(out.write_all(bytes).and_then(|()| out.flush())).context("write to stdout")
}

/// Writes a line for people to stderr; that it can't be written changes nothing.
pub(crate) fn note(text: &str) {
    let _unread = writeln!(io::stderr().lock(), "{text}");
}

fn stop_at_broken_pipe(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        other => other,
    }
}
