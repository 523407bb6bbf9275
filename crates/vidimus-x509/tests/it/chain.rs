use std::time::Duration;

use vidimus_x509::{
    cert::Certificate,
    chain::{self, ChainError, MAX_CHAIN},
};

use crate::{
    ca::{Ca, TestKey, ca_profile, csr, days, now},
    judge::openssl,
};

fn verify(chain: &[&[u8]], anchor: &[u8]) -> Result<(), ChainError> {
    chain::verify_ca_chain(chain, anchor, now())
}

/// C4: a subordinate accepts its chain up to the pinned parent, wherever in the chain that is.
#[test]
fn a_chain_is_accepted_up_to_its_pinned_anchor() {
    let root = Ca::root();
    let middle = root.sub(&ca_profile(None));
    let bottom = middle.sub(&ca_profile(Some(0)));
    let [b, m, r] = [bottom.der(), middle.der(), root.der()];
    for (chain, anchor) in [
        (&[b, m][..], r),
        (&[b, m, r], r),
        (&[b], m),
        (&[b, m], m),
        (&[b, m, r], m),
        (&[m], r),
        (&[r], r),
    ] {
        verify(chain, anchor).unwrap();
    }
    let stranger = Ca::root();
    for (chain, anchor) in [
        (&[b][..], r),
        (&[m, b], r),
        (&[b, r], r),
        (&[b, m], stranger.der()),
        (&[b, m, r], stranger.der()),
        (&[b, stranger.der()], r),
    ] {
        let refused = verify(chain, anchor).unwrap_err();
        assert!(
            matches!(
                refused,
                ChainError::Issuer { .. }
                    | ChainError::Signature { .. }
                    | ChainError::PathLen { .. }
            ),
            "{refused:?}"
        );
    }
}

/// C4: a root of the same name and another key is another root.
#[test]
fn a_signature_counts_not_a_name() {
    let (root, impostor) = (Ca::root(), Ca::root());
    let sub = root.sub(&ca_profile(None));
    verify(&[sub.der()], root.der()).unwrap();
    let refused = verify(&[sub.der()], impostor.der()).unwrap_err();
    assert!(
        matches!(refused, ChainError::Signature { position: 1, .. }),
        "{refused:?}"
    );
}

/// C4: what isn't a CA's certificate is no link of a CA's chain.
#[test]
fn every_link_must_be_a_ca_that_may_sign() {
    let root = Ca::root();
    let leaf = root.issue_leaf(&csr("p384-sha384"));
    let refused = verify(&[leaf.der()], root.der()).unwrap_err();
    assert!(
        matches!(refused, ChainError::NotCa { position: 1, .. }),
        "{refused:?}"
    );
    let dir = tempfile::tempdir().unwrap();
    let ca = |usage: &str, extra: &[&str]| {
        let usage = format!("keyUsage=critical,{usage}");
        let mut args = vec![
            "req",
            "-x509",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:P-384",
            "-nodes",
            "-keyout",
            "key",
            "-subj",
            "/CN=Other",
            "-outform",
            "DER",
            "-addext",
            &usage,
        ];
        args.extend(extra);
        openssl(dir.path(), &args)
    };
    let at = |der: &[u8]| Certificate::parse(der).unwrap().not_before() + Duration::from_secs(60);
    let good = ca("keyCertSign", &[]);
    chain::verify_ca_chain(&[&good], &good, at(&good)).unwrap();
    let bad = ca("cRLSign", &[]);
    let refused = chain::verify_ca_chain(&[&bad], &bad, at(&bad)).unwrap_err();
    assert!(
        matches!(refused, ChainError::NoCertSign { position: 1, .. }),
        "{refused:?}"
    );
    let odd = ca("keyCertSign", &["-addext", "1.2.3.4=critical,ASN1:NULL"]);
    let refused = chain::verify_ca_chain(&[&odd], &odd, at(&odd)).unwrap_err();
    assert!(
        matches!(&refused, ChainError::UnknownExtension { oid, .. } if oid == "1.2.3.4"),
        "{refused:?}"
    );
}

