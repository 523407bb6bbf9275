//! Whatever a profile and a request say: no panic, and what is issued is valid and bounded.

use std::time::{Duration, SystemTime};

use proptest::{
    prelude::*,
    sample::{Index, subsequence},
    string::string_regex,
};
use vidimus_x509::{
    cert::Certificate,
    csr::VerifiedCsr,
    fuzzing,
    issue::{self, RequestNames},
    key::KeyAlgorithm,
    pem,
    profile::{
        BasicConstraints, ExtendedKeyUsage, ExtraExtension, KeyUsage, Profile, StaticSans,
        SubjectFields, ValidityPolicy,
    },
    serial::Serial,
    signer::Signer,
};
use x509_cert::der::{Decode, Encode};

use crate::ca::{Ca, TestKey, ca_profile, csr, csr_bytes, now};

/// Mostly names that are fine, sometimes anything.
fn name() -> impl Strategy<Value = String> {
    prop_oneof![
        60 => "[a-z][a-z0-9]{0,8}(\\.[a-z][a-z0-9]{0,8}){1,3}",
        1 => "\\PC{0,40}",
        1 => any::<String>(),
    ]
}

fn text(at_most: usize) -> impl Strategy<Value = String> {
    prop_oneof![
        20 => string_regex(&format!("[A-Za-z0-9 é,.-]{{0,{at_most}}}")).unwrap(),
        1 => any::<String>(),
    ]
}

fn subject() -> impl Strategy<Value = SubjectFields> {
    (
        text(30),
        text(30),
        prop_oneof![Just(String::new()), Just("DE".to_owned())],
    )
        .prop_map(|(common_name, organization, country)| SubjectFields {
            common_name,
            organization,
            country,
            ..SubjectFields::default()
        })
}

fn sans() -> impl Strategy<Value = StaticSans> {
    let few = |names| prop::collection::vec(names, 0..3);
    (
        few(name().boxed()),
        prop::collection::vec(any::<std::net::IpAddr>(), 0..3),
        few(name().prop_map(|name| format!("a@{name}")).boxed()),
        few(name().prop_map(|name| format!("spiffe://{name}")).boxed()),
        few(name().prop_map(|name| format!("host/a@{name}")).boxed()),
        few(name().prop_map(|name| format!("a@{name}")).boxed()),
    )
        .prop_map(|(dns, ip, email, uri, krb5_principal, upn)| StaticSans {
            dns,
            ip,
            email,
            uri,
            krb5_principal,
            upn,
        })
}

fn extension() -> impl Strategy<Value = ExtraExtension> {
    let value = prop_oneof![
        20 => prop::collection::vec(any::<u8>(), 0..100).prop_map(|bytes| {
            let mut value = vec![0x04, u8::try_from(bytes.len()).unwrap()];
            value.extend(bytes);
            value
        }),
        1 => prop::collection::vec(any::<u8>(), 0..100),
    ];
    let oid = prop_oneof![
        20 => (0..2000_u32).prop_map(|arc| format!("1.3.6.1.4.1.55555.{arc}")),
        1 => Just("2.5.29.17".to_owned()),
    ];
    (oid, any::<bool>(), value).prop_map(|(oid, critical, value)| ExtraExtension {
        oid: oid.parse().unwrap(),
        critical,
        value,
    })
}

