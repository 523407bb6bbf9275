//! Strict reading and writing of PEM (RFC 7468).
//!
//! A byte order mark, CRLF line ends and text around the blocks are fine. What looks like a
//! boundary and isn't one is an error with its line: a mistyped `BEGIN` must not make a certificate
//! disappear in silence, as it does in readers that skip what they don't know.
#![warn(clippy::indexing_slicing, clippy::arithmetic_side_effects)]

mod lines;

use data_encoding::BASE64;
use zeroize::{Zeroize, Zeroizing};

use self::lines::Block;
use crate::asn1::{DerError, Reader, SEQUENCE};

/// The largest PEM text that is read: 2 MiB, several times a system's whole trust bundle.
pub const MAX_TEXT: usize = 2 * 1024 * 1024;

/// The largest text with revocation lists that is read.
pub const MAX_CRL_TEXT: usize = 64 * 1024 * 1024;

/// The label of a certificate.
pub const CERTIFICATE: &str = "CERTIFICATE";
/// The label of a certification request.
pub const CERTIFICATE_REQUEST: &str = "CERTIFICATE REQUEST";

/// The label of a revocation list.
pub const X509_CRL: &str = "X509 CRL";

/// Labels of a certificate: RFC 7468's, and an old one it lists beside it.
const CERTIFICATES: [&str; 2] = [CERTIFICATE, "X509 CERTIFICATE"];

/// The label of OpenSSL's certificates with trust settings behind them.
const TRUSTED_CERTIFICATE: &str = "TRUSTED CERTIFICATE";

/// Why a PEM text was refused. Lines and positions count from 1.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PemError {
    /// Larger than [`MAX_TEXT`], or [`MAX_CRL_TEXT`] where revocation lists are read.
    #[error("PEM text of {found} bytes; accepted: at most {max}")]
    TooLarge {
        /// Its size in bytes.
        found: usize,
        /// The largest that is read.
        max: usize,
    },
    /// UTF-16, as some Windows programs write.
    #[error("text is UTF-16; accepted: ASCII or UTF-8")]
    Utf16,
    /// There is no block of the wanted kind.
    #[error("no {wanted} block found")]
    NoBlock {
        /// The label that was looked for.
        wanted: String,
    },
    /// Several blocks where one is wanted.
    #[error("{found} {wanted} blocks found; accepted: exactly one")]
    SeveralBlocks {
        /// The label that was looked for.
        wanted: String,
        /// How many.
        found: usize,
    },
    /// A line that looks like a boundary and is none. Its text is left out: where a line end is missing, the boundary has
    /// the content beside it, which may be a key.
    #[error(
        "line {line} looks like a PEM boundary and is none; accepted: a line of its own such as -----BEGIN CERTIFICATE-----"
    )]
    Boundary {
        /// Which line.
        line: usize,
    },
    /// A block that never ends, or ends under another label.
    #[error("{label} block that begins at line {line} is not ended by its own END line")]
    Unended {
        /// Its label.
        label: String,
        /// The line it begins at.
        line: usize,
    },
    /// Content that isn't base64.
    #[error("{label} block {position} (line {line}) is not valid base64")]
    Base64 {
        /// Its label.
        label: String,
        /// Which of the blocks of this label.
        position: usize,
        /// The line it begins at.
        line: usize,
    },
    /// Content that isn't one DER structure.
    #[error("{label} block {position} (line {line}) is not DER")]
    Der {
        /// Its label.
        label: String,
        /// Which of the blocks of this label.
        position: usize,
        /// The line it begins at.
        line: usize,
        /// What is wrong with it.
        #[source]
        source: DerError,
    },
    /// A certificate with OpenSSL's own notes on what to trust it for, which nothing here would apply.
    #[error(
        "line {line} begins a TRUSTED CERTIFICATE; accepted: CERTIFICATE, which `openssl x509` makes of it"
    )]
    Trusted {
        /// The line it begins at.
        line: usize,
    },
    /// A private key under a passphrase.
    #[error("private key at line {line} is encrypted; accepted: a key without passphrase")]
    Encrypted {
        /// The line it begins at.
        line: usize,
    },
}

/// What structure the bytes of a [`PrivateKeyPem`] have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PrivateKeyKind {
    /// `PRIVATE KEY` (RFC 5958).
    Pkcs8,
    /// `EC PRIVATE KEY` (RFC 5915).
    Sec1,
    /// `RSA PRIVATE KEY` (RFC 8017).
    Pkcs1,
}

/// A private key as it stood in its file.
pub struct PrivateKeyPem {
    /// The structure of `der`.
    pub kind: PrivateKeyKind,
    /// The key, wiped on drop.
    pub der: Zeroizing<Vec<u8>>,
}

impl std::fmt::Debug for PrivateKeyPem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PrivateKeyPem")
            .field("kind", &self.kind)
            .finish_non_exhaustive()
    }
}

/// The bytes of the one block with this label; other known blocks are passed over.
///
/// # Errors
/// None or several such blocks, and everything [`certificates`] refuses.
pub fn decode(label: &str, text: &[u8]) -> Result<Vec<u8>, PemError> {
    decode_one_of(&[label], text)
}

/// One block with 64 characters a line, ending in a newline.
#[must_use]
pub fn encode(label: &str, der: &[u8]) -> String {
    const LINE: usize = 48;
    let mut out = format!("-----BEGIN {label}-----\n");
    for line in der.chunks(LINE) {
        BASE64.encode_append(line, &mut out);
        out.push('\n');
    }
    out.push_str("-----END ");
    out.push_str(label);
    out.push_str("-----\n");
    out
}

