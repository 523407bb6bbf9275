//! What a process proves itself with and whom it trusts: one certificate with its key, and a set of roots.
//!
//! The two are units of their own. Each is read, checked and replaced whole, and a fault in one never delays the other.

#![warn(clippy::indexing_slicing, clippy::arithmetic_side_effects)]

mod error;
mod files;
mod identity;
mod read;
mod revocation;
mod source;
mod trust;

use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

pub(crate) use error::error_chain;
pub use error::{IdentityError, MaterialError, TrustError};
pub use files::MaterialFiles;
pub(crate) use files::{directories_of, folders_to_watch};
pub use identity::Identity;
pub(crate) use read::{Content, Links, MAX_CA, MAX_SWAPS, Snapshot, TrustContext, Units};
pub(crate) use revocation::{Issuer, Revocation};
pub use revocation::{RevocationCheck, RevocationGap, RevocationListInfo, RevocationOptions};
pub use source::{MaterialBytes, MaterialSource};
pub use trust::{Root, Trust};

/// What the process does with its certificate, which decides the extended key usages it must have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Usage {
    /// It serves and connects with the same certificate.
    Both,
    /// It connects.
    Client,
    /// It serves.
    Server,
}

/// One consistent state of identity and trust, with the number that tells it from earlier ones. Immutable.
#[derive(Clone, Debug)]
pub struct Material {
    generation: u64,
    identity: Arc<Identity>,
    trust: Arc<Trust>,
}

impl Material {
    /// Reads the files once and checks them; revocation lists too, if there are any.
    ///
    /// For a look at files that nobody is writing, such as a check on the command line; a running process uses
    /// [`crate::watch::MaterialWatch`], which also waits for a writer to finish.
    ///
    /// # Errors
    ///
    /// The first fault of the identity or of the trust, with the file it is in.
    pub fn load(
        files: &MaterialFiles,
        usage: Usage,
        now: SystemTime,
    ) -> Result<Self, MaterialError> {
        let snapshot = Snapshot::read(files);
        let identity = snapshot.identity(files, usage, now)?;
        let context = TrustContext {
            own: identity.chain(),
            ..TrustContext::default()
        };
        let trust = snapshot.trust(files, context, now)?;
        Ok(Self::new(1, Arc::new(identity), Arc::new(trust)))
    }

    /// Puts an identity and a trust made elsewhere together as generation 1.
    #[must_use]
    pub fn of(identity: Identity, trust: Trust) -> Self {
        Self::new(1, Arc::new(identity), Arc::new(trust))
    }

    pub(crate) fn new(generation: u64, identity: Arc<Identity>, trust: Arc<Trust>) -> Self {
        Self {
            generation,
            identity,
            trust,
        }
    }

    /// Starts at 1 and grows by one with every change that is taken into use.
    #[must_use]
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// The certificate, its chain and its key.
    #[must_use]
    pub fn identity(&self) -> &Arc<Identity> {
        &self.identity
    }

    /// The roots that peers are verified against.
    #[must_use]
    pub fn trust(&self) -> &Arc<Trust> {
        &self.trust
    }
}

/// `path` for messages about material that did not come from a file.
pub(crate) const MEMORY: &str = "memory";

/// The path that stands for material given as bytes.
pub(crate) fn memory() -> &'static Path {
    Path::new(MEMORY)
}