/// C4: each link is valid at the time of the check, the anchor too; the message has the dates.
#[test]
fn every_link_must_be_valid_now() {
    let root = Ca::root();
    let sub = root.sub(&ca_profile(None));
    let at = |time| chain::verify_ca_chain(&[sub.der()], root.der(), time);
    let (begin, end) = (sub.issuer.not_before(), sub.issuer.not_after());
    at(begin).unwrap();
    at(end).unwrap();
    let refused = at(end + Duration::from_secs(1)).unwrap_err();
    assert!(matches!(refused, ChainError::Date { position: 1, .. }));
    assert!(
        refused
            .to_string()
            .contains("to 2028-01-15T08:00:00Z, and it is 2028-01-15T08:00:01Z")
    );
    assert!(at(begin - Duration::from_secs(1)).is_err());
    let refused =
        chain::verify_ca_chain(&[root.der()], root.der(), now() + days(3654)).unwrap_err();
    assert!(matches!(refused, ChainError::Date { position: 1, .. }));
}

/// X2. X3: the path length of each CA counts, the anchor's own among them.
#[test]
fn path_lengths_are_enforced_the_anchors_too() {
    let root = Ca::root();
    // One CA with two certificates; what it may not do by the second it did by the first.
    let key = TestKey::p384();
    let open = root
        .certify_ca(&key, &ca_profile(None))
        .unwrap()
        .der()
        .to_vec();
    let closed = root
        .certify_ca(&key, &ca_profile(Some(0)))
        .unwrap()
        .der()
        .to_vec();
    let lower = Ca::of(key, vec![open.clone(), root.der().to_vec()]).sub(&ca_profile(None));
    verify(&[lower.der(), &open], root.der()).unwrap();
    verify(&[lower.der()], &open).unwrap();
    verify(&[&closed], root.der()).unwrap();
    for refused in [
        verify(&[lower.der(), &closed], root.der()),
        verify(&[lower.der()], &closed),
    ] {
        assert!(
            matches!(
                refused,
                Err(ChainError::PathLen {
                    position: 2,
                    allowed: 0,
                    found: 1,
                    ..
                })
            ),
            "{refused:?}"
        );
    }
}

/// C4: a chain has a bound and a begin.
#[test]
fn an_empty_an_endless_and_an_unreadable_chain_are_refused() {
    let root = Ca::root();
    assert_eq!(verify(&[], root.der()), Err(ChainError::Empty));
    let long = vec![root.der(); MAX_CHAIN + 1];
    assert_eq!(
        verify(&long, root.der()),
        Err(ChainError::TooLong {
            found: MAX_CHAIN + 1
        })
    );
    let sub = root.sub(&ca_profile(None));
    let refused = verify(&[sub.der(), b"junk"], root.der()).unwrap_err();
    assert!(matches!(refused, ChainError::Read { position: 2, .. }));
    assert!(matches!(
        verify(&[sub.der()], b"junk"),
        Err(ChainError::Read { position: 2, .. })
    ));
}

/// V13: certificates come in any order; the chain is found by name and signature.
#[test]
fn a_chain_is_put_in_order_from_any_heap() {
    let root = Ca::root();
    let middle = root.sub(&ca_profile(None));
    let bottom = middle.sub(&ca_profile(Some(0)));
    let leaf = bottom.issue_leaf(&csr("p384-sha384"));
    let parse = |der: &[u8]| Certificate::parse(der).unwrap();
    let leaf = parse(leaf.der());
    let stranger = Ca::root();
    let heap: Vec<Certificate> = [
        stranger.der(),
        root.der(),
        leaf.der(),
        bottom.der(),
        middle.der(),
        middle.der(),
    ]
    .map(parse)
    .to_vec();
    let ordered: Vec<&[u8]> = chain::order(&leaf, &heap).iter().map(|c| c.der()).collect();
    assert_eq!(
        ordered,
        [leaf.der(), bottom.der(), middle.der(), root.der()]
    );
    let without_middle: Vec<Certificate> = [root.der(), bottom.der()].map(parse).to_vec();
    let ordered: Vec<&[u8]> = chain::order(&leaf, &without_middle)
        .iter()
        .map(|c| c.der())
        .collect();
    assert_eq!(ordered, [leaf.der(), bottom.der()]);
    assert_eq!(chain::order(&leaf, &[]).len(), 1);
}
