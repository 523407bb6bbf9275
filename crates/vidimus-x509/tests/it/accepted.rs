use vidimus_x509::{cert::Certificate, csr::VerifiedCsr, pem};

use crate::{
    ca::{Ca, TestKey, ca_profile, csr, csr_bytes},
    judge::Bench,
};

const ACCEPTED: [&str; 9] = [
    "p384-sha256",
    "p384-sha384",
    "p384-sha512",
    "rsa3072-sha256",
    "rsa3072-sha384",
    "rsa4096-sha512",
    "rsa3072-pss-sha256",
    "rsa3072-pss-sha384",
    "rsa3072-pss-sha512",
];

/// X14. C5: whatever digest a request is signed with, the certified key is the request's, byte for
/// byte, and openssl and Go accept the certificate.
#[test]
fn certified_keys_equal_the_requests_under_openssl_and_go() {
    for root in [TestKey::p384(), TestKey::rsa3072()] {
        let ca = Ca::root_of(root).sub(&ca_profile(Some(0)));
        let bench = Bench::new(&ca);
        let mut certificates = Vec::new();
        for name in ACCEPTED {
            let csr = csr(name);
            let signed = ca.issue_leaf(&csr);
            bench
                .openssl(signed.der(), "sslserver")
                .unwrap_or_else(|refused| panic!("{name}: {refused}"));
            let read = Certificate::parse(signed.der()).unwrap();
            assert_eq!(read.spki_der(), csr.spki_der(), "{name}");
            assert_eq!(read.subject_der(), csr.subject_der(), "{name}");
            read.verify_signature(ca.issuer.spki_der()).unwrap();
            certificates.push((signed, csr));
        }
        let ders: Vec<&[u8]> = certificates
            .iter()
            .map(|(signed, _)| signed.der())
            .collect();
        let keys = bench.go("server", &ders).unwrap();
        let expected: Vec<String> = certificates
            .iter()
            .map(|(_, csr)| data_encoding::HEXLOWER.encode(csr.spki_der()))
            .collect();
        assert_eq!(keys, expected);
    }
}

/// The judges do judge: a changed byte, another root, another purpose are refused.
#[test]
fn the_judges_refuse_what_is_wrong() {
    let ca = Ca::root();
    let bench = Bench::new(&ca);
    let signed = ca.issue_leaf(&csr("p384-sha384"));
    bench.openssl(signed.der(), "sslserver").unwrap();
    bench.go("server", &[signed.der()]).unwrap();

    let mut broken = signed.der().to_vec();
    *broken.last_mut().unwrap() ^= 1;
    bench.openssl(&broken, "sslserver").unwrap_err();
    bench.go("server", &[&broken]).unwrap_err();
    let other = Bench::new(&Ca::root());
    other.openssl(signed.der(), "sslserver").unwrap_err();
    other.go("server", &[signed.der()]).unwrap_err();
    bench.openssl(signed.der(), "smimesign").unwrap_err();
}

/// C4: PEM as openssl writes it, with the request's text before it or under the old label.
#[test]
fn requests_are_read_from_pem_with_text_and_old_label() {
    let der = csr_bytes("p384-sha384");
    assert_eq!(csr("text.pem").der(), der);
    assert_eq!(csr("newhdr.pem").der(), csr_bytes("rsa3072-sha256"));
    let text = pem::encode(pem::CERTIFICATE_REQUEST, &der).replace('\n', "\r\n");
    assert_eq!(VerifiedCsr::parse(text.as_bytes()).unwrap().der(), der);
}

/// C4: what a request says is readable before anything is issued.
#[test]
fn a_request_shows_its_subject_and_names() {
    let request = csr("p384-sha384");
    assert_eq!(
        request.subject_text(),
        "CN=web.example.org,O=Example\\, Inc.,C=DE"
    );
    assert_eq!(request.dns_names(), ["web.example.org", "www.example.org"]);
    let ips: Vec<String> = request
        .ip_addresses()
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(ips, ["192.0.2.7", "2001:db8::7"]);
    assert!(csr("no-names").dns_names().is_empty());
    assert_eq!(csr("no-subject").subject_text(), "");
}
