//! What openssl would never write, put together by hand.

#![expect(clippy::indexing_slicing, reason = "the tests' own bytes")]

use super::*;
use crate::asn1::{
    BOOLEAN, ENUMERATED, NULL, UTC_TIME, context_primitive,
    write::{bit_string, element, octet_string, oid as write_oid, sequence, unsigned},
};
use crate::oid;

/// The parts of a list, each of which a test replaces.
struct Parts {
    version: Vec<u8>,
    algorithm: Vec<u8>,
    next_update: Vec<u8>,
    entries: Vec<u8>,
    extensions: Vec<u8>,
    trailing: Vec<u8>,
}

impl Default for Parts {
    fn default() -> Self {
        Self {
            version: unsigned(&[1]),
            algorithm: sequence(&[&write_oid(&oid::ECDSA_SHA256)]),
            next_update: time("260201000000Z"),
            entries: sequence(&[&entry(&[7], &[])]),
            extensions: extensions(&[number(&[1])]),
            trailing: Vec::new(),
        }
    }
}

impl Parts {
    fn der(&self) -> Vec<u8> {
        let algorithm = sequence(&[&write_oid(&oid::ECDSA_SHA256)]);
        let tbs = sequence(&[
            &self.version,
            &self.algorithm,
            &sequence(&[]),
            &time("260101000000Z"),
            &self.next_update,
            &self.entries,
            &self.extensions,
            &self.trailing,
        ]);
        sequence(&[&tbs, &algorithm, &bit_string(&[1])])
    }

    fn read(&self) -> Result<RevocationList, CrlError> {
        RevocationList::parse(&self.der())
    }
}

fn time(text: &str) -> Vec<u8> {
    element(UTC_TIME, &[text.as_bytes()])
}

fn entry(serial: &[u8], extensions: &[u8]) -> Vec<u8> {
    sequence(&[
        &element(INTEGER, &[serial]),
        &time("251231000000Z"),
        extensions,
    ])
}

fn extension(id: &const_oid::ObjectIdentifier, critical: bool, value: &[u8]) -> Vec<u8> {
    let critical = if critical {
        element(BOOLEAN, &[&[0xff]])
    } else {
        Vec::new()
    };
    sequence(&[&write_oid(id), &critical, &octet_string(value)])
}

fn number(magnitude: &[u8]) -> Vec<u8> {
    extension(&oid::CRL_NUMBER, false, &unsigned(magnitude))
}

fn extensions(list: &[Vec<u8>]) -> Vec<u8> {
    let list: Vec<&[u8]> = list.iter().map(Vec::as_slice).collect();
    element(context(0), &[&sequence(&list)])
}

fn idp(parts: &[&[u8]]) -> Vec<u8> {
    extension(&oid::ISSUING_DISTRIBUTION_POINT, true, &sequence(parts))
}

fn yes(number: u8) -> Vec<u8> {
    element(context_primitive(number), &[&[0xff]])
}

fn with_entries(entries: &[Vec<u8>]) -> Result<RevocationList, CrlError> {
    let list: Vec<&[u8]> = entries.iter().map(Vec::as_slice).collect();
    let entries = sequence(&list);
    let parts = Parts {
        entries,
        ..Parts::default()
    };
    parts.read()
}

fn with_extensions(list: &[Vec<u8>]) -> Result<RevocationList, CrlError> {
    let parts = Parts {
        extensions: extensions(list),
        ..Parts::default()
    };
    parts.read()
}

#[test]
fn a_list_is_read_and_serial_numbers_are_told_apart_by_sign_and_length() {
    let list = Parts::default().read().unwrap();
    assert_eq!(
        (list.len(), list.number().unwrap().to_string()),
        (1, "1".to_owned())
    );
    assert!(list.find(&[7]).is_some() && list.find(&[8]).is_none());

    // 255, -1 and 65535 look alike in hex without leading zeros.
    let list = with_entries(&[entry(&[0, 0xff], &[]), entry(&[1, 0], &[])]).unwrap();
    assert!(list.find(&[0, 0xff]).is_some());
    assert!(
        list.find(&[0, 0, 0xff]).is_some(),
        "a certificate's longer form"
    );
    assert!(list.find(&[0xff]).is_none(), "-1");
    assert!(list.find(&[0xff, 0xff]).is_none(), "-1 in a longer form");
    assert!(list.find(&[1, 0]).is_some() && list.find(&[]).is_none());
    for bad in [&[][..], &[0, 7], &[0xff, 0x80], &[1; 65]] {
        let refused = with_entries(&[entry(bad, &[])]);
        assert!(matches!(refused, Err(CrlError::Der(_))), "{bad:02x?}");
    }
}

