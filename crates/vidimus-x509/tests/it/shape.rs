use vidimus_x509::{
    cert::Certificate,
    issue::{PlanError, RequestNames},
    profile::{ExtraExtension, KeyUsage, StaticSans},
};
use x509_cert::der::{Decode, Encode};

use crate::{
    ca::{Ca, TestKey, ca_profile, csr, data, leaf_profile},
    judge::{Bench, openssl, text},
};

fn extensions(der: &[u8]) -> Vec<(String, bool)> {
    let certificate = x509_cert::Certificate::from_der(der).unwrap();
    let extensions = certificate
        .tbs_certificate()
        .extensions()
        .cloned()
        .unwrap_or_default();
    extensions
        .iter()
        .map(|e| (e.extn_id.to_string(), e.critical))
        .collect()
}

fn listed(expected: &[(&str, bool)]) -> Vec<(String, bool)> {
    expected
        .iter()
        .map(|(oid, critical)| ((*oid).to_owned(), *critical))
        .collect()
}

const BASIC: &str = "2.5.29.19";
const USAGE: &str = "2.5.29.15";
const PURPOSE: &str = "2.5.29.37";
const NAMES: &str = "2.5.29.17";
const SUBJECT_KEY: &str = "2.5.29.14";
const AUTHORITY_KEY: &str = "2.5.29.35";

/// C3: a leaf and a CA have exactly the extensions of their profiles; keyUsage is critical.
#[test]
fn certificates_have_exactly_the_extensions_of_their_profile() {
    let ca = Ca::root();
    let leaf = ca.issue_leaf(&csr("p384-sha384"));
    assert_eq!(
        extensions(leaf.der()),
        listed(&[
            (BASIC, true),
            (USAGE, true),
            (PURPOSE, false),
            (NAMES, false),
            (SUBJECT_KEY, false),
            (AUTHORITY_KEY, false),
        ])
    );
    let sub = ca.sub(&ca_profile(Some(0)));
    assert_eq!(
        extensions(sub.der()),
        listed(&[
            (BASIC, true),
            (USAGE, true),
            (SUBJECT_KEY, false),
            (AUTHORITY_KEY, false)
        ])
    );
    let mut bare = leaf_profile();
    bare.key_usage.clear();
    bare.ext_key_usage.clear();
    let bare = ca
        .issue(&bare, &csr("no-names"), &RequestNames::default())
        .unwrap();
    assert_eq!(
        extensions(bare.der()),
        listed(&[(BASIC, true), (SUBJECT_KEY, false), (AUTHORITY_KEY, false)])
    );
}

/// C3: key identifiers: RFC 7093's of the own key, the issuer's as it stands in its certificate.
#[test]
fn key_identifiers_link_a_certificate_to_its_issuer() {
    let ca = Ca::root().sub(&ca_profile(None));
    let signed = ca.issue_leaf(&csr("p384-sha384"));
    let read = Certificate::parse(signed.der()).unwrap();
    let issuer = Certificate::parse(ca.der()).unwrap();
    assert_eq!(read.authority_key_id(), issuer.subject_key_id());
    let spki = x509_cert::spki::SubjectPublicKeyInfoOwned::from_der(read.spki_der()).unwrap();
    let bits = spki.subject_public_key.raw_bytes().to_vec();
    let digest = vidimus_x509::cert::fingerprint_sha256(&bits);
    assert_eq!(read.subject_key_id(), Some(&digest[..20]));
    assert_eq!(
        signed.ski_hex(),
        data_encoding::HEXLOWER.encode(&digest[..20])
    );
    // A parent that numbers its keys in its own way: SHA-1, as openssl does.
    let (key, root) = openssl_root();
    let ca = Ca::of(key, vec![root.clone()]);
    let signed = ca.issue_leaf(&csr("p384-sha384"));
    let read = Certificate::parse(signed.der()).unwrap();
    let root = Certificate::parse(&root).unwrap();
    assert_eq!(read.authority_key_id(), root.subject_key_id());
    assert_ne!(root.subject_key_id().unwrap().len(), 0);
}

/// A root made by openssl, its name encoded in a way that nothing here writes.
fn openssl_root() -> (TestKey, Vec<u8>) {
    let dir = tempfile::tempdir().unwrap();
    let run = |args: &[&str]| openssl(dir.path(), args);
    run(&[
        "genpkey",
        "-algorithm",
        "EC",
        "-pkeyopt",
        "ec_paramgen_curve:P-384",
        "-out",
        "key",
    ]);
    let config = "[req]\ndistinguished_name=dn\nprompt=no\nutf8=yes\nstring_mask=nombstr\n\
                  x509_extensions=ext\n[dn]\nC=DE\nO=Ex\u{e4}mple\nCN=Foreign Root\n\
                  [ext]\nbasicConstraints=critical,CA:TRUE\nkeyUsage=critical,keyCertSign\n\
                  subjectKeyIdentifier=hash\n";
    let path = dir.path().join("config");
    #[expect(
        clippy::disallowed_methods,
        reason = "a scratch file for another program"
    )]
    std::fs::write(&path, config).unwrap();
    let root = run(&[
        "req", "-x509", "-new", "-key", "key", "-config", "config", "-days", "3650", "-sha384",
        "-outform", "DER",
    ]);
    let pkcs8 = run(&[
        "pkcs8", "-topk8", "-nocrypt", "-in", "key", "-outform", "DER",
    ]);
    (TestKey::p384_from_pkcs8(&pkcs8), root)
}

