use std::net::{IpAddr, Ipv4Addr};

use vidimus_x509::{
    cert::Certificate,
    issue::{PlanError, Refusal, RequestNames, Signed},
    profile::StaticSans,
};

use crate::{
    ca::{Ca, csr, leaf_profile},
    judge::{Bench, text},
};

fn request(dns: &[&str], ip: &[&str]) -> RequestNames {
    RequestNames {
        dns: dns.iter().map(|&name| name.to_owned()).collect(),
        ip: ip.iter().map(|ip| ip.parse().unwrap()).collect(),
    }
}

fn names(signed: &Signed) -> Vec<&str> {
    signed.names().iter().map(String::as_str).collect()
}

fn static_sans() -> StaticSans {
    StaticSans {
        dns: vec!["static.example.org".to_owned()],
        email: vec!["ops@example.org".to_owned()],
        ..StaticSans::default()
    }
}

/// C4: names of the request stand beside the CSR's, each once, and openssl reads the same.
#[test]
fn request_names_stand_beside_those_of_the_csr() {
    let ca = Ca::root();
    let profile = leaf_profile();
    let with =
        |csr: &str, names: &RequestNames| ca.issue(&profile, &super::ca::csr(csr), names).unwrap();
    let from_csr = with("p384-sha384", &RequestNames::default());
    let own = [
        "web.example.org",
        "www.example.org",
        "192.0.2.7",
        "2001:db8::7",
    ];
    assert_eq!(names(&from_csr), own);
    let both = with(
        "p384-sha384",
        &request(
            &["New.Example.ORG.", "web.example.org"],
            &["192.0.2.8", "192.0.2.7"],
        ),
    );
    let expected = [
        "web.example.org",
        "www.example.org",
        "new.example.org",
        "192.0.2.7",
        "2001:db8::7",
        "192.0.2.8",
    ];
    assert_eq!(names(&both), expected);
    assert!(text(both.der()).contains(
        "DNS:web.example.org, DNS:www.example.org, DNS:new.example.org, IP Address:192.0.2.7, \
         IP Address:2001:DB8:0:0:0:0:0:7, IP Address:192.0.2.8"
    ));
    let alone = with("no-names", &request(&["new.example.org"], &[]));
    assert_eq!(names(&alone), ["new.example.org"]);
    let mapped = with("no-names", &request(&[], &["::ffff:192.0.2.9"]));
    assert_eq!(names(&mapped), ["192.0.2.9"], "what peers compare with");
}

/// C4: where names may come with a request, those that come take the place of all static ones.
#[test]
fn request_names_replace_every_static_name() {
    let ca = Ca::root();
    let mut profile = leaf_profile();
    profile.sans = static_sans();
    let new = ca
        .issue(
            &profile,
            &csr("no-names"),
            &request(&["new.example.org"], &[]),
        )
        .unwrap();
    assert_eq!(names(&new), ["new.example.org"]);
    let none = ca
        .issue(&profile, &csr("no-names"), &RequestNames::default())
        .unwrap();
    assert_eq!(
        names(&none),
        ["static.example.org", "email:ops@example.org"]
    );
}

/// C3: without `allow_request_sans` the names of the CSR are ignored, those of a request refused.
#[test]
fn a_profile_of_its_own_names_takes_none_from_a_request() {
    let ca = Ca::root();
    let mut profile = leaf_profile();
    profile.allow_request_sans = false;
    profile.sans = static_sans();
    let signed = ca
        .issue(&profile, &csr("p384-sha384"), &RequestNames::default())
        .unwrap();
    assert_eq!(
        names(&signed),
        ["static.example.org", "email:ops@example.org"]
    );
    for asked in [
        request(&["new.example.org"], &[]),
        request(&[], &["192.0.2.8"]),
    ] {
        let refused = ca.issue(&profile, &csr("p384-sha384"), &asked).unwrap_err();
        assert_eq!(refused.kind(), Refusal::Policy);
        assert!(matches!(refused, PlanError::NamesNotAllowed { .. }));
        profile.allow_request_sans = true;
        ca.issue(&profile, &csr("p384-sha384"), &asked).unwrap();
        profile.allow_request_sans = false;
    }
}

