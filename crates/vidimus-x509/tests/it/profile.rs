use vidimus_x509::{
    issue::{PlanError, Refusal, RequestNames},
    key::KeyAlgorithm,
    profile::{ExtendedKeyUsage, ExtraExtension, KeyUsage, Profile},
};

use crate::ca::{Ca, ca_profile, csr, leaf_profile};

fn extension(oid: &str, value: &[u8]) -> ExtraExtension {
    ExtraExtension {
        oid: oid.parse().unwrap(),
        critical: false,
        value: value.to_vec(),
    }
}

/// The fields that `change` makes wrong, in order.
fn problems(change: fn(&mut Profile)) -> Vec<String> {
    let mut profile = leaf_profile();
    change(&mut profile);
    problems_of(&profile)
}

fn problems_of(profile: &Profile) -> Vec<String> {
    let problems = profile.check().err().unwrap_or_default();
    assert!(
        problems
            .iter()
            .all(|p| !p.found.is_empty() && !p.accepted.is_empty())
    );
    problems.into_iter().map(|problem| problem.field).collect()
}

/// C3: ordinary profiles have no problems.
#[test]
fn ordinary_profiles_pass() {
    assert_eq!(problems(|_| {}), [""; 0]);
    for path_len in [None, Some(0), Some(255)] {
        assert_eq!(problems_of(&ca_profile(path_len)), [""; 0]);
    }
    assert_eq!(
        problems(|p| p.extra_extensions = vec![extension("1.2.3.4", &[5, 0])]),
        [""; 0]
    );
}

/// C3: a leaf can't sign certificates and a CA must be able to, among the rest of what is refused;
/// one line a case.
#[test]
fn contradictions_are_refused_by_field() {
    type Case = (fn(&mut Profile), &'static [&'static str]);
    let cases: [Case; 16] = [
        (|p| p.name.clear(), &["name"]),
        (|p| p.validity_days = 0, &["validity_days"]),
        (|p| p.key_usage.push(KeyUsage::CertSign), &["key_usage"]),
        (
            |p| p.basic_constraints.path_len = Some(0),
            &["basic_constraints.path_len"],
        ),
        (
            |p| p.basic_constraints.is_ca = true,
            &["key_usage", "allow_request_sans"],
        ),
        (
            |p| p.key_usage.push(KeyUsage::DigitalSignature),
            &["key_usage[1]"],
        ),
        (
            |p| p.ext_key_usage.push(ExtendedKeyUsage::ServerAuth),
            &["ext_key_usage[2]"],
        ),
        (
            |p| p.ext_key_usage.push("1.3.6.1.5.5.7.3.2".parse().unwrap()),
            &["ext_key_usage[2]"],
        ),
        (
            |p| p.sans.dns = vec!["ok".into(), "not ok".into()],
            &["sans.dns[1]"],
        ),
        (
            |p| p.sans.ip = vec!["0.0.0.0".parse().unwrap()],
            &["sans.ip[0]"],
        ),
        (
            |p| p.sans.email = vec!["no address".into()],
            &["sans.email[0]"],
        ),
        (|p| p.sans.uri = vec!["/relative".into()], &["sans.uri[0]"]),
        (|p| p.sans.upn = vec!["nobody".into()], &["sans.upn[0]"]),
        (|p| p.sans.dns = vec!["a".into(); 101], &["sans.dns"]),
        (
            |p| p.subject.country = "Germany".into(),
            &["subject.country"],
        ),
        (
            |p| {
                p.name.clear();
                p.validity_days = 0;
                p.subject.common_name = "x".repeat(65);
            },
            &["name", "validity_days", "subject.common_name"],
        ),
    ];
    for (index, (change, fields)) in cases.into_iter().enumerate() {
        assert_eq!(problems(change), fields, "case {index}");
    }
}

/// C3: Kerberos principals are `name[/instance]@REALM`.
#[test]
fn kerberos_principals_have_a_name_and_a_realm() {
    for (principal, good) in [
        ("host@EXAMPLE.ORG", true),
        ("host/web@EXAMPLE.ORG", true),
        ("krbtgt/EXAMPLE.ORG@EXAMPLE.ORG", true),
        ("host", false),
        ("@EXAMPLE.ORG", false),
        ("host@", false),
        ("host/@EXAMPLE.ORG", false),
        ("/web@EXAMPLE.ORG", false),
        ("a/b/c@EXAMPLE.ORG", false),
        ("a@b@EXAMPLE.ORG", false),
        ("hé@EXAMPLE.ORG", false),
        ("a b@EXAMPLE.ORG", false),
    ] {
        let mut profile = leaf_profile();
        profile.sans.krb5_principal = vec![principal.to_owned()];
        assert_eq!(problems_of(&profile).is_empty(), good, "{principal}");
    }
}

