//! How a listener protects its connections, decided once at start and closed by default.
//!
//! All three files: mutual TLS. None of them and the operator's own word in the environment: plaintext, loudly.
//! Everything else ends the start with a text that says what to do. The directory, the variable and that text belong to
//! the program; the decision is the same for all.

mod alarm;

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};

pub use alarm::{AlarmDriver, PlaintextAlarm, watch_for_material};

use crate::material::MaterialFiles;

/// What a program's TLS decision depends on.
#[derive(Clone, Debug)]
pub struct PostureRule {
    /// Where `tls.crt`, `tls.key` and `ca.crt` are looked for.
    pub directory: PathBuf,
    /// The environment variable whose value `true` asks for plaintext.
    pub variable: &'static str,
    /// The whole error text for "no files and no opt-out", made from the directory.
    pub missing: fn(&Path) -> String,
}

/// Proof that the operator asked for plaintext. Only [`Posture::resolve`] makes one.
#[derive(Clone, Debug)]
pub struct ExplicitOptOut {
    variable: &'static str,
    directory: PathBuf,
}

impl ExplicitOptOut {
    /// The variable that was set to `true`.
    #[must_use]
    pub fn variable(&self) -> &'static str {
        self.variable
    }

    /// The directory in which none of the three files was found.
    #[must_use]
    pub fn directory(&self) -> &Path {
        &self.directory
    }
}

/// How a listener protects its connections.
#[derive(Clone, Debug)]
pub enum Posture {
    /// Mutual TLS from these files.
    Mutual(MaterialFiles),
    /// No TLS and no authentication, because the operator said so.
    Plaintext(ExplicitOptOut),
    /// A UNIX socket: no TLS, the kernel's peer credentials instead.
    Local,
}

/// Why no posture could be taken. Each of these ends the start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PostureError {
    /// None of the files is there and nobody asked for plaintext. The text is the program's own.
    #[error("{text}")]
    Missing {
        /// The rule's text for its directory.
        text: String,
    },
    /// Some of the files are there and some are not: half a roll-out must not become plaintext.
    #[error(
        "TLS material in {} is partially present, missing: {}",
        directory.display(),
        joined(missing)
    )]
    Partial {
        /// Where the files were looked for.
        directory: PathBuf,
        /// The absolute paths of the files that are missing, in the order certificate, key, CA.
        missing: Vec<PathBuf>,
    },
    /// Whether the file is there could not be found out; only "not found" counts as absent.
    #[error("cannot tell whether {} exists", path.display())]
    Inspect {
        /// The file that was asked about.
        path: PathBuf,
        /// What the system answered.
        #[source]
        source: io::Error,
    },
}

impl Posture {
    /// Decides by the files under `rule.directory` and by `value`, the variable's value if it is set.
    ///
    /// A file is present if it is a regular file after following symbolic links; its contents are not looked at here.
    /// The files win over the variable. Only the word `true`, trimmed and in any case, opts out. Plaintext is logged as
    /// a warning marked for the audit.
    ///
    /// # Errors
    ///
    /// [`PostureError::Missing`] without files and without the opt-out, [`PostureError::Partial`] with some of the files
    /// (the opt-out doesn't help then), [`PostureError::Inspect`] if a file's presence cannot be established.
    pub fn resolve(rule: &PostureRule, value: Option<&OsStr>) -> Result<Self, PostureError> {
        let files = MaterialFiles::in_dir(absolute(&rule.directory));
        let mut missing = Vec::new();
        for path in files.paths() {
            if !is_regular_file(path)? {
                missing.push(path.to_path_buf());
            }
        }
        match missing.len() {
            0 => Ok(Self::Mutual(files)),
            3 if is_true(value) => {
                let opt_out = ExplicitOptOut {
                    variable: rule.variable,
                    directory: rule.directory.clone(),
                };
                warn_of_plaintext(&opt_out);
                Ok(Self::Plaintext(opt_out))
            }
            3 => Err(PostureError::Missing {
                text: (rule.missing)(&rule.directory),
            }),
            _ => Err(PostureError::Partial {
                directory: rule.directory.clone(),
                missing,
            }),
        }
    }

    /// The posture's name for logs and status pages: `mutual`, `plaintext` or `local`.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Mutual(_) => "mutual",
            Self::Plaintext(_) => "plaintext",
            Self::Local => "local",
        }
    }
}

/// Whether `value` is the word `true`, trimmed, in any case. `1`, `yes` and text that is not UTF-8 are not.
fn is_true(value: Option<&OsStr>) -> bool {
    value
        .and_then(OsStr::to_str)
        .is_some_and(|text| text.trim().eq_ignore_ascii_case("true"))
}

fn is_regular_file(path: &Path) -> Result<bool, PostureError> {
    match std::fs::metadata(path) {
        Ok(metadata) => Ok(metadata.is_file()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(source) => Err(PostureError::Inspect {
            path: path.to_path_buf(),
            source,
        }),
    }
}

/// `directory` as an absolute path; as it is where the working directory cannot be found out.
fn absolute(directory: &Path) -> PathBuf {
    std::path::absolute(directory).unwrap_or_else(|_| directory.to_path_buf())
}

fn joined(paths: &[PathBuf]) -> String {
    let texts: Vec<String> = paths.iter().map(|p| p.display().to_string()).collect();
    texts.join(", ")
}

fn warn_of_plaintext(opt_out: &ExplicitOptOut) {
    tracing::warn!(
        audit = true,
        posture = "plaintext",
        variable = opt_out.variable,
        directory = %opt_out.directory.display(),
        "serving PLAINTEXT: connections are not encrypted and callers are not authenticated, because the variable is \
         true and the directory has no TLS material"
    );
}
