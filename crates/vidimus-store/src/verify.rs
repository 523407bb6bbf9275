//! Checking a log offline: a folder of daily files, one file, or a store.
//!
//! In a store, the certificates are checked too: each must be the one that its audit entry tells
//! of, and each entry of an issuance must have its certificate.

use std::fmt;
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};

use vidimus_audit::entry::sha256_hex;
use vidimus_audit::verify::{Broken, ReadLogError, Verified, Verifier};
use vidimus_audit::{AuditPublicKey, Entry, Head};

use crate::certificate::{Cursor, IssuedCertificate, detail};
use crate::error::{OpenError, StoreError};
use crate::export::{ExportError, place};
use crate::reader::Reader;
use crate::store::Store;

/// How many rows are read at a time: no read holds up the writer of a store that is in use.
const PAGE: u32 = 1000;

/// What a check found. A bad log is a result, not a failure of the check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// An entry is bad; it is the first.
    Broken(Broken),
    /// A certificate of the store does not agree with the log.
    Certificate(CertificateFault),
    /// All is well.
    Intact(Verified),
}

/// A certificate that does not agree with the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CertificateFault {
    /// The number of the audit entry in question.
    pub seq: u64,
    /// The serial number in question, lower-case hex.
    pub serial_hex: String,
    /// What does not agree.
    pub what: &'static str,
}

impl fmt::Display for CertificateFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            seq,
            serial_hex,
            what,
        } = self;
        write!(f, "certificate {serial_hex} (audit entry {seq}): {what}")
    }
}

/// Why a check could not be made.
#[derive(Debug, thiserror::Error)]
pub enum VerifyError {
    /// There is no log at the path: no such file, or a folder without daily files.
    #[error(
        "{path} holds no audit log; accepted: a folder of YYYY-MM-DD.log files, one of them, or a store"
    )]
    NoLog {
        /// The path.
        path: PathBuf,
    },
    /// The folder could not be listed.
    #[error(transparent)]
    List(#[from] ExportError),
    /// The store could not be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// A file could not be read.
    #[error("read {path}")]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// The store could not be read.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Checks what is at `path`: a folder of daily files, from the log's first entry on; one daily
/// file; or a store, by its file. With `expected`, a place of the log that was kept elsewhere, a
/// missing end is found too.
///
/// # Errors
/// [`VerifyError`]: the check could not be made.
pub fn path(
    path: impl AsRef<Path>,
    key: AuditPublicKey,
    expected: Option<Head>,
) -> Result<Verdict, VerifyError> {
    let path = path.as_ref();
    let absent = || VerifyError::NoLog {
        path: path.to_owned(),
    };
    if path.is_dir() {
        let days = place::days(path)?;
        if days.is_empty() {
            return Err(absent());
        }
        let files: Vec<PathBuf> = days.iter().map(|day| place::file_path(path, day)).collect();
        return check_files(&files, expecting(Verifier::new(key), expected));
    }
    if !path.exists() {
        return Err(absent());
    }
    if is_database(path)? {
        return store(&Store::open_read_only(path)?, key, expected);
    }
    check_files(
        &[path.to_owned()],
        expecting(Verifier::excerpt(key), expected),
    )
}

/// Checks an open store, which may be in use. Blocks for as long as it takes.
///
/// # Errors
/// [`StoreError`]: the store could not be read.
pub fn store(
    reader: &Reader,
    key: AuditPublicKey,
    expected: Option<Head>,
) -> Result<Verdict, VerifyError> {
    let mut verifier = expecting(Verifier::new(key), expected);
    let mut certificates = Certificates::new(reader);
    loop {
        let next = verifier.head().seq.saturating_add(1);
        let lines = reader.audit_lines_blocking(next, PAGE)?;
        if lines.is_empty() {
            // The last certificate may have been recorded after the last line was read; but not if
            // there still is no further line.
            let Some(rest) = certificates.peek()? else {
                break;
            };
            if reader.audit_lines_blocking(next, 1)?.is_empty() {
                return Ok(Verdict::Certificate(fault(
                    rest,
                    "its audit entry is missing",
                )));
            }
        }
        for line in lines {
            let entry = match verifier.line(&line.text()) {
                Ok(entry) => entry,
                Err(broken) => return Ok(Verdict::Broken(broken)),
            };
            if let Some(fault) = certificates.agree(&entry)? {
                return Ok(Verdict::Certificate(fault));
            }
        }
    }
    Ok(match verifier.finish() {
        Ok(verified) => Verdict::Intact(verified),
        Err(broken) => Verdict::Broken(broken),
    })
}

fn expecting(verifier: Verifier, expected: Option<Head>) -> Verifier {
    match expected {
        Some(head) => verifier.expect(head),
        None => verifier,
    }
}

fn check_files(files: &[PathBuf], mut verifier: Verifier) -> Result<Verdict, VerifyError> {
    for path in files {
        let file = File::open(path).map_err(|source| VerifyError::Read {
            path: path.clone(),
            source,
        })?;
        match verifier.read(&path.to_string_lossy(), BufReader::new(file)) {
            Ok(()) => {}
            Err(ReadLogError::Broken(broken)) => return Ok(Verdict::Broken(broken)),
            Err(ReadLogError::Read { source, .. }) => {
                let path = path.clone();
                return Err(VerifyError::Read { path, source });
            }
        }
    }
    Ok(match verifier.finish() {
        Ok(verified) => Verdict::Intact(verified),
        Err(broken) => Verdict::Broken(broken),
    })
}

fn is_database(path: &Path) -> Result<bool, VerifyError> {
    const MAGIC: &[u8] = b"SQLite format 3\0";
    let mut start = Vec::new();
    File::open(path)
        .and_then(|file| file.take(MAGIC.len() as u64).read_to_end(&mut start))
        .map_err(|source| VerifyError::Read {
            path: path.to_owned(),
            source,
        })?;
    Ok(start == MAGIC)
}

/// The certificates in the order of their issue, which is the order of their audit entries.
struct Certificates<'a> {
    reader: &'a Reader,
    page: std::vec::IntoIter<(Cursor, IssuedCertificate)>,
    peeked: Option<IssuedCertificate>,
    last: Option<Cursor>,
}

