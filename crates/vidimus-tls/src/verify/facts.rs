//! What a certificate says, in the form the rules here ask for it.

use vidimus_x509::cert::Certificate;

use crate::identity::{CertificateIdentity, Fingerprint};

/// The object identifier 2.5.4.3 (commonName) in DER, with tag and length.
const COMMON_NAME: [u8; 5] = [0x06, 0x03, 0x55, 0x04, 0x03];

/// The listed extended key usages, `None` if the certificate has no such extension.
pub(crate) fn extended_key_usages(certificate: &Certificate) -> Option<&[String]> {
    match certificate.ext_key_usage() {
        [] => None,
        listed => Some(listed),
    }
}

/// Whether the key usage lets the key sign certificates; a certificate without the extension may (RFC 5280 §4.2.1.3).
pub(crate) fn may_sign_certificates(certificate: &Certificate) -> bool {
    certificate
        .key_usage()
        .is_none_or(|listed| listed.contains(&"keyCertSign"))
}

impl CertificateIdentity {
    /// Gathers the names of a certificate. That it was verified is for the caller to know.
    pub(crate) fn of(der: &[u8], certificate: &Certificate) -> Self {
        Self {
            subject: certificate.subject_text().to_owned(),
            common_name: only_common_name(certificate),
            dns_names: certificate.dns_names().to_vec(),
            uri_names: certificate.uris().to_vec(),
            email_names: certificate.emails().to_vec(),
            ip_addresses: certificate.ip_addresses().to_vec(),
            serial: certificate.serial_hex().to_owned(),
            issuer: certificate.issuer_text().to_owned(),
            not_before: certificate.not_before(),
            not_after: certificate.not_after(),
            fingerprint: Fingerprint::of(der),
        }
    }
}

/// The common name, if the identifier of the attribute occurs exactly once in the subject.
///
/// Two common names are two claims, and which one counts differs between readers. A value that contains the
/// identifier's bytes counts as an occurrence as well, which errs on the side of no name.
fn only_common_name(certificate: &Certificate) -> Option<String> {
    let subject = certificate.subject_der();
    let occurrences = subject
        .windows(COMMON_NAME.len())
        .filter(|window| *window == COMMON_NAME)
        .count();
    match occurrences {
        1 => certificate
            .common_name()
            .filter(|name| !name.is_empty())
            .map(str::to_owned),
        _ => None,
    }
}