#[test]
fn reasons_are_read_and_those_of_delta_lists_are_refused() {
    let reason = |code: u8| {
        let value = element(ENUMERATED, &[&[code]]);
        let extensions = sequence(&[&extension(&oid::CRL_REASON, false, &value)]);
        with_entries(&[entry(&[7], &extensions)]).map(|list| list.find(&[7]).unwrap().reason)
    };
    assert_eq!(reason(1), Ok(Some(Reason::KeyCompromise)));
    assert_eq!(Reason::KeyCompromise.to_string(), "keyCompromise");
    for unknown in [7, 8, 11] {
        assert!(reason(unknown).is_err(), "{unknown}");
    }
}

/// RFC 5280 §5.2, §5.3: a list with a critical extension that isn't understood must not be used.
#[test]
fn critical_extensions_that_are_not_understood_refuse_the_list() {
    let unknown = const_oid::ObjectIdentifier::new_unwrap("1.2.3.4");
    let refused = CrlError::UnknownCritical {
        oid: "1.2.3.4".to_owned(),
    };
    let of_list = |critical| with_extensions(&[extension(&unknown, critical, &[5, 0])]);
    assert!(of_list(false).is_ok());
    assert_eq!(of_list(true).unwrap_err(), refused);
    let of_entry = |critical| {
        let extensions = sequence(&[&extension(&unknown, critical, &[5, 0])]);
        with_entries(&[entry(&[7], &extensions)])
    };
    assert!(of_entry(false).is_ok());
    assert_eq!(of_entry(true).unwrap_err(), refused);
    assert!(matches!(
        with_extensions(&[number(&[1]), number(&[2])]),
        Err(CrlError::DuplicateExtension { .. })
    ));
}

/// RFC 5280 §5.2.4, §5.2.5.
#[test]
fn lists_that_are_not_the_whole_truth_of_their_issuer_are_refused() {
    let delta = extension(&oid::DELTA_CRL_INDICATOR, true, &unsigned(&[1]));
    assert_eq!(with_extensions(&[delta]).unwrap_err(), CrlError::Delta);
    let other = extension(&oid::CERTIFICATE_ISSUER, true, &sequence(&[]));
    let of_another = with_entries(&[entry(&[7], &sequence(&[&other]))]);
    assert_eq!(of_another.unwrap_err(), CrlError::Indirect);

    let kinds = |parts: &[&[u8]]| with_extensions(&[idp(parts)]).map(|list| list.scope().kinds());
    assert_eq!(kinds(&[]), Ok(Covers::All));
    assert_eq!(kinds(&[&yes(1)]), Ok(Covers::EndEntities));
    assert_eq!(kinds(&[&yes(2)]), Ok(Covers::Authorities));
    assert_eq!(kinds(&[&yes(4)]), Err(CrlError::Indirect));
    let some_reasons = element(context_primitive(3), &[&[1, 0x40]]);
    let relative = element(context(0), &[&element(context(1), &[])]);
    for narrow in [yes(5), some_reasons, relative, [yes(1), yes(2)].concat()] {
        assert!(
            matches!(kinds(&[&narrow]), Err(CrlError::Scope { .. })),
            "{narrow:02x?}"
        );
    }
}

#[test]
fn what_is_not_quite_a_list_is_refused() {
    let der = Parts::default().der();
    assert!(RevocationList::parse(&der).is_ok());
    for end in 0..der.len() {
        assert!(RevocationList::parse(&der[..end]).is_err(), "cut at {end}");
    }
    let extra = [&der[..], &[0]].concat();
    assert!(RevocationList::parse(&extra).is_err());
    let default = Parts::default;
    let without_next = Parts {
        next_update: Vec::new(),
        ..default()
    };
    assert_eq!(without_next.read().unwrap_err(), CrlError::NoNextUpdate);
    let sha1 = const_oid::ObjectIdentifier::new_unwrap("1.2.840.10045.4.1");
    let version_1 = Parts {
        version: Vec::new(),
        extensions: Vec::new(),
        ..default()
    };
    assert!(version_1.read().is_ok());
    for bad in [
        Parts {
            version: unsigned(&[2]),
            ..default()
        },
        Parts {
            version: Vec::new(),
            ..default()
        },
        Parts {
            algorithm: sequence(&[&write_oid(&sha1)]),
            ..default()
        },
        Parts {
            trailing: element(NULL, &[]),
            ..default()
        },
        Parts {
            extensions: extensions(&[number(&[1; 21])]),
            ..default()
        },
        // RFC 5280 §5.2.3.
        Parts {
            extensions: extensions(&[extension(&oid::CRL_NUMBER, true, &unsigned(&[1]))]),
            ..default()
        },
    ] {
        assert!(bad.read().is_err());
    }
}

#[test]
fn numbers_are_compared_as_numbers() {
    let of = |magnitude: &[u8]| {
        let list = with_extensions(&[number(magnitude)]).unwrap();
        list.number().cloned().unwrap()
    };
    assert!(of(&[]) < of(&[1]) && of(&[0xff]) < of(&[1, 0]));
    assert_eq!(of(&[1, 0]).to_string(), "256");
    assert_eq!(
        of(&[0xff; 17]).to_string(),
        format!("0x{}", "ff".repeat(17))
    );
}
