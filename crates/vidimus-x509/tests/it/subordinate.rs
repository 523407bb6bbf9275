use vidimus_x509::{
    cert::Certificate,
    csr::VerifiedCsr,
    issue::{self, PlanError, Refusal, RequestNames, Warning},
    issuer::{Issuer, IssuerError},
    profile::SubjectFields,
};

use crate::{
    ca::{Ca, TestKey, ca_profile, csr, named},
    judge::Bench,
};

/// X2. C3: what a subordinate may have below it is the least of its profile and its issuer.
#[test]
fn path_length_is_clamped_to_the_issuers() {
    let root = Ca::root();
    for (issuer, asked, granted) in [
        (None, None, None),
        (None, Some(0), Some(0)),
        (None, Some(5), Some(5)),
        (Some(1), None, Some(0)),
        (Some(1), Some(0), Some(0)),
        (Some(1), Some(4), Some(0)),
        (Some(3), None, Some(2)),
        (Some(3), Some(1), Some(1)),
        (Some(3), Some(2), Some(2)),
        (Some(3), Some(3), Some(2)),
        (Some(255), Some(255), Some(254)),
    ] {
        let ca = root.sub(&ca_profile(issuer));
        assert_eq!(ca.issuer.path_len(), issuer.map(u32::from));
        let signed = ca.certify_ca(&TestKey::p384(), &ca_profile(asked)).unwrap();
        let read = Certificate::parse(signed.der()).unwrap();
        assert_eq!(
            read.path_len(),
            granted.map(u32::from),
            "{issuer:?} {asked:?}"
        );
        let warned = signed
            .warnings()
            .iter()
            .any(|w| matches!(w, Warning::PathLenClamped { .. }));
        assert_eq!(warned, asked != granted, "{issuer:?} {asked:?}");
        Bench::new(&ca).openssl(signed.der(), "any").unwrap();
    }
}

/// X2: an issuer with path length 0 refuses a CA, and still certifies leaves.
#[test]
fn an_issuer_with_path_length_0_refuses_a_ca() {
    let ca = Ca::root().sub(&ca_profile(Some(0)));
    for asked in [None, Some(0), Some(1)] {
        let refused = ca
            .certify_ca(&TestKey::p384(), &ca_profile(asked))
            .unwrap_err();
        assert_eq!(refused.kind(), Refusal::Policy);
        let issuer = "CN=Test CA 1,O=Example".to_owned();
        assert_eq!(refused, PlanError::IssuerPathLen { issuer });
    }
    let leaf = ca.issue_leaf(&csr("p384-sha384"));
    Bench::new(&ca).openssl(leaf.der(), "sslserver").unwrap();
}

/// X2: a path length far above counts as well.
#[test]
fn path_lengths_of_all_cas_above_count() {
    let top = Ca::root().sub(&ca_profile(Some(1)));
    let below = Ca::root().sub(&ca_profile(None));
    // As if a parent elsewhere had certified `below` without a limit of its own.
    let issuer = Issuer::from_chain(&[below.der(), top.der()]).unwrap();
    assert_eq!(issuer.path_len(), Some(0));
    let zero = Ca::root().sub(&ca_profile(Some(0)));
    let refused = Issuer::from_chain(&[below.der(), zero.der()]).unwrap_err();
    assert!(
        matches!(refused, IssuerError::PathLen { position: 2, .. }),
        "{refused:?}"
    );
}

/// C4: a CA elsewhere, its request made by openssl, becomes a CA under ours: openssl and Go follow
/// a leaf up through three CAs.
#[test]
fn certificates_verify_through_three_cas() {
    let root = Ca::root();
    let external = root
        .issue(&ca_profile(Some(1)), &csr("ca"), &RequestNames::default())
        .unwrap();
    let read = Certificate::parse(external.der()).unwrap();
    assert!(read.is_ca() && read.may_sign_certificates());
    assert_eq!(read.subject_der(), csr("ca").subject_der());
    Bench::new(&root).openssl(external.der(), "any").unwrap();

    let issuing = root.sub(&ca_profile(Some(1))).sub(&ca_profile(None));
    assert_eq!(issuing.issuer.path_len(), Some(0));
    let leaf = issuing.issue_leaf(&csr("rsa3072-sha256"));
    let bench = Bench::new(&issuing);
    bench.openssl(leaf.der(), "sslserver").unwrap();
    bench.openssl(leaf.der(), "sslclient").unwrap();
    bench.go("client", &[leaf.der()]).unwrap();
}

/// RFC 5280 §4.1.2.6: what a nameless CA signs couldn't say who signed it.
#[test]
fn a_ca_must_have_a_name() {
    let root = Ca::root();
    let key = TestKey::p384();
    let nameless =
        issue::request(&SubjectFields::default(), &RequestNames::default(), &key).unwrap();
    let nameless = VerifiedCsr::parse(&nameless).unwrap();
    let refused = root
        .issue(&ca_profile(None), &nameless, &RequestNames::default())
        .unwrap_err();
    assert_eq!(refused, PlanError::NamelessCa);
    let named = issue::request(&named("a name"), &RequestNames::default(), &key).unwrap();
    let named = VerifiedCsr::parse(&named).unwrap();
    root.issue(&ca_profile(None), &named, &RequestNames::default())
        .unwrap();
}

/// K9: a certificate that isn't a CA's is no issuer, and neither is a CA with a key we don't use.
#[test]
fn only_a_ca_with_a_key_of_ours_is_an_issuer() {
    let ca = Ca::root();
    Issuer::from_certificate(ca.der()).unwrap();
    let leaf = ca.issue_leaf(&csr("p384-sha384"));
    let refused = Issuer::from_certificate(leaf.der()).unwrap_err();
    assert!(matches!(refused, IssuerError::NotCa { position: 1, .. }));
    assert!(matches!(Issuer::from_chain(&[]), Err(IssuerError::Empty)));
    assert!(matches!(
        Issuer::from_certificate(b"junk"),
        Err(IssuerError::Read { .. })
    ));
    let dir = tempfile::tempdir().unwrap();
    let p256 = crate::judge::openssl(
        dir.path(),
        &[
            "req",
            "-x509",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:P-256",
            "-nodes",
            "-keyout",
            "key",
            "-subj",
            "/CN=Other CA",
            "-outform",
            "DER",
        ],
    );
    let refused = Issuer::from_certificate(&p256).unwrap_err();
    assert!(matches!(refused, IssuerError::Key { .. }), "{refused:?}");
}