/// C3: an extra extension is one DER element, once, and none that another field makes.
#[test]
fn extra_extensions_must_not_contradict_the_profile() {
    for own in [
        "2.5.29.19",
        "2.5.29.15",
        "2.5.29.14",
        "2.5.29.35",
        "2.5.29.37",
        "2.5.29.17",
    ] {
        let mut profile = leaf_profile();
        profile.extra_extensions = vec![extension(own, b"\x30\x00")];
        assert_eq!(problems_of(&profile)[0], "extra_extensions[0].oid", "{own}");
    }
    let mut profile = leaf_profile();
    profile.extra_extensions = vec![extension("1.2.3", &[5, 0]), extension("1.2.3", &[5, 0])];
    assert_eq!(problems_of(&profile), ["extra_extensions[1].oid"]);
    for value in [
        &b""[..],
        b"\x05",
        b"\x05\x00\x05\x00",
        b"\x30\x03\x02\x05\x01",
        b"\x30\x80\x00\x00",
        b"junk",
        b"\x01\x01\x01",
    ] {
        profile.extra_extensions = vec![extension("1.2.3", value)];
        assert_eq!(
            problems_of(&profile),
            ["extra_extensions[0].value"],
            "{value:x?}"
        );
    }
    // A raw subjectAltName is fine where nothing else makes one, if it is one.
    profile.allow_request_sans = false;
    profile.extra_extensions = vec![extension("2.5.29.17", b"\x30\x0f\x82\x0da.example.org")];
    assert_eq!(problems_of(&profile), [""; 0]);
    profile.extra_extensions = vec![extension("2.5.29.17", b"\x30\x00")];
    assert_eq!(problems_of(&profile), ["extra_extensions[0].value"]);
    profile.extra_extensions = vec![extension("2.5.29.17", b"\x30\x0f\x82\x0da.example.org")];
    profile.sans.krb5_principal = vec!["a@EXAMPLE.ORG".to_owned()];
    assert_eq!(problems_of(&profile), ["extra_extensions[0].oid"]);
}

/// C3: an unusable profile issues nothing, and the message has every problem.
#[test]
fn an_unusable_profile_issues_nothing() {
    let ca = Ca::root();
    let mut profile = leaf_profile();
    profile.key_usage.push(KeyUsage::CertSign);
    profile.validity_days = 0;
    let refused = ca
        .issue(&profile, &csr("p384-sha384"), &RequestNames::default())
        .unwrap_err();
    assert_eq!(refused.kind(), Refusal::Policy);
    assert!(matches!(&refused, PlanError::Profile { problems, .. } if problems.len() == 2));
    let text = refused.to_string();
    assert!(
        text.contains("validity_days is 0; accepted: at least 1"),
        "{text}"
    );
    assert!(text.contains("cert_sign on a leaf profile"), "{text}");
}

/// C3: the profile's key algorithm is for keys the node makes; others' keys are as they are.
#[test]
fn a_profiles_key_algorithm_does_not_bind_subject_keys() {
    let ca = Ca::root();
    let mut profile = leaf_profile();
    profile.key_alg = KeyAlgorithm::Rsa4096;
    ca.issue(&profile, &csr("p384-sha384"), &RequestNames::default())
        .unwrap();
    for (text, algorithm) in [
        ("ECDSA-P384", KeyAlgorithm::EcdsaP384),
        ("RSA-3072", KeyAlgorithm::Rsa3072),
        ("RSA-4096", KeyAlgorithm::Rsa4096),
    ] {
        assert_eq!(
            (text.parse(), algorithm.to_string()),
            (Ok(algorithm), text.to_owned())
        );
    }
    let refused = "RSA-2048".parse::<KeyAlgorithm>().unwrap_err();
    assert!(
        refused
            .to_string()
            .contains("accepted: ECDSA-P384, RSA-3072, RSA-4096")
    );
}
