//! Certificates made in the test, by rcgen: a second implementation beside our own issuing code.
//!
//! ```
//! use vidimus_testkit::Pki;
//!
//! let pki = Pki::new("Example");
//! let server = pki.leaf("server").dns("server.test").server().issue();
//! let folder = tempfile::tempdir()?;
//! server.write_dir(folder.path(), &[&pki.root]); // tls.crt, tls.key, ca.crt
//! # Ok::<(), std::io::Error>(())
//! ```

mod authority;
mod credential;
mod leaf;
mod revocation;

pub use self::{
    authority::{Authority, AuthoritySpec},
    credential::Credential,
    leaf::{LeafSpec, Usage},
    revocation::RevocationListSpec,
};

use std::time::{Duration, SystemTime};

/// A root and an issuing CA under it.
#[derive(Debug)]
pub struct Pki {
    /// The trust anchor.
    pub root: Authority,
    /// Signs the leaves; its certificate is part of their chains.
    pub issuing: Authority,
}

impl Pki {
    /// Makes both, `<name> root` and `<name> issuing`, with P-384 keys.
    #[must_use]
    pub fn new(name: &str) -> Self {
        let root = Authority::root(&format!("{name} root"));
        let issuing = root.intermediate(&format!("{name} issuing"));
        Self { root, issuing }
    }

    /// Starts a leaf of the issuing CA with this common name.
    pub fn leaf(&self, common_name: &str) -> LeafSpec<'_> {
        self.issuing.leaf(common_name)
    }
}

/// The curve of a key.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Curve {
    /// NIST P-256, ECDSA with SHA-256.
    P256,
    /// NIST P-384, ECDSA with SHA-384.
    #[default]
    P384,
}

impl Curve {
    pub(crate) fn generate(self) -> rcgen::KeyPair {
        let algorithm = match self {
            Self::P256 => &rcgen::PKCS_ECDSA_P256_SHA256,
            Self::P384 => &rcgen::PKCS_ECDSA_P384_SHA384,
        };
        rcgen::KeyPair::generate_for(algorithm).expect("a fresh key")
    }
}

/// When a certificate is valid.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Validity {
    /// From one time to another, whole seconds.
    Between(SystemTime, SystemTime),
    /// From a day ago for ten days.
    #[default]
    Current,
    /// From ten days ago until a day ago.
    Expired,
    /// From tomorrow for ten days.
    NotYet,
}

impl Validity {
    /// From a minute ago until `left` from now.
    #[must_use]
    pub fn ends_in(left: Duration) -> Self {
        Self::Between(now() - Duration::from_secs(60), now() + left)
    }

    pub(crate) fn apply(self, params: &mut rcgen::CertificateParams) {
        const DAY: Duration = Duration::from_secs(24 * 60 * 60);
        let (from, to) = match self {
            Self::Between(from, to) => (from, to),
            Self::Current => (now() - DAY, now() + 10 * DAY),
            Self::Expired => (now() - 10 * DAY, now() - DAY),
            Self::NotYet => (now() + DAY, now() + 10 * DAY),
        };
        params.not_before = from.into();
        params.not_after = to.into();
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "TLS stacks under test read the wall clock"
)]
fn now() -> SystemTime {
    SystemTime::now()
}

/// Encodes certificates as PEM, one after the other.
pub(crate) fn pem(ders: &[Vec<u8>]) -> String {
    ders.iter().map(|der| armour("CERTIFICATE", der)).collect()
}

/// RFC 7468: Base64 in lines of 64 characters between two labels.
pub(crate) fn armour(label: &str, der: &[u8]) -> String {
    let mut text = format!("-----BEGIN {label}-----\n");
    for line in base64(der).as_bytes().chunks(64) {
        text.extend(line.iter().map(|byte| char::from(*byte)));
        text.push('\n');
    }
    text + &format!("-----END {label}-----\n")
}

fn base64(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let mut group = [0; 4];
        for (place, byte) in group.iter_mut().skip(1).zip(chunk) {
            *place = *byte;
        }
        let bits = u32::from_be_bytes(group);
        for position in 0..4 {
            if position <= chunk.len() {
                let index = bits >> (18 - 6 * position) & 63;
                text.push(char::from(ALPHABET[index as usize]));
            } else {
                text.push('=');
            }
        }
    }
    text
}
