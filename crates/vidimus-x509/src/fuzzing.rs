//! Entries for fuzzers: each takes any bytes, and must return.

use crate::{cert::Certificate, chain, crl::RevocationList, csr, pem};

/// A request in DER or PEM; read whole even where its signature would have stopped it.
pub fn csr(bytes: &[u8]) {
    let _outcome = csr::VerifiedCsr::parse(bytes);
    let _outcome = csr::Request::read(bytes);
}

/// A PEM text, and the certificates in it.
pub fn pem(bytes: &[u8]) {
    let _outcome = pem::private_key(bytes);
    let Ok(ders) = pem::certificates(bytes) else {
        return;
    };
    let read: Vec<_> = ders
        .iter()
        .filter_map(|der| Certificate::parse(der).ok())
        .collect();
    if let Some((leaf, others)) = read.split_first() {
        let _ordered = chain::order(leaf, others);
    }
}

/// A revocation list in DER, or several in PEM.
pub fn crl(bytes: &[u8]) {
    let _outcome = RevocationList::parse(bytes);
    let Ok(ders) = pem::revocation_lists(bytes) else {
        return;
    };
    for list in ders
        .iter()
        .filter_map(|der| RevocationList::parse(der).ok())
    {
        let text = list.issuer_text();
        assert!(!text.chars().any(char::is_control), "unescaped: {text:?}");
    }
}

/// A certificate in DER.
pub fn cert(bytes: &[u8]) {
    if let Ok(certificate) = Certificate::parse(bytes) {
        let _outcome = certificate.verify_signature(certificate.spki_der());
        let text = certificate.subject_text();
        assert!(!text.chars().any(char::is_control), "unescaped: {text:?}");
    }
}