fn profile() -> impl Strategy<Value = Profile> {
    const USAGES: [KeyUsage; 5] = [
        KeyUsage::DigitalSignature,
        KeyUsage::KeyEncipherment,
        KeyUsage::KeyAgreement,
        KeyUsage::CertSign,
        KeyUsage::CrlSign,
    ];
    let purposes = vec![
        ExtendedKeyUsage::ServerAuth,
        ExtendedKeyUsage::ClientAuth,
        ExtendedKeyUsage::Oid("2.999.1".parse().unwrap()),
    ];
    let days = prop_oneof![9 => 1..4000_u32, 1 => Just(0), 1 => Just(u32::MAX), 1 => any::<u32>()];
    let policy = prop_oneof![3 => Just(ValidityPolicy::Cap), 1 => Just(ValidityPolicy::Reject)];
    (
        (subject(), days, policy),
        (
            any::<bool>(),
            any::<Option<u8>>(),
            prop::bool::weighted(0.9),
        ),
        subsequence(USAGES.to_vec(), 0..=5),
        subsequence(purposes, 0..=3),
        (sans(), any::<bool>()),
        prop::collection::vec(extension(), 0..3),
    )
        .prop_map(
            |(
                (subject, validity_days, validity_policy),
                (is_ca, path_len, honest),
                usages,
                purposes,
                (sans, allow),
                extra,
            )| {
                // Mostly what makes sense, so that enough is issued to be looked at.
                let mut key_usage = usages;
                if honest {
                    key_usage.retain(|usage| *usage != KeyUsage::CertSign);
                    if is_ca {
                        key_usage.push(KeyUsage::CertSign);
                    }
                }
                Profile {
                    name: "random".to_owned(),
                    key_alg: KeyAlgorithm::EcdsaP384,
                    subject,
                    validity_days,
                    validity_policy,
                    basic_constraints: BasicConstraints {
                        is_ca,
                        path_len: path_len.filter(|_| is_ca || !honest),
                    },
                    key_usage,
                    ext_key_usage: purposes,
                    sans,
                    allow_request_sans: allow && !(is_ca && honest),
                    extra_extensions: extra,
                }
            },
        )
}

fn names() -> impl Strategy<Value = RequestNames> {
    let ip = prop_oneof![
        3 => Just(Vec::new()),
        1 => prop::collection::vec(any::<std::net::IpAddr>(), 0..4),
    ];
    let dns = prop_oneof![2 => Just(Vec::new()), 1 => prop::collection::vec(name(), 0..4)];
    (dns, ip).prop_map(|(dns, ip)| RequestNames { dns, ip })
}

