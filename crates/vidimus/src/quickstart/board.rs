//! The live table: drawn over itself on a terminal, silent elsewhere.

use std::io::{self, IsTerminal as _, Write as _};

use crate::output;

/// One end of the enforced channel, as the table shows it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Row {
    /// Which listener or client.
    pub(crate) end: String,
    /// `mutual TLS`, `plaintext`, or `local`.
    pub(crate) posture: String,
    /// Who is at the other end, by name.
    pub(crate) peer: String,
    /// When the own certificate ends.
    pub(crate) expires: String,
    /// How often material was taken into use after the first time.
    pub(crate) reloads: u64,
    pub(crate) calls: u64,
    pub(crate) failed: u64,
}

const COLUMNS: [&str; 7] = [
    "end", "posture", "peer", "expires", "reloads", "calls", "failed",
];

/// Shows progress: on a terminal a table that is redrawn in place, with the steps scrolling above it; elsewhere the
/// steps alone, a line each.
#[derive(Debug)]
pub(crate) struct Board {
    live: bool,
    drawn_lines: usize,
}

impl Board {
    /// A board on stderr, so that stdout stays for the answer.
    pub(crate) fn new() -> Self {
        Self {
            live: io::stderr().is_terminal(),
            drawn_lines: 0,
        }
    }

    /// Whether somebody watches.
    pub(crate) fn live(&self) -> bool {
        self.live
    }

    /// Adds a line that stays.
    pub(crate) fn step(&mut self, text: &str) {
        self.erase();
        output::note(text);
    }

    /// Draws the table anew.
    pub(crate) fn draw(&mut self, rows: &[Row]) {
        if !self.live {
            return;
        }
        self.erase();
        // A line that wraps would take two rows of the screen, and erasing counts rows.
        let width = width();
        let text: Vec<String> = render(rows)
            .lines()
            .map(|line| line.chars().take(width).collect())
            .collect();
        self.drawn_lines = text.len().saturating_add(1);
        output::note(&format!("\n{}", text.join("\n")));
    }

    fn erase(&mut self) {
        if self.drawn_lines > 0 {
            // Cursor up over what was drawn, then clear to the end of the screen (ECMA-48 CUU, ED).
            let _unwatched = write!(io::stderr().lock(), "\x1b[{}A\x1b[J", self.drawn_lines);
            self.drawn_lines = 0;
        }
    }
}

/// The terminal's width in columns; one that doesn't know its size, such as a script's, gets whole lines.
fn width() -> usize {
    match rustix::termios::tcgetwinsize(io::stderr()) {
        Ok(size) if size.ws_col > 0 => size.ws_col.into(),
        Ok(_) | Err(_) => usize::MAX,
    }
}

/// The table as text.
pub(crate) fn render(rows: &[Row]) -> String {
    let cells = |row: &Row| {
        vec![
            row.end.clone(),
            row.posture.clone(),
            row.peer.clone(),
            row.expires.clone(),
            row.reloads.to_string(),
            row.calls.to_string(),
            row.failed.to_string(),
        ]
    };
    output::table(&COLUMNS, rows.iter().map(cells).collect())
}
