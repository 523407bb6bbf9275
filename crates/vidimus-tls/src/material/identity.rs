//! A certificate, the chain above it and its key: what this process proves itself with.

use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

use rustls::crypto::aws_lc_rs::sign::any_supported_type;
use rustls::sign::CertifiedKey;
use rustls_pki_types::{
    CertificateDer, PrivateKeyDer, PrivatePkcs1KeyDer, PrivatePkcs8KeyDer, PrivateSec1KeyDer,
};
use vidimus_x509::cert::Certificate;
use vidimus_x509::pem::{self, PrivateKeyKind, PrivateKeyPem};

use super::{IdentityError, Usage, memory};
use crate::identity::{CertificateIdentity, Fingerprint};

/// A certificate with its chain and private key, checked as a whole. Immutable.
pub struct Identity {
    certified: Arc<CertifiedKey>,
    names: CertificateIdentity,
}

impl Identity {
    /// Checks certificates and key given as PEM.
    ///
    /// The certificate that has the key is the leaf, wherever it stands; the others follow in the order of issuers.
    ///
    /// # Errors
    ///
    /// What is wrong, with `memory` in place of a file name.
    pub fn from_pem(
        certificates: &[u8],
        key: &[u8],
        usage: Usage,
        now: SystemTime,
    ) -> Result<Self, IdentityError> {
        Self::parse(certificates, memory(), key, memory(), usage, now)
    }

    pub(crate) fn parse(
        certificates: &[u8],
        certificate_path: &Path,
        key: &[u8],
        key_path: &Path,
        usage: Usage,
        now: SystemTime,
    ) -> Result<Self, IdentityError> {
        let mut parsed = decode_all(certificates, certificate_path)?;
        let private = pem::private_key(key).map_err(|source| IdentityError::KeyPem {
            path: key_path.to_path_buf(),
            source,
        })?;
        let unusable = || IdentityError::KeyUnusable {
            path: key_path.to_path_buf(),
        };
        let signing = any_supported_type(&as_rustls(&private)).map_err(|_| unusable())?;
        let public = signing.public_key().ok_or_else(unusable)?;
        let position = parsed
            .iter()
            .position(|(_, certificate)| certificate.spki_der() == public.as_ref())
            .ok_or_else(|| IdentityError::KeyMismatch {
                key: key_path.to_path_buf(),
                certificate: certificate_path.to_path_buf(),
            })?;
        let leaf = parsed.remove(position);
        check_leaf(&leaf.1, certificate_path, usage, now)?;

        let names = CertificateIdentity::of(&leaf.0, &leaf.1);
        let chain = in_issuer_order(leaf, parsed);
        Ok(Self {
            certified: Arc::new(CertifiedKey::new(chain, signing)),
            names,
        })
    }

    /// The certificates as they are presented: the leaf, then its issuers.
    #[must_use]
    pub fn chain(&self) -> &[CertificateDer<'static>] {
        &self.certified.cert
    }

    /// What the leaf says: names, serial number, dates, fingerprint.
    #[must_use]
    pub fn names(&self) -> &CertificateIdentity {
        &self.names
    }

    /// The last instant at which the leaf is valid.
    #[must_use]
    pub fn not_after(&self) -> SystemTime {
        self.names.not_after()
    }

    /// The SHA-256 of the leaf's DER.
    #[must_use]
    pub fn fingerprint(&self) -> Fingerprint {
        self.names.fingerprint()
    }

    pub(crate) fn certified(&self) -> &Arc<CertifiedKey> {
        &self.certified
    }
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Identity")
            .field("names", &self.names)
            .field("chain", &self.certified.cert.len())
            .field("key", &"[redacted]")
            .finish()
    }
}

type Decoded = (Vec<u8>, Certificate);

fn decode_all(bytes: &[u8], path: &Path) -> Result<Vec<Decoded>, IdentityError> {
    let ders = pem::certificates(bytes).map_err(|source| IdentityError::CertificatePem {
        path: path.to_path_buf(),
        source,
    })?;
    if ders.is_empty() {
        return Err(IdentityError::NoCertificate {
            path: path.to_path_buf(),
        });
    }
    let decode = |(index, der): (usize, Vec<u8>)| match Certificate::parse(&der) {
        Ok(certificate) => Ok((der, certificate)),
        Err(source) => Err(IdentityError::CertificateDer {
            path: path.to_path_buf(),
            position: index.saturating_add(1),
            source,
        }),
    };
    ders.into_iter().enumerate().map(decode).collect()
}

fn as_rustls(key: &PrivateKeyPem) -> PrivateKeyDer<'_> {
    let der = key.der.as_slice();
    match key.kind {
        PrivateKeyKind::Pkcs1 => PrivatePkcs1KeyDer::from(der).into(),
        PrivateKeyKind::Pkcs8 => PrivatePkcs8KeyDer::from(der).into(),
        PrivateKeyKind::Sec1 => PrivateSec1KeyDer::from(der).into(),
    }
}

fn check_leaf(
    leaf: &Certificate,
    path: &Path,
    usage: Usage,
    now: SystemTime,
) -> Result<(), IdentityError> {
    let path = || path.to_path_buf();
    let (not_before, not_after) = (leaf.not_before(), leaf.not_after());
    if now < not_before {
        return Err(IdentityError::NotYetValid {
            path: path(),
            now,
            not_before,
            not_after,
        });
    }
    if now > not_after {
        return Err(IdentityError::Expired {
            path: path(),
            now,
            not_before,
            not_after,
        });
    }
    if leaf.is_ca() {
        return Err(IdentityError::IsAuthority { path: path() });
    }
    check_usage(leaf, usage).map_err(|(missing, found)| IdentityError::ExtendedKeyUsage {
        path: path(),
        missing,
        found,
    })
}

/// A certificate without the extension fits every usage (RFC 5280 §4.2.1.12).
fn check_usage(leaf: &Certificate, usage: Usage) -> Result<(), (&'static str, String)> {
    let Some(listed) = crate::verify::facts::extended_key_usages(leaf) else {
        return Ok(());
    };
    let needed: &[&'static str] = match usage {
        Usage::Both => &["serverAuth", "clientAuth"],
        Usage::Client => &["clientAuth"],
        Usage::Server => &["serverAuth"],
    };
    match needed
        .iter()
        .find(|name| !listed.iter().any(|l| l == **name))
    {
        Some(missing) => Err((missing, listed.join(", "))),
        None => Ok(()),
    }
}

/// The leaf, then the certificate that signed it, and so on; what is left over follows as it came.
fn in_issuer_order(leaf: Decoded, mut rest: Vec<Decoded>) -> Vec<CertificateDer<'static>> {
    let mut chain = vec![CertificateDer::from(leaf.0)];
    let mut head = leaf.1;
    while let Some(position) = rest.iter().position(|(_, candidate)| {
        candidate.subject_der() == head.issuer_der()
            && head.verify_signature(candidate.spki_der()).is_ok()
    }) {
        let (der, certificate) = rest.remove(position);
        chain.push(CertificateDer::from(der));
        head = certificate;
    }
    for (der, _) in rest {
        let der = CertificateDer::from(der);
        if !chain.contains(&der) {
            chain.push(der);
        }
    }
    chain
}