fn config(cases: u32) -> ProptestConfig {
    ProptestConfig {
        cases,
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

struct World {
    cas: Vec<Ca>,
    key: TestKey,
    requests: Vec<VerifiedCsr>,
}

impl World {
    fn new() -> Self {
        let root = Ca::root();
        let cas = vec![
            root.sub(&ca_profile(None)),
            root.sub(&ca_profile(Some(0))),
            root.sub(&ca_profile(Some(2))),
            Ca::root_of(TestKey::rsa3072()),
            root,
        ];
        let requests = [
            "p384-sha384",
            "rsa3072-sha256",
            "odd",
            "nothing",
            "no-subject",
            "no-names",
        ];
        Self {
            cas,
            key: TestKey::p384(),
            requests: requests.map(csr).to_vec(),
        }
    }
}

/// X1. X2. X14. C3: whatever profile, request, time and issuer: either a refusal, or a certificate
/// that another library reads and writes back byte for byte, within its issuer's time and depth,
/// with the request's key.
#[test]
fn whatever_is_issued_is_valid_der_within_its_issuers_bounds() {
    let world = World::new();
    let issued = std::cell::Cell::new(0);
    let offset = prop_oneof![
        8 => 0..30_000_000_u64,
        2 => 0..300_000_000_u64,
        1 => any::<u64>().prop_map(|n| n >> 20),
    ];
    let input = (
        profile(),
        names(),
        0..world.cas.len(),
        0..world.requests.len(),
        (offset, any::<[u8; 16]>()),
        (subject(), names()),
    );
    let outcome = proptest::test_runner::TestRunner::new(config(600)).run(
        &input,
        |(profile, names, ca, request, (offset, serial), (subject, wished))| {
            let ca = &world.cas[ca];
            // A request of random content where that can be made, one of openssl's otherwise.
            let random = issue::request(&subject, &wished, &world.key);
            let random = random.ok().map(|der| VerifiedCsr::parse(&der).unwrap());
            let csr = random.as_ref().unwrap_or(&world.requests[request]);
            let Some(at) = now().checked_add(Duration::from_secs(offset)) else {
                return Ok(());
            };
            let Ok(serial) = Serial::from_bytes(serial) else {
                return Ok(());
            };
            match profile.certificate(csr, &names, &ca.issuer, at, serial) {
                Ok(plan) => {
                    let signed = plan.sign(&ca.key).unwrap();
                    check(ca, csr, &profile, at, serial, signed.der())?;
                    issued.set(issued.get() + 1);
                }
                Err(refused) => {
                    let text = refused.to_string();
                    prop_assert!(!text.is_empty() && !text.ends_with('.'));
                    let _kind = refused.kind();
                }
            }
            Ok(())
        },
    );
    outcome.unwrap();
    assert!(
        issued.get() > 100,
        "too little was issued to mean anything: {}",
        issued.get()
    );
}

fn check(
    ca: &Ca,
    csr: &VerifiedCsr,
    profile: &Profile,
    at: SystemTime,
    serial: Serial,
    der: &[u8],
) -> Result<(), TestCaseError> {
    let theirs = x509_cert::Certificate::from_der(der).unwrap();
    prop_assert_eq!(theirs.to_der().unwrap(), der);
    let tbs = theirs.tbs_certificate();
    prop_assert_eq!(
        tbs.subject_public_key_info().to_der().unwrap(),
        csr.spki_der()
    );
    prop_assert_eq!(tbs.subject().to_der().unwrap(), csr.subject_der());
    prop_assert_eq!(tbs.issuer().to_der().unwrap(), ca.issuer.subject_der());
    let validity = tbs.validity();
    prop_assert!(validity.not_after.to_system_time() <= ca.issuer.not_after());
    prop_assert!(validity.not_before.to_system_time() >= ca.issuer.not_before());
    prop_assert!(validity.not_before.to_system_time() <= at);
    let ours = Certificate::parse(der).unwrap();
    ours.verify_signature(ca.key.spki_der()).unwrap();
    prop_assert_eq!(ours.serial_hex(), serial.to_string());
    prop_assert_eq!(ours.is_ca(), profile.basic_constraints.is_ca);
    if let Some(limit) = ca.issuer.path_len().filter(|_| ours.is_ca()) {
        prop_assert!(ours.path_len().is_some_and(|path_len| path_len < limit));
    }
    prop_assert!(ours.is_ca() || ours.path_len().is_none());
    let someone = !ours.subject_text().is_empty()
        || tbs
            .extensions()
            .is_some_and(|all| all.iter().any(|e| e.extn_id.to_string() == "2.5.29.17"));
    prop_assert!(someone, "it certifies nobody");
    Ok(())
}

proptest! {
    #![proptest_config(config(500))]

    /// C5: no bytes make a reader panic.
    #[test]
    fn readers_take_any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
        fuzzing::csr(&bytes);
        fuzzing::pem(&bytes);
        fuzzing::cert(&bytes);
    }

    /// C5: nor do real requests with some bytes changed, cut out or doubled.
    #[test]
    fn readers_take_damaged_requests(
        name in prop::sample::select(vec!["odd", "p384-sha384", "rsa3072-pss-sha384", "text.pem"]),
        changes in prop::collection::vec((any::<Index>(), any::<u8>(), 0..3_u8), 1..6),
    ) {
        let mut bytes = csr_bytes(name);
        for (at, byte, how) in changes {
            let at = at.index(bytes.len());
            match how {
                0 => bytes[at] = byte,
                1 => drop(bytes.remove(at)),
                _ => bytes.insert(at, byte),
            }
        }
        fuzzing::csr(&bytes);
        fuzzing::pem(&bytes);
        fuzzing::cert(&bytes);
    }

    /// Serial numbers come back from the hex that shows them, however they are pasted.
    #[test]
    fn serial_numbers_come_back_from_their_text(bytes in any::<[u8; 16]>()) {
        if let Ok(serial) = Serial::from_bytes(bytes) {
            let text = serial.to_string();
            prop_assert!(!text.starts_with('0'));
            let pairs = text.as_bytes().chunks(2).map(String::from_utf8_lossy);
            let colons = pairs.collect::<Vec<_>>().join(":");
            let (prefixed, upper) = (format!("0x00{text}"), text.to_uppercase());
            for pasted in [text.clone(), prefixed, upper, colons, format!(" {text} ")] {
                prop_assert_eq!(Serial::parse_hex(&pasted), Ok(serial));
            }
        }
    }

    /// PEM text comes back as the bytes it was made of.
    #[test]
    fn pem_comes_back(content in prop::collection::vec(any::<u8>(), 0..500)) {
        let length = u16::try_from(content.len()).unwrap().to_be_bytes();
        let mut der = match content.len() {
            0..=0x7f => vec![0x30, length[1]],
            0x80..=0xff => vec![0x30, 0x81, length[1]],
            _ => vec![0x30, 0x82, length[0], length[1]],
        };
        der.extend(content);
        let text = pem::encode(pem::CERTIFICATE, &der);
        prop_assert_eq!(pem::certificates(text.as_bytes()), Ok(vec![der]));
    }
}
