//! `TBSCertificate` (RFC 5280 §4.1.2), written.

use super::validity::Validity;
use crate::{
    asn1::{OID, context, context_primitive, write},
    oid,
    profile::{BasicConstraints, ExtendedKeyUsage, KeyUsage, san::GeneralNames},
    serial::Serial,
    signer::SignatureAlgorithm,
};

/// Whom a certificate is about.
pub(super) struct Subject<'a> {
    pub(super) name_der: &'a [u8],
    pub(super) name_text: &'a str,
    pub(super) spki_der: &'a [u8],
    pub(super) key_id: [u8; 20],
}

impl Subject<'_> {
    pub(super) fn is_nameless(&self) -> bool {
        // An empty SEQUENCE.
        self.name_der == [0x30, 0]
    }
}

/// `TBSCertificate`, version 3.
pub(super) fn tbs(
    serial: Serial,
    algorithm: SignatureAlgorithm,
    issuer_name_der: &[u8],
    validity: Validity,
    subject: &Subject<'_>,
    extensions: &[u8],
) -> Vec<u8> {
    let version = write::element(context(0), &[&write::unsigned(&[2])]);
    let extensions = write::element(context(3), &[&write::sequence(&[extensions])]);
    write::sequence(&[
        &version,
        &write::unsigned(serial.as_bytes()),
        &algorithm.to_der(),
        issuer_name_der,
        &validity.to_der(),
        subject.name_der,
        subject.spki_der,
        &extensions,
    ])
}

/// Extensions, one after the other.
#[derive(Default)]
pub(super) struct Extensions(pub(super) Vec<u8>);

impl Extensions {
    /// Always there, and always critical: whether a certificate is a CA's is never a side note.
    pub(super) fn basic_constraints(&mut self, constraints: BasicConstraints) {
        let is_ca = if constraints.is_ca {
            write::boolean_true()
        } else {
            Vec::new()
        };
        let path_len = match constraints.path_len {
            Some(path_len) if constraints.is_ca => write::unsigned(&[path_len]),
            _ => Vec::new(),
        };
        self.push(
            oid::BASIC_CONSTRAINTS.as_bytes(),
            true,
            &write::sequence(&[&is_ca, &path_len]),
        );
    }

    pub(super) fn key_usage(&mut self, usages: &[KeyUsage]) {
        if !usages.is_empty() {
            let bits = write::named_bits(usages.iter().map(|usage| usage.bit()));
            self.push(oid::KEY_USAGE.as_bytes(), true, &bits);
        }
    }

    pub(super) fn ext_key_usage(&mut self, usages: &[ExtendedKeyUsage]) {
        if !usages.is_empty() {
            let purposes: Vec<Vec<u8>> = usages
                .iter()
                .map(|usage| write::element(OID, &[usage.oid().as_bytes()]))
                .collect();
            let purposes: Vec<&[u8]> = purposes.iter().map(Vec::as_slice).collect();
            self.push(
                oid::EXT_KEY_USAGE.as_bytes(),
                false,
                &write::sequence(&purposes),
            );
        }
    }

    /// RFC 5280 §4.2.1.6: critical only where there is no subject beside it.
    pub(super) fn names(&mut self, names: &GeneralNames, subject: &Subject<'_>) {
        if !names.der.is_empty() {
            let value = write::sequence(&[&names.der]);
            self.push(
                oid::SUBJECT_ALT_NAME.as_bytes(),
                subject.is_nameless(),
                &value,
            );
        }
    }

    /// SKI and AKI (RFC 5280 §4.2.1.1, §4.2.1.2).
    pub(super) fn key_ids(&mut self, own: &[u8], issuer: &[u8]) {
        self.push(
            oid::SUBJECT_KEY_ID.as_bytes(),
            false,
            &write::octet_string(own),
        );
        let key_id = write::element(context_primitive(0), &[issuer]);
        self.push(
            oid::AUTHORITY_KEY_ID.as_bytes(),
            false,
            &write::sequence(&[&key_id]),
        );
    }

    pub(super) fn push(&mut self, id: &[u8], critical: bool, value: &[u8]) {
        let critical = if critical {
            write::boolean_true()
        } else {
            Vec::new()
        };
        let parts = [
            &write::element(OID, &[id]),
            &critical,
            &write::octet_string(value),
        ];
        self.0.extend(write::sequence(&parts.map(Vec::as_slice)));
    }
}