/// Every certificate of a bundle, in order; other known blocks are passed over.
///
/// Each is one DER SEQUENCE; whether it is a certificate is [`crate::cert::Certificate::parse`]'s
/// to say.
///
/// # Errors
/// One bad block refuses them all, and so does a `TRUSTED CERTIFICATE`; no certificate at all is an error too.
pub fn certificates(text: &[u8]) -> Result<Vec<Vec<u8>>, PemError> {
    let labels = [&CERTIFICATES[..], &[TRUSTED_CERTIFICATE]].concat();
    let blocks = blocks(&labels, text, MAX_TEXT)?;
    // To pass over it would make the bundle a shorter one that is valid.
    if let Some(block) = blocks
        .iter()
        .find(|block| block.label == TRUSTED_CERTIFICATE)
    {
        return Err(PemError::Trusted { line: block.line });
    }
    decode_all(&blocks)
}

/// Every revocation list of a text, in order; other known blocks are passed over. A text that is one DER structure is one
/// list: CAs publish them in either form.
///
/// Each is one DER SEQUENCE; whether it is a list is [`crate::crl::RevocationList::parse`]'s to say.
///
/// # Errors
/// One bad block refuses them all; no list at all is an error too.
pub fn revocation_lists(text: &[u8]) -> Result<Vec<Vec<u8>>, PemError> {
    // 0x30 is also the digit 0, but no text goes on with a length octet of a long form.
    if let [SEQUENCE, 0x80..=0xff, ..] = text {
        let (label, line, position) = (X509_CRL.to_owned(), 1, 1);
        return match Reader::single(text, SEQUENCE, "a SEQUENCE") {
            Ok(_) => Ok(vec![text.to_vec()]),
            Err(source) => Err(PemError::Der {
                label,
                position,
                line,
                source,
            }),
        };
    }
    decode_all(&blocks(&[X509_CRL], text, MAX_CRL_TEXT)?)
}

/// The one private key of a text; other known blocks are passed over.
///
/// # Errors
/// None, several, or an encrypted one.
pub fn private_key(text: &[u8]) -> Result<PrivateKeyPem, PemError> {
    const ENCRYPTED: &str = "ENCRYPTED PRIVATE KEY";
    let labels = [
        "PRIVATE KEY",
        "EC PRIVATE KEY",
        "RSA PRIVATE KEY",
        ENCRYPTED,
    ];
    let block = one_block(&labels, text)?;
    let kind = match block.label {
        "PRIVATE KEY" => PrivateKeyKind::Pkcs8,
        "EC PRIVATE KEY" => PrivateKeyKind::Sec1,
        "RSA PRIVATE KEY" => PrivateKeyKind::Pkcs1,
        _ => return Err(PemError::Encrypted { line: block.line }),
    };
    // The old form of encryption: `Proc-Type: 4,ENCRYPTED` as a header (RFC 1421 §4.6.1.1).
    if block.lines.first().is_some_and(|line| line.contains(&b':')) {
        return Err(PemError::Encrypted { line: block.line });
    }
    let der = Zeroizing::new(decode_block(&block, 0)?);
    Ok(PrivateKeyPem { kind, der })
}

/// The bytes of the one block under any of these labels.
pub(crate) fn decode_one_of(labels: &[&str], text: &[u8]) -> Result<Vec<u8>, PemError> {
    decode_block(&one_block(labels, text)?, 0)
}

fn one_block<'a>(labels: &[&str], text: &'a [u8]) -> Result<Block<'a>, PemError> {
    let mut blocks = blocks(labels, text, MAX_TEXT)?;
    match blocks.pop() {
        Some(block) if blocks.is_empty() => Ok(block),
        _ => Err(PemError::SeveralBlocks {
            wanted: wanted(labels),
            found: blocks.len().saturating_add(1),
        }),
    }
}

/// The blocks under these labels: at least one.
fn blocks<'a>(labels: &[&str], text: &'a [u8], max: usize) -> Result<Vec<Block<'a>>, PemError> {
    if text.len() > max {
        let found = text.len();
        return Err(PemError::TooLarge { found, max });
    }
    if text.starts_with(&[0xff, 0xfe]) || text.starts_with(&[0xfe, 0xff]) {
        return Err(PemError::Utf16);
    }
    let mut blocks = lines::blocks(text, labels)?;
    blocks.retain(|block| labels.contains(&block.label));
    if blocks.is_empty() {
        return Err(PemError::NoBlock {
            wanted: wanted(labels),
        });
    }
    Ok(blocks)
}

fn wanted(labels: &[&str]) -> String {
    labels.first().copied().unwrap_or_default().to_owned()
}

fn decode_all(blocks: &[Block<'_>]) -> Result<Vec<Vec<u8>>, PemError> {
    let decode = |(index, block): (usize, &Block<'_>)| decode_block(block, index);
    blocks.iter().enumerate().map(decode).collect()
}

fn decode_block(block: &Block<'_>, index: usize) -> Result<Vec<u8>, PemError> {
    let label = block.label.to_owned();
    let (line, position) = (block.line, index.saturating_add(1));
    let mut base64 = block.lines.concat();
    base64.retain(|byte| !matches!(byte, b' ' | b'\t'));
    let decoded = BASE64.decode(&base64);
    base64.zeroize();
    let Ok(der) = decoded else {
        return Err(PemError::Base64 {
            label,
            position,
            line,
        });
    };
    match Reader::single(&der, SEQUENCE, "a SEQUENCE") {
        Ok(_) => Ok(der),
        Err(source) => Err(PemError::Der {
            label,
            position,
            line,
            source,
        }),
    }
}

#[cfg(test)]
mod tests;
