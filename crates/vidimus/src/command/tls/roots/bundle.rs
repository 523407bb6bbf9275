//! A folder's `ca.crt`: read whole, checked whole, written whole.

use std::{fs, io::ErrorKind, os::unix::fs::PermissionsExt as _, path::Path};

use anyhow::{Context as _, bail};
use vidimus_fs::{Mode, bundle::Turn, durable, read};
use vidimus_tls::{
    identity::Fingerprint,
    material::{MaterialFiles, Root, Trust},
};
use vidimus_x509::pem;
use zeroize::Zeroizing;

use super::now;
use crate::{exit::Stop, output};

/// As much as programs read of their roots.
const MAX_ROOTS: u64 = pem::MAX_TEXT as u64;
/// As much as programs read of the largest file of a folder, its revocation lists.
const MAX_OTHER: u64 = pem::MAX_CRL_TEXT as u64;
const BEGIN: &str = "-----BEGIN ";
const END: &str = "-----END ";

/// How a folder's files are laid out, which decides how one of them is changed.
enum Layout {
    /// Files, or links to files elsewhere as certbot makes them.
    Plain,
    /// By `vidimus_fs::bundle`: one generation of all files behind `..data`.
    Published,
    /// By the kubelet, which would put its own content back.
    Mounted,
}

fn layout(folder: &Path) -> anyhow::Result<Layout> {
    match fs::read_link(folder.join("..data")) {
        Ok(to) if to.to_string_lossy().starts_with("..generation-") => Ok(Layout::Published),
        Ok(_) => Ok(Layout::Mounted),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(Layout::Plain),
        Err(error) => Err(error).with_context(|| format!("look into {}", folder.display())),
    }
}

/// Publishes the folder's files anew, with another `ca.crt`.
fn republish(turn: &Turn, folder: &Path, ca: &[u8]) -> anyhow::Result<()> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder.join("..data"))? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let private = entry.metadata()?.permissions().mode() & 0o077 == 0;
        let mode = if private { Mode::Private } else { Mode::Public };
        let content = Zeroizing::new(if name == "ca.crt" {
            ca.to_vec()
        } else {
            read::bounded(entry.path(), MAX_OTHER)?
        });
        files.push((name, content, mode));
    }
    let files: Vec<(&str, &[u8], Mode)> = files
        .iter()
        .map(|(name, content, mode)| (name.as_str(), content.as_slice(), *mode))
        .collect();
    Ok(turn.publish(&files)?)
}

/// The roots of a folder.
pub(super) struct Bundle {
    pub(super) files: MaterialFiles,
    pub(super) trust: Trust,
    text: Vec<u8>,
}

impl Bundle {
    /// Reads the folder's `ca.crt`.
    pub(super) fn read(folder: &Path) -> anyhow::Result<Self> {
        let files = MaterialFiles::in_dir(folder);
        let (text, trust) = roots(&files.ca)?;
        Ok(Self { files, trust, text })
    }

    /// Whether both were read from the same content.
    pub(super) fn is_as(&self, other: &Self) -> bool {
        self.text == other.text
    }

    /// The root that a person means by a fingerprint, the beginning of one, or a subject.
    pub(super) fn find(&self, wanted: &str) -> anyhow::Result<&Root> {
        let digits: String = wanted.chars().filter(|c| *c != ':').collect();
        let digits = digits.to_ascii_lowercase();
        let meant = |root: &&Root| {
            root.subject() == wanted || root.fingerprint().to_string().starts_with(&digits)
        };
        let found: Vec<&Root> = self.trust.roots().iter().filter(meant).collect();
        match found.as_slice() {
            [root] => Ok(root),
            [] => Err(Stop::failure(format!(
                "no root {wanted:?} in {}; it has {}",
                self.files.ca.display(),
                listed(self.trust.roots())
            ))),
            several => Err(Stop::failure(format!(
                "{wanted:?} may be any of {}; give more of the fingerprint",
                listed(several.iter().copied())
            ))),
        }
    }

    /// Writes the bundle with these roots behind the present ones, in the turn that it was read in.
    pub(super) fn write_with(&self, turn: &Turn, more: &[Vec<u8>]) -> anyhow::Result<()> {
        let mut text = self.text.clone();
        if !text.ends_with(b"\n") {
            text.push(b'\n');
        }
        for der in more {
            text.extend_from_slice(pem::encode("CERTIFICATE", der).as_bytes());
        }
        self.write(turn, &text)
    }