/// C4: a name that can't be certified is refused, wherever it came from, never left out.
#[test]
fn names_that_are_no_host_names_are_refused() {
    let ca = Ca::root();
    let profile = leaf_profile();
    let ask = |csr: &str, names: &RequestNames| ca.issue(&profile, &super::ca::csr(csr), names);
    for bad in [
        "*.example.org",
        "localhost",
        "10.0.0.1",
        "a_b.example.org",
        "",
        "a..b",
        "é.example",
    ] {
        let refused = ask("no-names", &request(&["good.example.org", bad], &[])).unwrap_err();
        assert_eq!(refused.kind(), Refusal::Request);
        assert_eq!(
            refused,
            PlanError::Name {
                found: bad.to_owned()
            }
        );
        assert!(
            refused.to_string().contains("without wildcard"),
            "{refused}"
        );
    }
    let refused = ask("wildcard", &RequestNames::default()).unwrap_err();
    assert_eq!(
        refused,
        PlanError::Name {
            found: "*.example.org".to_owned()
        }
    );
    for bad in [
        "0.0.0.0",
        "::",
        "224.0.0.1",
        "ff02::1",
        "255.255.255.255",
        "::ffff:0.0.0.0",
    ] {
        let refused = ask("no-names", &request(&[], &[bad])).unwrap_err();
        assert!(matches!(refused, PlanError::Address { .. }), "{bad}");
    }
    ask(
        "no-names",
        &request(&["good.example.org"], &["127.0.0.1", "::1"]),
    )
    .unwrap();
}

/// C4: twice the same name in one request is a mistake worth telling; at most 100 names in all.
#[test]
fn duplicates_within_a_request_and_more_than_100_names_are_refused() {
    let ca = Ca::root();
    let profile = leaf_profile();
    let ask = |names: &RequestNames| ca.issue(&profile, &csr("no-names"), names);
    let refused = ask(&request(&["a.example.org", "A.example.org."], &[])).unwrap_err();
    assert_eq!(
        refused,
        PlanError::DuplicateName {
            name: "a.example.org".to_owned()
        }
    );
    let refused = ask(&request(&[], &["192.0.2.1", "::ffff:192.0.2.1"])).unwrap_err();
    assert_eq!(
        refused,
        PlanError::DuplicateName {
            name: "192.0.2.1".to_owned()
        }
    );

    let many = |count: u32| RequestNames {
        dns: (0..count / 2)
            .map(|n| format!("n{n}.example.org"))
            .collect(),
        ip: (0..count - count / 2)
            .map(|n| IpAddr::from(Ipv4Addr::from(0x0a00_0001 + n)))
            .collect(),
    };
    assert_eq!(ask(&many(100)).unwrap().names().len(), 100);
    assert_eq!(
        ask(&many(101)).unwrap_err(),
        PlanError::TooManyNames { found: 101 }
    );
    let with_csr = ca
        .issue(&profile, &csr("p384-sha384"), &many(97))
        .unwrap_err();
    assert_eq!(with_csr, PlanError::TooManyNames { found: 101 });
}

/// C4: challenge passwords, private extensions, names of other kinds and wishes for CA rights are
/// read over; of this CSR the key, the subject, and the DNS and IP names are all that is taken.
#[test]
fn nothing_odd_in_a_request_reaches_the_certificate() {
    let ca = Ca::root();
    let odd = csr("odd");
    let signed = ca.issue_leaf(&odd);
    assert_eq!(names(&signed), ["odd.example.org", "192.0.2.9"]);
    Bench::new(&ca).openssl(signed.der(), "sslserver").unwrap();

    let read = Certificate::parse(signed.der()).unwrap();
    assert_eq!(read.subject_der(), odd.subject_der());
    assert_eq!(read.subject_text(), odd.subject_text());
    assert!(
        odd.subject_text()
            .ends_with("CN=odd.example.org,OU=two,OU=one,O=Exämple,C=DE")
    );
    assert!(!read.is_ca());
    assert_eq!(read.key_usage(), Some(&["digitalSignature"][..]));
    assert_eq!(read.ext_key_usage(), ["serverAuth", "clientAuth"]);
    assert!(read.uris().is_empty() && read.emails().is_empty());
    let find = |needle: &[u8]| {
        signed
            .der()
            .windows(needle.len())
            .any(|window| window == needle)
    };
    for secret in [
        &b"must not be copied"[..],
        b"private extension",
        b"a comment",
        b"admin@example.org",
    ] {
        assert!(!find(secret), "{}", String::from_utf8_lossy(secret));
        let source = odd.der();
        assert!(
            source.windows(secret.len()).any(|window| window == secret),
            "it is in the CSR"
        );
    }
}
