use vidimus_x509::{
    cert::Certificate,
    issue::{self, PlanError},
    profile::SubjectFields,
    signer::{SignError, SignatureAlgorithm, Signer},
};

use crate::{
    ca::{Ca, TestKey, csr, days, leaf_profile, named, now, serial},
    judge::{Bench, text},
};

/// K9: a root is signed by the key it contains, and has exactly the extensions that a root needs.
#[test]
fn a_root_verifies_under_the_key_it_contains() {
    for key in [TestKey::p384(), TestKey::rsa3072()] {
        let ca = Ca::root_of(key);
        let read = Certificate::parse(ca.der()).unwrap();
        read.verify_signature(read.spki_der()).unwrap();
        assert_eq!(read.spki_der(), ca.key.spki_der());
        assert_eq!(read.issuer_der(), read.subject_der());
        assert!(read.is_ca() && read.path_len().is_none());
        assert_eq!(read.key_usage(), Some(&["keyCertSign", "cRLSign"][..]));
        assert_eq!(read.subject_key_id(), read.authority_key_id());
        assert!(read.ext_key_usage().is_empty() && read.dns_names().is_empty());
        assert_eq!(read.subject_text(), "CN=Test Root,O=Example");
        Bench::new(&ca).openssl(ca.der(), "any").unwrap();
        Bench::new(&ca).go("any", &[ca.der()]).unwrap();
        let shown = text(ca.der());
        let extensions = shown
            .lines()
            .filter(|line| line.starts_with("            X509v3"))
            .count();
        assert_eq!(extensions, 4, "{shown}");
        assert!(shown.contains("X509v3 Basic Constraints: critical\n                CA:TRUE\n"));
        assert!(shown.contains("X509v3 Key Usage: critical\n"));
    }
}

/// Says it holds one key, and signs with another.
#[derive(Debug)]
struct TwoKeys {
    shown: TestKey,
    used: TestKey,
}

impl Signer for TwoKeys {
    fn spki_der(&self) -> &[u8] {
        self.shown.spki_der()
    }

    fn algorithm(&self) -> SignatureAlgorithm {
        self.used.algorithm()
    }

    fn sign(&self, message: &[u8]) -> Result<Vec<u8>, SignError> {
        self.used.sign(message)
    }
}

/// K9: the two-key defect: a CA certificate whose key isn't the one that signed it is never made.
#[test]
fn a_root_signed_by_another_key_is_never_made() {
    let (shown, used) = (TestKey::p384(), TestKey::p384());
    let plan = issue::root_plan(&named("Root"), shown.spki_der(), 10, now(), serial()).unwrap();
    plan.clone().sign(&shown).unwrap();
    assert!(matches!(plan.clone().sign(&used), Err(SignError::WrongKey)));
    let liar = TwoKeys { shown, used };
    let refused = plan.clone().sign(&liar).unwrap_err();
    assert!(
        matches!(refused, SignError::NotVerified { .. }),
        "{refused:?}"
    );
    let refused = issue::request(&named("CA"), &Default::default(), &liar).unwrap_err();
    assert!(
        matches!(
            &refused,
            issue::RequestError::Sign(SignError::NotVerified { .. })
        ),
        "{refused:?}"
    );
    let rsa = TwoKeys {
        shown: liar.shown,
        used: TestKey::rsa3072(),
    };
    assert!(matches!(
        plan.sign(&rsa),
        Err(SignError::WrongAlgorithm { .. })
    ));
}

/// K9: a leaf is signed by its issuer's key or not at all.
#[test]
fn a_leaf_is_signed_by_the_key_in_the_issuers_certificate() {
    let ca = Ca::root();
    let plan = || {
        let csr = csr("p384-sha384");
        leaf_profile()
            .certificate(&csr, &Default::default(), &ca.issuer, now(), serial())
            .unwrap()
    };
    plan().sign(&ca.key).unwrap();
    assert!(matches!(
        plan().sign(&TestKey::p384()),
        Err(SignError::WrongKey)
    ));
    assert!(matches!(
        plan().sign(&TestKey::rsa3072()),
        Err(SignError::WrongKey)
    ));
}