    /// Writes the bundle without a root, in the turn that it was read in; what stands between the other blocks stays.
    pub(super) fn write_without(&self, turn: &Turn, root: Fingerprint) -> anyhow::Result<()> {
        let ders = pem::certificates(&self.text)?;
        let stays = |der: &[u8]| Fingerprint::of(der) != root;
        let kept: Vec<&[u8]> = ders
            .iter()
            .map(Vec::as_slice)
            .filter(|der| stays(der))
            .collect();
        let flags: Vec<bool> = ders.iter().map(|der| stays(der)).collect();
        let text = match cut(&self.text, &flags) {
            Some(text) if pem::certificates(text.as_bytes()).is_ok_and(|left| left == kept) => text,
            // Laid out in a way that is not to be cut by lines: the blocks alone.
            _ => kept
                .iter()
                .map(|der| pem::encode("CERTIFICATE", der))
                .collect(),
        };
        self.write(turn, text.as_bytes())
    }

    /// Nothing is written that a program would refuse to load.
    fn write(&self, turn: &Turn, text: &[u8]) -> anyhow::Result<()> {
        Trust::from_pem(text, now()).context("check the new ca.crt")?;
        let written = match layout(self.folder())? {
            Layout::Plain => {
                let target = fs::canonicalize(&self.files.ca)?;
                durable::write(&target, text, Mode::Public).map_err(anyhow::Error::from)
            }
            Layout::Published => republish(turn, self.folder(), text),
            Layout::Mounted => Err(self.mounted()),
        };
        written.with_context(|| format!("change {}", self.files.ca.display()))
    }

    /// Refuses a folder whose files are not its own: they would be put back, or can't be written at all.
    pub(super) fn require_own_files(&self) -> anyhow::Result<()> {
        match layout(self.folder())? {
            Layout::Plain | Layout::Published => Ok(()),
            Layout::Mounted => Err(self.mounted()),
        }
    }

    /// Says what a new CA's certificates need beside its root where there are revocation lists.
    pub(super) fn note_lists(&self) {
        let Some(crl) = self.files.crl.as_ref().filter(|crl| crl.exists()) else {
            return;
        };
        output::note(&format!(
            "{} is there: before anything is issued under the new root, add the list of the CA that issues it, or programs \
             that check lists refuse what it issues",
            crl.display()
        ));
    }

    fn mounted(&self) -> anyhow::Error {
        Stop::failure(format!(
            "{} is mounted from a Kubernetes Secret or ConfigMap, and a change here would be lost; change ca.crt in the \
             Secret itself, and the programs that mount it follow",
            self.folder().display()
        ))
    }

    fn folder(&self) -> &Path {
        self.files.ca.parent().unwrap_or_else(|| Path::new("."))
    }
}

/// The certificates in a file, as text and checked.
pub(super) fn roots(path: &Path) -> anyhow::Result<(Vec<u8>, Trust)> {
    let text = read::bounded(path, MAX_ROOTS)?;
    let trust =
        Trust::from_pem(&text, now()).with_context(|| format!("check {}", path.display()))?;
    Ok((text, trust))
}

/// The certificates in a file to be added: each must be able to verify somebody now.
pub(super) fn new_roots(path: &Path) -> anyhow::Result<Vec<Vec<u8>>> {
    let (text, trust) = roots(path)?;
    for root in trust.roots() {
        if let Some(fault) = root.fault() {
            bail!(
                "{:?} in {} is no root: {fault}",
                root.subject(),
                path.display()
            );
        }
        if !root.is_valid_at(now()) {
            bail!(
                "{:?} in {} is valid from {} to {}, which is not now",
                root.subject(),
                path.display(),
                vidimus_tls::clock::rfc3339(root.not_before()),
                vidimus_tls::clock::rfc3339(root.not_after()),
            );
        }
    }
    Ok(pem::certificates(&text)?)
}

fn listed<'a>(roots: impl IntoIterator<Item = &'a Root>) -> String {
    let all = roots.into_iter().map(|root| {
        let fingerprint = super::page::short(&root.fingerprint().to_string());
        format!("{fingerprint} ({})", root.subject())
    });
    all.collect::<Vec<String>>().join(", ")
}

/// The text without the lines of the blocks whose flag is false; `None` if lines and blocks don't go together.
fn cut(text: &[u8], stays: &[bool]) -> Option<String> {
    let text = std::str::from_utf8(text).ok()?;
    let (mut kept, mut block, mut inside) = (String::new(), 0_usize, false);
    for line in text.split_inclusive('\n') {
        if line.contains(BEGIN) {
            inside = true;
        }
        if !inside || *stays.get(block)? {
            kept.push_str(line);
        }
        if line.contains(END) {
            inside = false;
            block = block.saturating_add(1);
        }
    }
    (block == stays.len()).then_some(kept)
}
