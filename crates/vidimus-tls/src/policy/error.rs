//! Why a policy file is not usable.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// Why a policy was not loaded.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PolicyError {
    /// The file would permit everything to somebody new only because one of its lists is gone.
    #[error(
        "{path}: found no entries in {field}, which had some; accepted: entries (a policy is open to every verified peer only from its start)"
    )]
    Emptied {
        /// The file.
        path: PathBuf,
        /// `allow` or `methods`.
        field: &'static str,
    },
    /// The file says something that is not accepted.
    #[error("{}", lines(path, problems))]
    Problems {
        /// The file.
        path: PathBuf,
        /// All of it, in the order of the file; never empty.
        problems: Vec<PolicyProblem>,
    },
    /// The file cannot be read.
    #[error("read policy file {path}")]
    Read {
        /// The file.
        path: PathBuf,
        /// The cause.
        #[source]
        source: io::Error,
    },
}

/// One thing in a policy file that is not accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyProblem {
    /// Line, from 1; 0 for the file as a whole.
    pub line: u32,
    /// Column, from 1.
    pub column: u32,
    /// The dotted path of the field; empty for the file as a whole.
    pub field: String,
    /// What stands there.
    pub found: String,
    /// What would be accepted.
    pub accepted: String,
}

impl fmt::Display for PolicyProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.line > 0 {
            write!(f, "{}:{}: ", self.line, self.column)?;
        }
        if !self.field.is_empty() {
            write!(f, "{}: ", self.field)?;
        }
        write!(f, "found {}; accepted: {}", self.found, self.accepted)
    }
}

fn lines(path: &Path, problems: &[PolicyProblem]) -> String {
    let name = path.display();
    let lines: Vec<String> = problems
        .iter()
        .map(|problem| match problem.line {
            0 => format!("{name}: {problem}"),
            _ => format!("{name}:{problem}"),
        })
        .collect();
    lines.join("\n")
}
