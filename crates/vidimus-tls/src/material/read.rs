//! Reading the files: bounded, and `..data` resolved once, so that one read sees one version.

use std::fs::OpenOptions;
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use rustix::fs::OFlags;
use rustls_pki_types::CertificateDer;
use vidimus_x509::pem;
use zeroize::Zeroizing;

use super::{
    Identity, IdentityError, MaterialFiles, MaterialSource, RevocationCheck, RevocationGap,
    RevocationOptions, Trust, TrustError, Usage,
};
use crate::identity::Fingerprint;

/// A certificate with its chain is a few kilobytes.
const MAX_CERTIFICATE: u64 = 1024 * 1024;
/// An RSA 8192 key is about 6 kB of PEM.
const MAX_KEY: u64 = 64 * 1024;
/// What the PEM reader takes; a whole public web PKI bundle is a quarter of a megabyte.
pub(crate) const MAX_CA: u64 = pem::MAX_TEXT as u64;
/// What the PEM reader takes; a list of a million certificates is about 60 MB.
const MAX_CRL: u64 = pem::MAX_CRL_TEXT as u64;
/// How often a read is begun again because `..data` moved on meanwhile.
pub(crate) const MAX_SWAPS: usize = 8;

/// Something that is so of either unit or isn't.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Units {
    pub(crate) identity: bool,
    pub(crate) trust: bool,
}

impl Units {
    pub(crate) const BOTH: Self = Self {
        identity: true,
        trust: true,
    };

    pub(crate) fn any(self) -> bool {
        self.identity || self.trust
    }

    pub(crate) fn and(self, other: Self) -> Self {
        Self {
            identity: self.identity && other.identity,
            trust: self.trust && other.trust,
        }
    }

    pub(crate) fn or(self, other: Self) -> Self {
        Self {
            identity: self.identity || other.identity,
            trust: self.trust || other.trust,
        }
    }

    pub(crate) fn except(self, other: Self) -> Self {
        Self {
            identity: self.identity && !other.identity,
            trust: self.trust && !other.trust,
        }
    }
}

/// One file's bytes, or why there are none. Equal if a second read gave the same.
pub(crate) struct Content(Result<Zeroizing<Vec<u8>>, io::Error>);

impl Content {
    fn is_absent(&self) -> bool {
        let absent = |error: &io::Error| error.kind() == io::ErrorKind::NotFound;
        self.0.as_ref().is_err_and(absent)
    }

    /// Reads a file of at most `max` bytes.
    pub(crate) fn read(path: &Path, max: u64) -> Self {
        Self(read_bounded(path, max))
    }

    pub(crate) fn bytes(&self) -> io::Result<&[u8]> {
        match &self.0 {
            Ok(bytes) => Ok(bytes),
            Err(error) => Err(copy_of(error)),
        }
    }
}

impl PartialEq for Content {
    fn eq(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (Ok(one), Ok(two)) => one == two,
            (Err(one), Err(two)) => one.kind() == two.kind(),
            _ => false,
        }
    }
}

/// One read of the files. `Debug` is left out on purpose: it holds a key.
pub(crate) struct Snapshot {
    projected: Units,
    certificate: Content,
    key: Content,
    ca: Content,
    /// `None` if no lists are looked for.
    crl: Option<Content>,
}

impl Snapshot {
    /// Asks the source once.
    pub(crate) fn of(source: &MaterialSource) -> Self {
        match source.read() {
            None => Self::read(source.files()),
            Some(Ok(bytes)) => Self {
                projected: Units::BOTH,
                certificate: Content(Ok(bytes.certificate.into())),
                key: Content(Ok(bytes.key.into())),
                ca: Content(Ok(bytes.ca.into())),
                crl: bytes.crl.map(|crl| Content(Ok(crl.into()))),
            },
            Some(Err(error)) => {
                let failed = || Content(Err(io::Error::other(error.to_string())));
                Self {
                    projected: Units::BOTH,
                    certificate: failed(),
                    key: failed(),
                    ca: failed(),
                    crl: Some(failed()),
                }
            }
        }
    }

