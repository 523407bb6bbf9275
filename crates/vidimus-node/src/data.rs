//! The data directory: which file is where. Private to its owner, used by one process at a time.

use std::path::{Path, PathBuf};

use aws_lc_rs::rand::SystemRandom;
use vidimus_audit::seed::{AuditSeed, SeedError};
use vidimus_fs::{
    Mode,
    durable::{self, WriteError},
    read::{self, ReadError},
};
use zeroize::Zeroizing;

/// Files of a few lines.
const MAX_SMALL_FILE: u64 = 64 * 1024;

/// A node's data directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DataDir(PathBuf);

impl DataDir {
    /// The data directory at this path; nothing is touched.
    #[must_use]
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self(path.into())
    }

    /// The directory itself.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// The database: certificates, audit log, config, identities.
    #[must_use]
    pub fn database(&self) -> PathBuf {
        self.0.join("vidimus.db")
    }

    /// The folder of the audit log's daily files.
    #[must_use]
    pub fn audit_files(&self) -> PathBuf {
        self.0.join("audit")
    }

    /// The file that the audit log's signing key comes from.
    #[must_use]
    pub fn audit_seed(&self) -> PathBuf {
        self.0.join("audit.seed")
    }

    /// The name of the file with the encrypted key of the `number`th CA identity, from 1.
    #[must_use]
    pub fn ca_key_name(number: usize) -> String {
        format!("ca-{number}.key")
    }

    /// The folder with the administrator's `tls.crt`, `tls.key` and `ca.crt`.
    #[must_use]
    pub fn admin(&self) -> PathBuf {
        self.0.join("admin")
    }

    /// The public key that the audit log's signatures are checked with, in hex.
    #[must_use]
    pub fn audit_public_key(&self) -> PathBuf {
        self.0.join("audit.pub")
    }

    /// Where the running node listens, as JSON.
    #[must_use]
    pub fn endpoints(&self) -> PathBuf {
        self.0.join("endpoints.json")
    }

    /// The admin endpoint's UNIX socket.
    #[must_use]
    pub fn admin_socket(&self) -> PathBuf {
        self.0.join("admin.sock")
    }

    /// A small file's text, or `None` if there is no such file.
    pub(crate) fn read_small(path: &Path) -> Result<Option<Zeroizing<String>>, ReadError> {
        match read::bounded(path, MAX_SMALL_FILE) {
            Ok(bytes) => Ok(Some(Zeroizing::new(
                String::from_utf8_lossy(&bytes).into_owned(),
            ))),
            Err(ReadError::NotFound { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The seed of the audit log's key; made if there is none and `create` says so.
    pub(crate) fn audit_seed_or(&self, missing: Missing) -> Result<AuditSeed, AuditSeedError> {
        let path = self.audit_seed();
        if let Some(text) = Self::read_small(&path)? {
            return AuditSeed::from_hex(&text)
                .map_err(|source| AuditSeedError::Parse { path, source });
        }
        match missing {
            Missing::Create => {
                let seed = AuditSeed::generate(&SystemRandom::new())
                    .map_err(|source| AuditSeedError::Generate { source })?;
                durable::create_new(&path, seed.to_hex().as_bytes(), Mode::Private)?;
                Ok(seed)
            }
            Missing::Refuse => Err(AuditSeedError::Missing { path }),
        }
    }
}

/// What to do about a file that isn't there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Missing {
    /// Make it: the first start.
    Create,
    /// Refuse: it must have been lost.
    Refuse,
}

/// Why there is no seed for the audit log.
#[derive(Debug, thiserror::Error)]
pub enum AuditSeedError {
    /// No random bytes.
    #[error("make the audit log's seed")]
    Generate {
        /// Why.
        #[source]
        source: SeedError,
    },
    /// It was there once: entries signed with it are in the log.
    #[error(
        "{path} is missing; without it the audit log cannot be continued: restore it from the backup"
    )]
    Missing {
        /// The file.
        path: PathBuf,
    },
    /// The file holds something else.
    #[error("read the seed in {path}")]
    Parse {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        #[source]
        source: SeedError,
    },
    /// The file can't be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The file can't be written.
    #[error(transparent)]
    Write(#[from] WriteError),
}
