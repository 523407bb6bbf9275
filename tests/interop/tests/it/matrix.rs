//! What every peer is tried with, as two tables: foreign clients that call our server, and our channel that calls foreign
//! servers. A case says what both sides present and how it must end on both; a peer is a function that runs one case.
//! An allow-list is the server's own, so it stands in the first table alone.
//!
//! Where a peer differs, or a case cannot be put to it, its own list says so with the reason. A reason for a case that
//! isn't there, or for one that holds after all, fails the test.

pub(crate) mod calling;
mod certificates;
mod our_server;
pub(crate) mod pipe;
pub(crate) mod program;
pub(crate) mod serving;

use std::fmt;
use std::path::{Path, PathBuf};

pub(crate) use certificates::{Certificates, Leaf};
pub(crate) use our_server::OurServer;

/// The name that our servers' and the foreign servers' certificates are for.
pub(crate) const SERVER: &str = "server.example";

/// A fatal alert (RFC 8446 §6.2).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Alert {
    BadCertificate,
    CertificateExpired,
    CertificateRequired,
    CertificateRevoked,
    NoApplicationProtocol,
    ProtocolVersion,
    UnknownCa,
    UnsupportedCertificate,
}

impl Alert {
    /// As OpenSSL says it, with the name of the version that brought it in front.
    pub(crate) fn openssl(self) -> &'static str {
        match self {
            Self::BadCertificate => "alert bad certificate",
            Self::CertificateExpired => "alert certificate expired",
            Self::CertificateRequired => "alert certificate required",
            Self::CertificateRevoked => "alert certificate revoked",
            Self::NoApplicationProtocol => "alert no application protocol",
            Self::ProtocolVersion => "alert protocol version",
            Self::UnknownCa => "alert unknown ca",
            Self::UnsupportedCertificate => "alert unsupported certificate",
        }
    }

    /// As BoringSSL says it.
    pub(crate) fn boringssl(self) -> &'static str {
        match self {
            Self::BadCertificate => "ALERT_BAD_CERTIFICATE",
            Self::CertificateExpired => "ALERT_CERTIFICATE_EXPIRED",
            Self::CertificateRequired => "ALERT_CERTIFICATE_REQUIRED",
            Self::CertificateRevoked => "ALERT_CERTIFICATE_REVOKED",
            Self::NoApplicationProtocol => "ALERT_NO_APPLICATION_PROTOCOL",
            Self::ProtocolVersion => "ALERT_PROTOCOL_VERSION",
            Self::UnknownCa => "ALERT_UNKNOWN_CA",
            Self::UnsupportedCertificate => "ALERT_UNSUPPORTED_CERTIFICATE",
        }
    }

    /// As Go says it.
    pub(crate) fn go(self) -> &'static str {
        match self {
            Self::BadCertificate => "tls: bad certificate",
            Self::CertificateExpired => "tls: expired certificate",
            Self::CertificateRequired => "tls: certificate required",
            Self::CertificateRevoked => "tls: revoked certificate",
            Self::NoApplicationProtocol => "tls: no application protocol",
            Self::ProtocolVersion => "tls: protocol version not supported",
            Self::UnknownCa => "tls: unknown certificate authority",
            Self::UnsupportedCertificate => "tls: unsupported certificate",
        }
    }

    /// As our channel says it: rustls' name.
    pub(crate) fn ours(self) -> &'static str {
        match self {
            Self::BadCertificate => "BadCertificate",
            Self::CertificateExpired => "CertificateExpired",
            Self::CertificateRequired => "CertificateRequired",
            Self::CertificateRevoked => "CertificateRevoked",
            Self::NoApplicationProtocol => "NoApplicationProtocol",
            Self::ProtocolVersion => "ProtocolVersion",
            Self::UnknownCa => "UnknownCA",
            Self::UnsupportedCertificate => "UnsupportedCertificate",
        }
    }
}

/// What a program is to speak.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Speaks {
    /// TLS 1.3 with HTTP/2 agreed on.
    Http2,
    /// TLS 1.2 at most.
    OnlyTls12,
    /// TLS 1.3 without the extension that agrees on a protocol.
    WithoutAlpn,
}

/// What a program is to be for one case.
#[derive(Clone, Debug)]
pub(crate) struct Attempt {
    /// The case's name.
    pub(crate) case: &'static str,
    /// `tls.crt`, `tls.key`, `ca.crt` and `crl.pem`, and room for the peer's own files.
    pub(crate) folder: PathBuf,
    /// What it is to speak.
    pub(crate) speaks: Speaks,
}

impl Attempt {
    /// The path of a file in the folder.
    pub(crate) fn file(&self, name: &str) -> String {
        self.folder.join(name).display().to_string()
    }

    /// Writes a configuration file and gives its path.
    pub(crate) fn write(&self, name: &str, content: &str) -> String {
        put(&self.folder.join(name), content.as_bytes());
        self.file(name)
    }

    /// Certificate and key in one file, as some programs want it.
    pub(crate) fn pair(&self) -> String {
        let read = |name: &str| std::fs::read_to_string(self.folder.join(name)).unwrap();
        self.write("pair.pem", &(read("tls.crt") + &read("tls.key")))
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "a test's files need not survive a crash"
)]
pub(crate) fn put(path: &Path, content: impl AsRef<[u8]>) {
    std::fs::write(path, content).unwrap();
}

/// Two digits a byte.
pub(crate) fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// How a peer differs from the table in one case.
#[derive(Debug)]
pub(crate) struct Difference<End: 'static> {
    /// The case's name.
    pub(crate) case: &'static str,
    /// How it ends with this peer; `None` if the case cannot be put to it.
    pub(crate) end: Option<End>,
    /// Why.
    pub(crate) reason: &'static str,
}

/// The end that is expected of this peer; `None` if the case doesn't apply.
fn expected<End: Copy>(
    case: &'static str,
    usual: End,
    differences: &[Difference<End>],
) -> Option<End> {
    differences
        .iter()
        .find(|difference| difference.case == case)
        .map_or(Some(usual), |difference| difference.end)
}

/// Panics if a difference is about a case that isn't there, or about none at all.
fn check_differences<'a, End: fmt::Debug + PartialEq + 'a>(
    cases: impl Iterator<Item = (&'static str, &'a End)> + Clone,
    differences: &[Difference<End>],
) {
    for difference in differences {
        let usual = cases.clone().find(|(name, _)| *name == difference.case);
        let (_, usual) = usual.unwrap_or_else(|| panic!("no such case: {difference:?}"));
        assert_ne!(
            difference.end.as_ref(),
            Some(usual),
            "no difference: {difference:?}"
        );
        assert!(!difference.reason.is_empty(), "{difference:?}");
    }
}

/// What went wrong in each case of one peer.
#[derive(Default)]
struct Failures(Vec<String>);

impl Failures {
    fn note(&mut self, case: &str, expected: &dyn fmt::Debug, problem: &str, said: &str) {
        self.0.push(format!(
            "{case}: expected {expected:?}\n{problem}\n--- the peer said\n{said}"
        ));
    }

    fn check(self, tried: usize) {
        assert!(
            self.0.is_empty(),
            "{} of {tried} cases:\n\n{}",
            self.0.len(),
            self.0.join("\n\n")
        );
    }
}