    /// Reads the files once. What goes wrong is kept per file, for the unit that it belongs to.
    pub(crate) fn read(files: &MaterialFiles) -> Self {
        let mut links = Links::of(&files.directories());
        let mut snapshot = Self::through(&links, files);
        for _ in 0..MAX_SWAPS {
            let now = Links::of(&files.directories());
            // A `..data` folder is removed soon after the swap; a file that vanished under us is read again in the new one.
            if snapshot.is_complete() || links == now {
                break;
            }
            links = now;
            snapshot = Self::through(&links, files);
        }
        snapshot
    }

    fn through(links: &Links, files: &MaterialFiles) -> Self {
        let [certificate, key, ca] = files.paths().map(|path| links.place_of(path));
        let crl = files.crl.as_deref().map(|path| links.place_of(path));
        let crl = crl.map(|(path, projected)| (Content(read_bounded(&path, MAX_CRL)), projected));
        // A file that isn't there is written by nobody.
        let is_written =
            |(content, projected): &(Content, bool)| !projected && !content.is_absent();
        Self {
            projected: Units {
                identity: certificate.1 && key.1,
                trust: ca.1 && !crl.as_ref().is_some_and(is_written),
            },
            certificate: Content(read_bounded(&certificate.0, MAX_CERTIFICATE)),
            key: Content(read_bounded(&key.0, MAX_KEY)),
            ca: Content(read_bounded(&ca.0, MAX_CA)),
            crl: crl.map(|(content, _)| content),
        }
    }

    fn is_complete(&self) -> bool {
        let crl = self.crl.as_ref().is_none_or(|crl| crl.0.is_ok());
        crl && self.certificate.0.is_ok() && self.key.0.is_ok() && self.ca.0.is_ok()
    }

    /// Which units come through a `..data` symlink that is swapped by rename, so that each version is complete when it
    /// appears. Of the others at least one file may be read while somebody writes it.
    pub(crate) fn projected(&self) -> Units {
        self.projected
    }

    /// Tells one version of certificate and key from another without keeping the key.
    pub(crate) fn identity_digest(&self) -> Option<[Fingerprint; 2]> {
        match (&self.certificate.0, &self.key.0) {
            (Ok(certificate), Ok(key)) => {
                Some([Fingerprint::of(certificate), Fingerprint::of(key)])
            }
            _ => None,
        }
    }

    /// Tells one version of roots and revocation lists from another.
    pub(crate) fn trust_digest(&self) -> Option<(Fingerprint, Option<Fingerprint>)> {
        let ca = self.ca.0.as_ref().ok()?;
        let crl = match &self.crl {
            Some(Content(Ok(crl))) => Some(Fingerprint::of(crl)),
            Some(content) if !content.is_absent() => return None,
            Some(_) | None => None,
        };
        Some((Fingerprint::of(ca), crl))
    }

    /// Whether there is a file with revocation lists, whatever is in it.
    pub(crate) fn has_lists(&self) -> bool {
        self.crl
            .as_ref()
            .is_some_and(|content| !content.is_absent())
    }

