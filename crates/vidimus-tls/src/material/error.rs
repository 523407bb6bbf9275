//! Why material was not taken into use.

use std::io;
use std::path::PathBuf;
use std::time::SystemTime;

use vidimus_x509::cert::CertError;
use vidimus_x509::crl::CrlError;
use vidimus_x509::pem::PemError;

use crate::clock::rfc3339;
use crate::verify::PathFault;

/// Why a set of files was not taken into use.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MaterialError {
    /// The certificate or its key.
    #[error(transparent)]
    Identity(#[from] IdentityError),
    /// The roots.
    #[error(transparent)]
    Trust(#[from] TrustError),
}

/// Why a certificate with its key was not taken into use. Never contains a byte of the key.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum IdentityError {
    /// A file could not be read.
    #[error("read {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The certificate file is not well-formed PEM.
    #[error("certificates in {} cannot be read as PEM", path.display())]
    CertificatePem {
        /// The file.
        path: PathBuf,
        /// Where and why.
        #[source]
        source: PemError,
    },
    /// The file has no certificate.
    #[error("{} contains no certificate", path.display())]
    NoCertificate {
        /// The file.
        path: PathBuf,
    },
    /// One of the certificates is not a certificate.
    #[error("certificate {position} in {} cannot be decoded", path.display())]
    CertificateDer {
        /// The file.
        path: PathBuf,
        /// Counted from 1.
        position: usize,
        /// Why.
        #[source]
        source: CertError,
    },
    /// The key file is not well-formed PEM or holds no private key.
    #[error("private key in {} cannot be read as PEM", path.display())]
    KeyPem {
        /// The file.
        path: PathBuf,
        /// Where and why.
        #[source]
        source: PemError,
    },
    /// The key is of a kind that TLS 1.3 doesn't use here, or it is damaged.
    #[error(
        "private key in {} cannot be used; accepted: ECDSA P-256, P-384 and P-521, Ed25519, RSA from 2048 bits",
        path.display()
    )]
    KeyUnusable {
        /// The file.
        path: PathBuf,
    },
    /// No certificate in the file has this key.
    #[error(
        "private key in {} does not match any certificate in {}",
        key.display(),
        certificate.display()
    )]
    KeyMismatch {
        /// The key file.
        key: PathBuf,
        /// The certificate file.
        certificate: PathBuf,
    },
    /// The certificate is not valid yet.
    #[error(
        "certificate in {} is not valid yet: now {}, notBefore {}, notAfter {}",
        path.display(), rfc3339(*now), rfc3339(*not_before), rfc3339(*not_after)
    )]
    NotYetValid {
        /// The file.
        path: PathBuf,
        /// The time of the check.
        now: SystemTime,
        /// The certificate's first instant.
        not_before: SystemTime,
        /// The certificate's last instant.
        not_after: SystemTime,
    },
    /// The certificate has expired.
    #[error(
        "certificate in {} has expired: now {}, notBefore {}, notAfter {}",
        path.display(), rfc3339(*now), rfc3339(*not_before), rfc3339(*not_after)
    )]
    Expired {
        /// The file.
        path: PathBuf,
        /// The time of the check.
        now: SystemTime,
        /// The certificate's first instant.
        not_before: SystemTime,
        /// The certificate's last instant.
        not_after: SystemTime,
    },
    /// Peers would refuse the certificate for what the process does with it.
    #[error(
        "certificate in {} lacks the extended key usage {missing}: found {found}",
        path.display()
    )]
    ExtendedKeyUsage {
        /// The file.
        path: PathBuf,
        /// `serverAuth` or `clientAuth`.
        missing: &'static str,
        /// What the extension lists.
        found: String,
    },
    /// The certificate is a CA's. TLS peers refuse such a certificate as an end entity (RFC 5280 §4.2.1.9).
    #[error(
        "certificate in {} is a CA certificate (basicConstraints CA:TRUE), which peers refuse for a server or client; \
         issue an end-entity certificate from it instead",
        path.display()
    )]
    IsAuthority {
        /// The file.
        path: PathBuf,
    },
}

impl IdentityError {
    /// The text without the time of the check, which alone makes no other error.
    pub(crate) fn reason(&self) -> String {
        match self {
            Self::Expired {
                path, not_after, ..
            } => format!("{} expired at {}", path.display(), rfc3339(*not_after)),
            Self::NotYetValid {
                path, not_before, ..
            } => format!("{} begins at {}", path.display(), rfc3339(*not_before)),
            other => error_chain(other),
        }
    }
}

/// An error and its causes in one line.
pub(crate) fn error_chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        next = cause.source();
    }
    text
}

/// Why a set of roots was not taken into use.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TrustError {
    /// The file could not be read.
    #[error("read {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The file is not well-formed PEM.
    #[error("roots in {} cannot be read as PEM", path.display())]
    Pem {
        /// The file.
        path: PathBuf,
        /// Where and why.
        #[source]
        source: PemError,
    },
    /// The file has no certificate. An empty set would refuse everybody, or hide a cut file.
    #[error("{} contains no certificate", path.display())]
    NoCertificate {
        /// The file.
        path: PathBuf,
    },
    /// One of the certificates is not a certificate. One bad one among good ones refuses the set: a set that grows or
    /// shrinks by a damaged file is nobody's decision.
    #[error("certificate {position} in {} cannot be decoded", path.display())]
    CertificateDer {
        /// The file.
        path: PathBuf,
        /// Counted from 1.
        position: usize,
        /// Why.
        #[source]
        source: CertError,
    },
    /// One of the certificates decodes but cannot serve as a trust anchor.
    #[error("certificate {position} in {} cannot be a trust anchor", path.display())]
    Anchor {
        /// The file.
        path: PathBuf,
        /// Counted from 1.
        position: usize,
        /// Why.
        #[source]
        source: PathFault,
    },
    /// The file with revocation lists is not well-formed PEM or DER, or has none.
    #[error("revocation lists in {} cannot be read as PEM", path.display())]
    RevocationPem {
        /// The file.
        path: PathBuf,
        /// Where and why.
        #[source]
        source: PemError,
    },
    /// One of the lists is not a list, or one of a kind that is not accepted. One bad one among good ones refuses them all.
    #[error("revocation list {position} in {} cannot be used", path.display())]
    RevocationDer {
        /// The file.
        path: PathBuf,
        /// Counted from 1.
        position: usize,
        /// Why.
        #[source]
        source: CrlError,
    },
    /// One of the lists is of the future: its thisUpdate (RFC 5280 §5.1.2.4) is more than five minutes away.
    #[error(
        "revocation list {position} in {} is of the future: {issuer:?} made it at {}; check this machine's clock and the CA's",
        path.display(), rfc3339(*this_update)
    )]
    RevocationNotYet {
        /// The file.
        path: PathBuf,
        /// Counted from 1.
        position: usize,
        /// Whose list.
        issuer: String,
        /// When it says it was made.
        this_update: SystemTime,
    },
    /// One of the lists says that a known CA's key signed it, and that key didn't.
    #[error(
        "revocation list {position} in {} names the key of {issuer:?}, and its signature is not by that key",
        path.display()
    )]
    RevocationSignature {
        /// The file.
        path: PathBuf,
        /// Counted from 1.
        position: usize,
        /// The CA.
        issuer: String,
    },
    /// No certificate of the set is a CA's, so nothing could ever be verified against it.
    #[error(
        "none of the certificates in {} is a CA certificate (basicConstraints CA:TRUE with keyCertSign)",
        path.display()
    )]
    NoAuthority {
        /// The file.
        path: PathBuf,
    },
}
