//! What a certificate says, in the form the rules here ask for it.

use vidimus_x509::cert::{self, Certificate};

use crate::identity::{CertificateIdentity, Fingerprint, NameForm, SpiffeId};

/// The object identifier 2.5.4.3 (commonName) in DER, with tag and length.
const COMMON_NAME: [u8; 5] = [0x06, 0x03, 0x55, 0x04, 0x03];

/// A name without any part, in DER.
const EMPTY_NAME: [u8; 2] = [0x30, 0x00];

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

/// Why a certificate may not issue others, as far as it says so itself.
pub(crate) fn issuer_fault(certificate: &Certificate) -> Option<&'static str> {
    if !certificate.is_ca() {
        Some("is not a CA certificate")
    } else if !may_sign_certificates(certificate) {
        Some("its key usage lacks keyCertSign")
    } else if certificate.subject_der() == EMPTY_NAME {
        // RFC 5280 §4.1.2.6: two CAs without a name can't be told apart by what they issue.
        Some("has an empty subject")
    } else {
        None
    }
}

/// Why a root may not issue: as any issuer, or a critical extension that nobody here applies (RFC 5280 §4.2), which
/// webpki looks for in every certificate but the root.
pub(crate) fn root_fault(certificate: &Certificate) -> Option<&'static str> {
    issuer_fault(certificate).or_else(|| match certificate.unknown_critical_extensions() {
        [] => None,
        _ => Some("has a critical extension that is not understood"),
    })
}

/// Why a peer's own key may not sign a handshake, as far as its key usage says so.
pub(crate) fn handshake_fault(certificate: &Certificate) -> Option<&'static str> {
    let listed = certificate.key_usage()?;
    if !listed.contains(&"digitalSignature") {
        // RFC 8446 §4.4.2.2.
        Some("lacks digitalSignature, without which a key may not sign a TLS 1.3 handshake")
    } else if listed.contains(&"keyCertSign") && !certificate.is_ca() {
        // RFC 5280 §4.2.1.9: whoever issued it didn't say what it is.
        Some("has keyCertSign, but it is not a CA certificate")
    } else {
        None
    }
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
            spiffe_id: SpiffeId::of_certificate(certificate.uris()),
            anchor: None,
            constrained: None,
        }
    }

    /// Says what path the certificate was accepted by: the root it ends at, and what its CAs, the root included, constrain.
    pub(crate) fn under(mut self, anchor: Fingerprint, constraints: PathConstraints) -> Self {
        self.anchor = Some(anchor);
        self.constrained = constraints.0;
        if !self.counts(NameForm::Uri) {
            self.spiffe_id = None;
        }
        self
    }
}

/// The forms of name that each name-constrained CA of a path constrains; `None` as long as there is no such CA.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PathConstraints(Option<Vec<NameForm>>);

impl PathConstraints {
    /// What one CA's certificate says.
    pub(crate) fn of(issuer: &Certificate) -> Self {
        let form = |form: &cert::NameForm| match form {
            cert::NameForm::Dns => Some(NameForm::Dns),
            cert::NameForm::Email => Some(NameForm::Email),
            cert::NameForm::Ip => Some(NameForm::Ip),
            cert::NameForm::Uri => Some(NameForm::Uri),
            // Nothing is ever decided by these.
            _ => None,
        };
        let constrained = issuer.constrained_name_forms();
        Self(constrained.map(|forms| forms.iter().filter_map(form).collect()))
    }

    /// With another CA in the path.
    pub(crate) fn and(self, other: Self) -> Self {
        match (self.0, other.0) {
            (Some(one), Some(two)) => Self(Some(
                one.into_iter().filter(|form| two.contains(form)).collect(),
            )),
            (one, two) => Self(one.or(two)),
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