impl<'a> Certificates<'a> {
    fn new(reader: &'a Reader) -> Self {
        Self {
            reader,
            page: Vec::new().into_iter(),
            peeked: None,
            last: None,
        }
    }

    fn peek(&mut self) -> Result<Option<&IssuedCertificate>, StoreError> {
        if self.peeked.is_none() {
            self.peeked = self.read()?;
        }
        Ok(self.peeked.as_ref())
    }

    fn read(&mut self) -> Result<Option<IssuedCertificate>, StoreError> {
        if self.page.as_slice().is_empty() {
            self.page = self
                .reader
                .certificates_blocking(self.last, PAGE)?
                .into_iter();
        }
        Ok(self.page.next().map(|(cursor, certificate)| {
            self.last = Some(cursor);
            certificate
        }))
    }

    /// Holds the next entry against the next certificate.
    fn agree(&mut self, entry: &Entry) -> Result<Option<CertificateFault>, StoreError> {
        let told = entry.details.get(detail::CERTIFICATE_SHA256);
        let next = self.peek()?;
        if let Some(before) = next.filter(|next| next.audit_seq < entry.seq) {
            return Ok(Some(fault(before, "its audit entry tells of none")));
        }
        let Some(certificate) = next.filter(|next| next.audit_seq == entry.seq) else {
            return Ok(told.map(|_| CertificateFault {
                seq: entry.seq,
                serial_hex: entry
                    .details
                    .get(detail::SERIAL_HEX)
                    .cloned()
                    .unwrap_or_default(),
                what: "the entry tells of it, but it is not in the store",
            }));
        };
        let told_profile = entry.details.get(detail::PROFILE);
        let told_serial = entry.details.get(detail::SERIAL_HEX);
        let what = match told {
            None => Some("its audit entry tells of none"),
            Some(hash) if *hash != sha256_hex(&certificate.der) => {
                Some("it is not the certificate that its audit entry tells of")
            }
            Some(_) if told_serial != Some(&certificate.serial.to_string()) => {
                Some("its serial number is not the one in its audit entry")
            }
            Some(_) if told_profile != Some(&certificate.profile) => {
                Some("its profile is not the one in its audit entry")
            }
            Some(_) => None,
        };
        let fault = what.map(|what| fault(certificate, what));
        self.peeked = None;
        Ok(fault)
    }
}

fn fault(certificate: &IssuedCertificate, what: &'static str) -> CertificateFault {
    CertificateFault {
        seq: certificate.audit_seq,
        serial_hex: certificate.serial.to_string(),
        what,
    }
}