/// X7: an issuer's name is copied byte for byte, in whatever way it was encoded.
#[test]
fn the_issuers_name_is_copied_byte_for_byte() {
    let (key, root) = openssl_root();
    let ca = Ca::of(key, vec![root.clone()]);
    let root = Certificate::parse(&root).unwrap();
    let signed = ca.issue_leaf(&csr("p384-sha384"));
    let read = Certificate::parse(signed.der()).unwrap();
    assert_eq!(read.issuer_der(), root.subject_der());
    assert_eq!(read.issuer_text(), "CN=Foreign Root,O=Exämple,C=DE");
    // T61String, which nothing here writes: a re-encoding would be something else.
    assert!(
        root.subject_der()
            .windows(9)
            .any(|w| w == b"\x14\x07Ex\xe4mple")
    );
    let bench = Bench::new(&ca);
    let now = ca.issuer.not_before() + std::time::Duration::from_secs(3600);
    let now = now
        .duration_since(std::time::SystemTime::UNIX_EPOCH)
        .unwrap()
        .as_secs();
    let plan = leaf_profile().certificate(
        &csr("p384-sha384"),
        &RequestNames::default(),
        &ca.issuer,
        std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(now),
        crate::ca::serial(),
    );
    let signed = plan.unwrap().sign(&ca.key).unwrap();
    bench
        .openssl_at(signed.der(), "sslserver", &now.to_string())
        .unwrap();
}

/// C3: every kind of static name, as openssl shows it, and the otherNames to the byte.
#[test]
fn static_names_of_every_kind_are_stamped() {
    let ca = Ca::root();
    let mut profile = leaf_profile();
    profile.allow_request_sans = false;
    profile.sans = StaticSans {
        dns: vec!["*.Example.org".to_owned(), "localhost".to_owned()],
        ip: vec!["192.0.2.1".parse().unwrap(), "2001:db8::1".parse().unwrap()],
        email: vec!["ops@example.org".to_owned()],
        uri: vec!["spiffe://example.org/web".to_owned()],
        krb5_principal: vec![
            "host/web@EXAMPLE.ORG".to_owned(),
            "krbtgt/A@EXAMPLE.ORG".to_owned(),
        ],
        upn: vec!["ädmin@example.org".to_owned()],
    };
    let signed = ca
        .issue(&profile, &csr("p384-sha384"), &RequestNames::default())
        .unwrap();
    assert_eq!(
        signed.names(),
        [
            "*.example.org",
            "localhost",
            "192.0.2.1",
            "2001:db8::1",
            "email:ops@example.org",
            "URI:spiffe://example.org/web",
            "krb5:host/web@EXAMPLE.ORG",
            "krb5:krbtgt/A@EXAMPLE.ORG",
            "upn:ädmin@example.org",
        ]
    );
    let shown = text(signed.der());
    for part in [
        "DNS:*.example.org, DNS:localhost, IP Address:192.0.2.1, IP Address:2001:DB8:0:0:0:0:0:1",
        "email:ops@example.org, URI:spiffe://example.org/web",
    ] {
        assert!(shown.contains(part), "{shown}");
    }
    Bench::new(&ca).openssl(signed.der(), "sslserver").unwrap();
    Bench::new(&ca).go("server", &[signed.der()]).unwrap();

    let has = |bytes: &[u8]| {
        signed
            .der()
            .windows(bytes.len())
            .any(|window| window == bytes)
    };
    // KRB5PrincipalName { realm [0], principalName [1] { name-type [0], name-string [1] } }
    assert!(has(b"\xa0\x0d\x1b\x0bEXAMPLE.ORG\xa1"), "the realm");
    assert!(
        has(b"\xa0\x03\x02\x01\x01\xa1\x0d\x30\x0b\x1b\x04host\x1b\x03web"),
        "name type 1"
    );
    assert!(
        has(b"\xa0\x03\x02\x01\x02\xa1\x0d\x30\x0b\x1b\x06krbtgt\x1b\x01A"),
        "name type 2"
    );
    assert!(
        has(b"\x06\x06\x2b\x06\x01\x05\x02\x02\xa0"),
        "id-pkinit-san"
    );
    assert!(
        has(b"\x82\x37\x14\x02\x03\xa0\x14\x0c\x12\xc3\xa4dmin@example.org"),
        "the UPN"
    );
}