/// C3: a root's lifetime is 1 to 30 calendar years.
#[test]
fn a_root_lasts_1_to_30_calendar_years() {
    let key = TestKey::p384();
    let plan = |years, at| issue::root_plan(&named("Root"), key.spki_der(), years, at, serial());
    for years in [0, 31, u32::MAX] {
        assert_eq!(
            plan(years, now()).unwrap_err(),
            PlanError::Years { found: years }
        );
    }
    for (years, day_count) in [(1, 365), (4, 1461), (30, 10_958)] {
        assert_eq!(
            plan(years, now()).unwrap().not_after(),
            now() + days(day_count),
            "{years}"
        );
    }
    // 2028-02-29T08:00:00Z: four years on there is a leap day again, one year on there isn't.
    let leap_day = now() + days(410);
    assert_eq!(
        plan(4, leap_day).unwrap().not_after(),
        leap_day + days(1461)
    );
    assert_eq!(plan(1, leap_day).unwrap().not_after(), leap_day + days(366));
}

/// C3: what can't be a subject is refused with every problem at once.
#[test]
fn a_roots_subject_is_checked() {
    let key = TestKey::p384();
    let plan =
        |subject: &SubjectFields| issue::root_plan(subject, key.spki_der(), 10, now(), serial());
    assert_eq!(
        plan(&SubjectFields::default()).unwrap_err(),
        PlanError::NamelessCa
    );
    let bad = SubjectFields {
        common_name: "x".repeat(65),
        country: "Germany".to_owned(),
        locality: "a\nb".to_owned(),
        ..SubjectFields::default()
    };
    let PlanError::Subject { problems } = plan(&bad).unwrap_err() else {
        panic!();
    };
    let fields: Vec<&str> = problems
        .iter()
        .map(|problem| problem.field.as_str())
        .collect();
    assert_eq!(
        fields,
        ["subject.common_name", "subject.locality", "subject.country"]
    );
    let whole = SubjectFields {
        common_name: "é".repeat(64),
        organization: "Example, Inc.".to_owned(),
        country: "DE".to_owned(),
        province: "Bayern".to_owned(),
        locality: "München".to_owned(),
    };
    let der = plan(&whole).unwrap().sign(&key).unwrap().der().to_vec();
    let read = Certificate::parse(&der).unwrap();
    let expected = format!(
        "CN={},O=Example\\, Inc.,L=München,ST=Bayern,C=DE",
        whole.common_name
    );
    assert_eq!(read.subject_text(), expected);
    Ca::of(key, vec![der]);
}

/// C5: a CA's own key keeps to the policy as well.
#[test]
fn a_root_of_another_key_is_refused() {
    let spki = |file: &str| {
        let dir = tempfile::tempdir().unwrap();
        let path = crate::ca::data("csr").join(file);
        let args = [
            "req",
            "-inform",
            "DER",
            "-in",
            path.to_str().unwrap(),
            "-noout",
            "-pubkey",
        ];
        let text = crate::judge::openssl(dir.path(), &args);
        vidimus_x509::pem::decode("PUBLIC KEY", &text).unwrap()
    };
    let plan = |spki: &[u8]| issue::root_plan(&named("Root"), spki, 10, now(), serial());
    plan(&spki("p384-sha384.der")).unwrap();
    for refused in ["p256.der", "rsa2048.der", "ed25519.der"] {
        assert!(
            matches!(plan(&spki(refused)), Err(PlanError::Key(_))),
            "{refused}"
        );
    }
    assert!(matches!(plan(b"junk"), Err(PlanError::Key(_))));
}

/// An administrator's certificate stands for itself: a client's, and no CA's.
#[test]
fn a_self_signed_client_certificate_is_no_ca() {
    let key = TestKey::p384();
    let plan =
        issue::self_signed_client_plan(&named("admin"), key.spki_der(), 365, now(), serial());
    let signed = plan.unwrap().sign(&key).unwrap();
    let read = Certificate::parse(signed.der()).unwrap();
    read.verify_signature(key.spki_der()).unwrap();
    assert!(!read.is_ca());
    assert_eq!(read.key_usage(), Some(&["digitalSignature"][..]));
    assert_eq!(read.ext_key_usage(), ["clientAuth"]);
    assert_eq!(read.not_after(), now() + days(365));
}
