use vidimus_x509::{
    csr::VerifiedCsr,
    issue::{self, PlanError, RequestError, RequestNames},
    pem,
    profile::SubjectFields,
};

use crate::{
    ca::{Ca, TestKey, named},
    judge::{Bench, openssl},
};

/// C4: a request of ours is one that openssl verifies and that we certify.
#[test]
fn requests_of_ours_verify_under_openssl_and_are_certified() {
    let ca = Ca::root();
    let names = RequestNames {
        dns: vec!["Web.example.org".to_owned()],
        ip: vec!["192.0.2.7".parse().unwrap()],
    };
    for key in [TestKey::p384(), TestKey::rsa3072()] {
        let der = issue::request(&named("web"), &names, &key).unwrap();
        let bench = Bench::new(&ca);
        let text = pem::encode(pem::CERTIFICATE_REQUEST, &der);
        let path = bench.put("request.pem", text.as_bytes());
        let dir = path.parent().unwrap();
        let shown = openssl(
            dir,
            &["req", "-in", "request.pem", "-verify", "-noout", "-text"],
        );
        let shown = String::from_utf8(shown).unwrap();
        assert!(shown.contains("Subject: O = Example, CN = web"), "{shown}");
        assert!(
            shown.contains("DNS:web.example.org, IP Address:192.0.2.7"),
            "{shown}"
        );

        let csr = VerifiedCsr::parse(&der).unwrap();
        assert_eq!(csr.dns_names(), ["web.example.org"]);
        let signed = ca.issue_leaf(&csr);
        bench.openssl(signed.der(), "sslserver").unwrap();
    }
}

/// C4: without names the request has no extensions; without a subject it is one all the same.
#[test]
fn requests_need_neither_names_nor_a_subject() {
    let key = TestKey::p384();
    let der = issue::request(&SubjectFields::default(), &RequestNames::default(), &key).unwrap();
    let csr = VerifiedCsr::parse(&der).unwrap();
    assert_eq!((csr.subject_text(), csr.dns_names().len()), ("", 0));
    assert_eq!(csr.subject_der(), [0x30, 0]);
}

/// C4: what wouldn't be certified isn't asked for.
#[test]
fn a_request_for_what_is_never_certified_is_not_made() {
    let key = TestKey::p384();
    let names = |dns: &str| RequestNames {
        dns: vec![dns.to_owned()],
        ip: vec![],
    };
    issue::request(&named("web"), &names("a.example.org"), &key).unwrap();
    let refused = issue::request(&named("web"), &names("*.example.org"), &key).unwrap_err();
    assert!(matches!(
        refused,
        RequestError::Names(PlanError::Name { .. })
    ));
    let refused = issue::request(&named("a\0b"), &RequestNames::default(), &key).unwrap_err();
    assert!(matches!(
        refused,
        RequestError::Names(PlanError::Subject { .. })
    ));
}