    /// The certificate and key of this read, checked.
    pub(crate) fn identity(
        &self,
        files: &MaterialFiles,
        usage: Usage,
        now: SystemTime,
    ) -> Result<Identity, IdentityError> {
        fn bytes<'a>(content: &'a Content, path: &Path) -> Result<&'a [u8], IdentityError> {
            match &content.0 {
                Ok(bytes) => Ok(bytes),
                Err(error) => Err(IdentityError::Read {
                    path: path.to_path_buf(),
                    source: copy_of(error),
                }),
            }
        }
        let certificate = bytes(&self.certificate, &files.certificate)?;
        let key = bytes(&self.key, &files.key)?;
        Identity::parse(certificate, &files.certificate, key, &files.key, usage, now)
    }

    /// The roots and revocation lists of this read, checked.
    pub(crate) fn trust(
        &self,
        files: &MaterialFiles,
        context: TrustContext<'_>,
        now: SystemTime,
    ) -> Result<Trust, TrustError> {
        fn unread(path: &Path, error: &io::Error) -> TrustError {
            TrustError::Read {
                path: path.to_path_buf(),
                source: copy_of(error),
            }
        }
        let ca = self
            .ca
            .0
            .as_ref()
            .map_err(|error| unread(&files.ca, error))?;
        let trust = Trust::parse(ca, &files.ca, now)?;
        let options = context.revocation.decided(self.has_lists());
        let trust = match (&self.crl, &files.crl) {
            _ if options.check() == RevocationCheck::Off => trust,
            (Some(Content(Ok(text))), Some(path)) => {
                trust.with_lists(text, path, options, context.own, now)?
            }
            // At the start there must be something to go by; afterwards what was there stays in use.
            (Some(content), _)
                if content.is_absent()
                    && (context.previous.is_some() || options.missing == RevocationGap::Accept) =>
            {
                trust.without_lists(options)
            }
            (Some(Content(Err(error))), Some(path)) => return Err(unread(path, error)),
            (None, path)
                if context.previous.is_none() && options.missing == RevocationGap::Refuse =>
            {
                let path = path.as_deref().unwrap_or_else(|| Path::new("crl.pem"));
                return Err(unread(path, &io::ErrorKind::NotFound.into()));
            }
            (_, _) => trust.without_lists(options),
        };
        Ok(match context.previous {
            Some(previous) => trust.after(previous, context.own),
            None => trust,
        })
    }
}

/// What trust is judged in the light of.
#[derive(Clone, Copy, Default)]
pub(crate) struct TrustContext<'a> {
    pub(crate) revocation: RevocationOptions,
    /// The process's own chain: its CAs may have signed lists.
    pub(crate) own: &'a [CertificateDer<'static>],
    /// What is in use.
    pub(crate) previous: Option<&'a Trust>,
}

/// `io::Error` is not `Clone`; kind and text are what a message needs.
fn copy_of(error: &io::Error) -> io::Error {
    match error.raw_os_error() {
        Some(code) => io::Error::from_raw_os_error(code),
        None => io::Error::new(error.kind(), error.to_string()),
    }
}

/// Where each folder's `..data` pointed when the read began.
#[derive(PartialEq, Eq)]
pub(crate) struct Links(Vec<(PathBuf, PathBuf)>);

impl Links {
    pub(crate) fn of(directories: &[PathBuf]) -> Self {
        let targets = directories.iter().filter_map(|directory| {
            let target = std::fs::read_link(directory.join("..data")).ok()?;
            Some((directory.clone(), target))
        });
        Self(targets.collect())
    }

    /// Where to read the file, and whether that is in a version which is complete.
    pub(crate) fn place_of(&self, path: &Path) -> (PathBuf, bool) {
        match self.resolve(path) {
            Some(place) => (place, true),
            None => (path.to_path_buf(), false),
        }
    }

    /// The file's place in the version that `..data` pointed to, if the file is a link through `..data`.
    fn resolve(&self, path: &Path) -> Option<PathBuf> {
        let directory = path.parent()?;
        let (_, target) = self.0.iter().find(|(known, _)| known == directory)?;
        let link = std::fs::read_link(path).ok()?;
        let inside = link.strip_prefix("..data").ok()?;
        Some(directory.join(target).join(inside))
    }
}

fn read_bounded(path: &Path, max: u64) -> io::Result<Zeroizing<Vec<u8>>> {
    // Not to wait for the writer of a FIFO, which may never come. Regular files don't care.
    let flags = OFlags::NONBLOCK.bits().cast_signed();
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(flags)
        .open(path)?;
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "not a regular file",
        ));
    }
    // Room for the whole file at once: a vector that grows leaves copies of a key behind in freed memory.
    let room = usize::try_from(metadata.len().min(max).saturating_add(1)).unwrap_or(0);
    let mut bytes = Zeroizing::new(Vec::with_capacity(room));
    file.take(max.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > max {
        return Err(io::Error::new(
            io::ErrorKind::FileTooLarge,
            format!("larger than {max} bytes"),
        ));
    }
    Ok(bytes)
}
