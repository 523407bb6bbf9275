//! The names of the files.

use std::path::{Path, PathBuf};

/// The files that make up a process's TLS material. Each may be anywhere, and a symlink.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MaterialFiles {
    /// The certificate and the intermediates above it, PEM.
    pub certificate: PathBuf,
    /// The certificate's private key, PEM, unencrypted.
    pub key: PathBuf,
    /// The roots that peers are verified against, PEM.
    pub ca: PathBuf,
    /// Revocation lists, PEM or one in DER; `None` never looks for any. Whether they count is
    /// [`RevocationOptions`](super::RevocationOptions)' to say.
    pub crl: Option<PathBuf>,
}

impl MaterialFiles {
    /// `tls.crt`, `tls.key` and `ca.crt` in `directory`, the names of a Kubernetes TLS Secret, and `crl.pem` where it is.
    #[must_use]
    pub fn in_dir(directory: impl AsRef<Path>) -> Self {
        let directory = directory.as_ref();
        Self {
            certificate: directory.join("tls.crt"),
            key: directory.join("tls.key"),
            ca: directory.join("ca.crt"),
            crl: Some(directory.join("crl.pem")),
        }
    }

    /// Certificate, key and CA, in that order.
    #[must_use]
    pub fn paths(&self) -> [&Path; 3] {
        [&self.certificate, &self.key, &self.ca]
    }

    /// The folders to watch, each once.
    pub(crate) fn directories(&self) -> Vec<PathBuf> {
        directories_of(self.paths().into_iter().chain(self.crl.as_deref()))
    }
}

/// The folders of these files, each once.
pub(crate) fn directories_of<'a>(paths: impl IntoIterator<Item = &'a Path>) -> Vec<PathBuf> {
    let mut directories = Vec::new();
    for path in paths {
        let directory = match path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent.to_path_buf(),
            _ => PathBuf::from("."),
        };
        if !directories.contains(&directory) {
            directories.push(directory);
        }
    }
    directories
}
