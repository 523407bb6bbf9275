//! Strict reading and writing of PEM (RFC 7468).
//!
//! A byte order mark, CRLF line ends and text between the blocks are fine. What looks like a boundary and isn't
//! one is an error with its line: a mistyped `BEGIN` line must not make a certificate disappear in silence.

use zeroize::Zeroizing;

/// The largest PEM text that is read: 2 MiB, several times the system's whole trust bundle.
pub const MAX_TEXT: usize = 2 * 1024 * 1024;

/// Why a PEM text was refused. Lines and positions count from 1.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PemError {
    /// There is no block of the wanted kind.
    #[error("no {label} block found")]
    NoBlock {
        /// The label that was looked for.
        label: String,
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

/// The bytes of the one block with this label.
///
/// # Errors
/// None or several such blocks, and everything [`certificates`] refuses.
pub fn decode(label: &str, text: &[u8]) -> Result<Vec<u8>, PemError> {
    let _ = (label, text);
    todo!()
}

/// One block with 64 characters a line, ending in a newline.
#[must_use]
pub fn encode(label: &str, der: &[u8]) -> String {
    let _ = (label, der);
    todo!()
}

/// Every certificate of a bundle, in order; other known blocks are passed over.
///
/// # Errors
/// One bad block refuses them all; no certificate at all is an error too.
pub fn certificates(text: &[u8]) -> Result<Vec<Vec<u8>>, PemError> {
    let _ = text;
    todo!()
}

/// The one private key of a text; other known blocks are passed over.
///
/// # Errors
/// None, several, or an encrypted one.
pub fn private_key(text: &[u8]) -> Result<PrivateKeyPem, PemError> {
    let _ = text;
    todo!()
}