/// RFC 5280 §4.2.1.6: only without a subject is subjectAltName critical; without both there is
/// nobody to certify.
#[test]
fn names_are_critical_only_where_there_is_no_subject() {
    let ca = Ca::root();
    let nameless = ca.issue_leaf(&csr("no-subject"));
    assert!(extensions(nameless.der()).contains(&(NAMES.to_owned(), true)));
    Bench::new(&ca)
        .openssl(nameless.der(), "sslserver")
        .unwrap();
    Bench::new(&ca).go("server", &[nameless.der()]).unwrap();
    let named = ca.issue_leaf(&csr("p384-sha384"));
    assert!(extensions(named.der()).contains(&(NAMES.to_owned(), false)));
    let profile = leaf_profile();
    let refused = ca
        .issue(&profile, &csr("nothing"), &RequestNames::default())
        .unwrap_err();
    assert_eq!(refused, PlanError::Nameless);
    let dns = vec!["a.example.org".to_owned()];
    ca.issue(&profile, &csr("nothing"), &RequestNames { dns, ip: vec![] })
        .unwrap();
}

/// C3: further extensions stand at the end, as they are.
#[test]
fn extra_extensions_are_added_as_they_are() {
    let ca = Ca::root();
    let mut profile = leaf_profile();
    profile.extra_extensions = vec![
        ExtraExtension {
            oid: "1.3.6.1.4.1.55555.1".parse().unwrap(),
            critical: false,
            value: b"\x0c\x05hello".to_vec(),
        },
        ExtraExtension {
            oid: "2.999.7".parse().unwrap(),
            critical: false,
            value: vec![5, 0],
        },
    ];
    let signed = ca
        .issue(&profile, &csr("p384-sha384"), &RequestNames::default())
        .unwrap();
    let shown = text(signed.der());
    assert!(
        shown.contains("1.3.6.1.4.1.55555.1: \n                ..hello\n"),
        "{shown}"
    );
    assert!(shown.contains("2.999.7"), "{shown}");
    Bench::new(&ca).openssl(signed.der(), "sslserver").unwrap();

    // A ready-made subjectAltName speaks for a certificate without a subject.
    profile.allow_request_sans = false;
    profile.extra_extensions = vec![ExtraExtension {
        oid: NAMES.parse().unwrap(),
        critical: false,
        value: b"\x30\x0f\x82\x0da.example.org".to_vec(),
    }];
    let signed = ca
        .issue(&profile, &csr("nothing"), &RequestNames::default())
        .unwrap();
    assert!(extensions(signed.der()).contains(&(NAMES.to_owned(), true)));
    Bench::new(&ca).openssl(signed.der(), "sslserver").unwrap();
}

/// C3: each bit of keyUsage is the one that openssl names.
#[test]
fn key_usages_are_the_bits_they_are_named_for() {
    let ca = Ca::root();
    for (usages, shown) in [
        (vec![KeyUsage::DigitalSignature], "Digital Signature"),
        (vec![KeyUsage::KeyEncipherment], "Key Encipherment"),
        (vec![KeyUsage::KeyAgreement], "Key Agreement"),
        (
            vec![
                KeyUsage::KeyAgreement,
                KeyUsage::DigitalSignature,
                KeyUsage::KeyEncipherment,
            ],
            "Digital Signature, Key Encipherment, Key Agreement",
        ),
        (vec![KeyUsage::CrlSign], "CRL Sign"),
    ] {
        let mut profile = leaf_profile();
        profile.key_usage = usages;
        let signed = ca
            .issue(&profile, &csr("p384-sha384"), &RequestNames::default())
            .unwrap();
        let line = format!("X509v3 Key Usage: critical\n                {shown}\n");
        assert!(text(signed.der()).contains(&line));
    }
}

/// The serial number is positive, ours, and the same everywhere.
#[test]
fn the_serial_number_is_positive_and_shown_the_same_everywhere() {
    let ca = Ca::root();
    for _ in 0..64 {
        let signed = ca.issue_leaf(&csr("p384-sha384"));
        let read = Certificate::parse(signed.der()).unwrap();
        assert_eq!(read.serial_hex(), signed.serial().to_string());
        let theirs = x509_cert::Certificate::from_der(signed.der()).unwrap();
        let serial = theirs.tbs_certificate().serial_number().as_bytes().to_vec();
        assert!(serial.len() <= 17 && serial[0] < 0x80 && serial != [0]);
        assert_eq!(theirs.to_der().unwrap(), signed.der());
    }
}

/// The data that this suite reads is what it says it is.
#[test]
fn every_committed_request_is_named_in_some_test() {
    let sources: String = [
        include_str!("accepted.rs"),
        include_str!("refused.rs"),
        include_str!("names.rs"),
        include_str!("shape.rs"),
        include_str!("subordinate.rs"),
    ]
    .concat();
    for entry in std::fs::read_dir(data("csr")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let name = name.strip_suffix(".der").unwrap_or(&name).to_owned();
        assert!(sources.contains(&format!("\"{name}\"")), "{name}");
    }
}
