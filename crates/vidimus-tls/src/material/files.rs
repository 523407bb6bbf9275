//! The names of the files.

use std::ffi::OsStr;
use std::path::{Component, Path, PathBuf};

/// As many as Linux follows.
const MAX_LINKS: usize = 40;

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

    /// The folders that the files are named in, each once.
    pub(crate) fn directories(&self) -> Vec<PathBuf> {
        directories_of(self.paths().into_iter().chain(self.crl.as_deref()))
    }

    /// The folders to watch, each once.
    pub(crate) fn folders_to_watch(&self) -> Vec<PathBuf> {
        folders_to_watch(self.paths().into_iter().chain(self.crl.as_deref()))
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

/// The folders where a change can change what these paths lead to, each once and free of links: those that hold a link on
/// the way, and the one that the way ends in. Where that isn't there, the one above it too, to see it come.
pub(crate) fn folders_to_watch<'a>(paths: impl IntoIterator<Item = &'a Path>) -> Vec<PathBuf> {
    let mut folders = Vec::new();
    for path in paths {
        walk(path, |folder| {
            if !folders.iter().any(|known| known == folder) {
                folders.push(folder.to_path_buf());
            }
        });
    }
    folders
}

fn walk(path: &Path, mut found: impl FnMut(&Path)) {
    let Ok(path) = std::path::absolute(path) else {
        return;
    };
    // Where the way has led so far, free of links, and what is ahead, the next step last.
    let mut at = PathBuf::new();
    let mut ahead = steps(&path);
    let mut links: usize = 0;
    while let Some(step) = ahead.pop() {
        if step.as_os_str() == OsStr::new("..") {
            at.pop();
            continue;
        }
        // The root replaces what is before it.
        let next = at.join(step);
        match std::fs::read_link(&next) {
            Ok(target) if links < MAX_LINKS => {
                links = links.saturating_add(1);
                found(&at);
                ahead.extend(steps(&target));
            }
            Ok(_) | Err(_) => at = next,
        }
    }
    let Some(folder) = at.parent() else {
        return;
    };
    // A version behind `..data`: nothing changes in it, and it is gone after the next swap.
    let name = folder.file_name().unwrap_or_default();
    if links > 0 && name.as_encoded_bytes().starts_with(b"..") {
        return;
    }
    found(folder);
    if let Some(above) = folder.ancestors().find(|above| above.exists()) {
        found(above);
    }
}

/// The steps of a path, the first last.
fn steps(path: &Path) -> Vec<PathBuf> {
    let steps = path.components().rev();
    let steps = steps.filter(|step| !matches!(step, Component::CurDir));
    steps.map(|step| PathBuf::from(step.as_os_str())).collect()
}
