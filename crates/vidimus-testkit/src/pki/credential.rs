//! A leaf's chain with its key, and the files that hold them.

use std::{fmt, fs, path::Path};

use super::{Authority, pem};
use crate::kubelet::Volume;

/// A certificate chain, leaf first and without the root, with the leaf's key.
pub struct Credential {
    chain: Vec<Vec<u8>>,
    key_pem: String,
    key_der: Vec<u8>,
}

impl fmt::Debug for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credential")
            .field("certificates", &self.chain.len())
            .finish_non_exhaustive()
    }
}

impl Credential {
    /// A chain that the test made itself, leaf first.
    #[must_use]
    pub fn new(chain: Vec<Vec<u8>>, key: &rcgen::KeyPair) -> Self {
        Self {
            chain,
            key_pem: key.serialize_pem(),
            key_der: key.serialize_der(),
        }
    }

    /// The leaf.
    ///
    /// # Panics
    ///
    /// Never: a credential holds at least its leaf.
    #[must_use]
    pub fn leaf_der(&self) -> &[u8] {
        self.chain
            .first()
            .expect("a credential holds at least its leaf")
    }

    /// The leaf and the CAs above it, without the root.
    #[must_use]
    pub fn chain_der(&self) -> &[Vec<u8>] {
        &self.chain
    }

    /// The chain as PEM: the content of `tls.crt`.
    #[must_use]
    pub fn chain_pem(&self) -> String {
        pem(&self.chain)
    }

    /// The key as PKCS#8 PEM: the content of `tls.key`.
    #[must_use]
    pub fn key_pem(&self) -> &str {
        &self.key_pem
    }

    /// The key as PKCS#8 DER.
    #[must_use]
    pub fn key_der(&self) -> &[u8] {
        &self.key_der
    }

    /// The three files by name, with `roots` as `ca.crt`.
    #[must_use]
    pub fn files(&self, roots: &[&Authority]) -> [(&'static str, String); 3] {
        let trust = roots.iter().map(|root| root.pem()).collect();
        [
            ("tls.crt", self.chain_pem()),
            ("tls.key", self.key_pem.clone()),
            ("ca.crt", trust),
        ]
    }

    /// Writes `tls.crt`, `tls.key` and `ca.crt` as plain files, each replaced by a rename.
    ///
    /// # Panics
    ///
    /// When a file cannot be written.
    pub fn write_dir(&self, dir: &Path, roots: &[&Authority]) {
        fs::create_dir_all(dir).expect("the folder for the material");
        for (name, content) in self.files(roots) {
            replace(&dir.join(name), content.as_bytes());
        }
    }

    /// Writes the three files as the kubelet mounts a Secret; the volume swaps to later content.
    ///
    /// # Panics
    ///
    /// When a file cannot be written.
    #[must_use]
    pub fn write_volume(&self, dir: &Path, roots: &[&Authority]) -> Volume {
        Volume::create(dir, &self.files(roots))
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "a test's files need not survive a crash"
)]
fn replace(path: &Path, content: &[u8]) {
    let mut temporary = path.as_os_str().to_owned();
    temporary.push(".new");
    fs::write(&temporary, content).expect("a temporary file beside the target");
    fs::rename(&temporary, path).expect("the rename over the target");
}
