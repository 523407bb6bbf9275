use std::time::{Duration, SystemTime};

use vidimus_x509::{
    cert::Certificate,
    issue::{self, BACKDATE, Plan, PlanError, Refusal, RequestNames, Warning},
    issuer::Issuer,
    profile::ValidityPolicy,
    signer::Signer,
};

use crate::{
    ca::{Ca, TestKey, ca_profile, csr, days, leaf_profile, named, now, serial},
    judge::Bench,
};

const SECOND: Duration = Duration::from_secs(1);

fn plan(
    issuer: &Issuer,
    validity_days: u32,
    policy: ValidityPolicy,
    now: SystemTime,
) -> Result<Plan, PlanError> {
    let mut profile = leaf_profile();
    profile.validity_days = validity_days;
    profile.validity_policy = policy;
    profile.certificate(
        &csr("p384-sha384"),
        &RequestNames::default(),
        issuer,
        now,
        serial(),
    )
}

/// C3: it begins 5 minutes before now, ends the profile's days after now, in whole seconds.
#[test]
fn a_certificate_is_backdated_at_its_begin_only() {
    let ca = Ca::root();
    let later = now() + days(1) + Duration::from_millis(750);
    let plan = plan(&ca.issuer, 90, ValidityPolicy::Reject, later).unwrap();
    let signed = plan.sign(&ca.key).unwrap();
    assert_eq!(BACKDATE, Duration::from_secs(300));
    assert_eq!(signed.not_before(), now() + days(1) - BACKDATE);
    assert_eq!(signed.not_after(), now() + days(91));
    assert!(signed.warnings().is_empty());
    let read = Certificate::parse(signed.der()).unwrap();
    assert_eq!(read.not_before(), signed.not_before());
    assert_eq!(read.not_after(), signed.not_after());
}

/// X1. C3: `cap` ends a certificate with its issuer, to the second, and says so; `reject` refuses
/// and names both ends.
#[test]
fn cap_and_reject_hold_to_the_second() {
    let ca = Ca::root();
    let end = ca.issuer.not_after();
    let last_fitting = end - days(90);
    for policy in [ValidityPolicy::Cap, ValidityPolicy::Reject] {
        let plan = plan(&ca.issuer, 90, policy, last_fitting).unwrap();
        assert_eq!((plan.not_after(), plan.warnings()), (end, &[][..]));
    }
    let late = last_fitting + SECOND;
    let capped = plan(&ca.issuer, 90, ValidityPolicy::Cap, late).unwrap();
    assert_eq!(capped.not_after(), end);
    let (requested, effective) = (end + SECOND, end);
    assert_eq!(
        capped.warnings(),
        [Warning::Capped {
            requested,
            effective
        }]
    );
    assert_eq!(
        capped.warnings()[0].to_string(),
        "certificate ends at 2037-01-15T08:00:00Z, with its issuer, instead of 2037-01-15T08:00:01Z"
    );
    let rejected = plan(&ca.issuer, 90, ValidityPolicy::Reject, late).unwrap_err();
    assert_eq!(rejected.kind(), Refusal::Policy);
    let text = rejected.to_string();
    for part in [
        "profile leaf",
        "2037-01-15T08:00:01Z",
        "2037-01-15T08:00:00Z",
    ] {
        assert!(text.contains(part), "{text}");
    }
}

/// X1: what verifiers see of a capped certificate is within its issuer's time.
#[test]
fn a_capped_certificate_verifies_to_its_last_second() {
    let ca = Ca::root();
    let end = ca.issuer.not_after();
    let near = end - days(2);
    let signed = plan(&ca.issuer, u32::MAX, ValidityPolicy::Cap, near)
        .unwrap()
        .sign(&ca.key)
        .unwrap();
    let bench = Bench::new(&ca);
    let unix = |time: SystemTime| {
        time.duration_since(SystemTime::UNIX_EPOCH)
            .unwrap()
            .as_secs()
            .to_string()
    };
    // openssl counts the very last second as past; RFC 5280 doesn't.
    let last = unix(end - SECOND);
    bench.openssl_at(signed.der(), "sslserver", &last).unwrap();
    bench
        .openssl_at(signed.der(), "sslserver", &unix(end + SECOND))
        .unwrap_err();
}

/// X1: every CA above bounds a certificate, not only the one that signs.
#[test]
fn a_certificate_ends_with_the_first_of_the_cas_above() {
    let short_root = {
        let key = TestKey::p384();
        let plan = issue::root_plan(&named("Short"), key.spki_der(), 1, now(), serial()).unwrap();
        let der = plan.sign(&key).unwrap().der().to_vec();
        Ca::of(key, vec![der])
    };
    // A parent elsewhere that let its subordinate outlive it.
    let long = Ca::root();
    let issuer = Issuer::from_chain(&[long.der(), short_root.der()]).unwrap();
    assert_eq!(issuer.not_after(), short_root.issuer.not_after());
    let capped = plan(&issuer, 3650, ValidityPolicy::Cap, now()).unwrap();
    assert_eq!(capped.not_after(), short_root.issuer.not_after());
}

/// X1: never before the issuer's own begin, and not at all outside its time.
#[test]
fn nothing_is_issued_outside_the_issuers_time() {
    let ca = Ca::root();
    let (begin, end) = (ca.issuer.not_before(), ca.issuer.not_after());
    let first = plan(&ca.issuer, 1, ValidityPolicy::Reject, begin)
        .unwrap()
        .sign(&ca.key)
        .unwrap();
    assert_eq!(
        first.not_before(),
        begin,
        "backdating stops at the issuer's begin"
    );
    let last = plan(&ca.issuer, 1, ValidityPolicy::Cap, end).unwrap();
    assert_eq!(last.not_after(), end);
    for outside in [begin - SECOND, end + SECOND] {
        let refused = plan(&ca.issuer, 1, ValidityPolicy::Cap, outside).unwrap_err();
        assert!(
            matches!(refused, PlanError::IssuerNotValid { .. }),
            "{refused:?}"
        );
        assert_eq!(refused.kind(), Refusal::Policy);
    }
    let before_time = SystemTime::UNIX_EPOCH - days(365);
    plan(&ca.issuer, 1, ValidityPolicy::Cap, before_time).unwrap_err();
}

/// RFC 5280 §4.1.2.5: the form of the date changes with 2050, and openssl reads both.
#[test]
fn dates_past_2049_are_written_in_their_other_form() {
    let key = TestKey::p384();
    let plan = issue::root_plan(&named("Long"), key.spki_der(), 30, now(), serial()).unwrap();
    let der = plan.sign(&key).unwrap().der().to_vec();
    let ca = Ca::of(key, vec![der]);
    let has = |der: &[u8], time: &[u8]| der.windows(time.len()).any(|window| window == time);
    assert!(has(ca.der(), b"\x17\x0d270115075500Z"), "UTCTime");
    assert!(has(ca.der(), b"\x18\x0f20570115080000Z"), "GeneralizedTime");
    assert!(crate::judge::text(ca.der()).contains("Not After : Jan 15 08:00:00 2057 GMT"));
    let csr = csr("p384-sha384");
    for (validity_days, time) in [
        // 2049-12-31T08:00:00Z and the day after.
        (8386, &b"\x17\x0d491231080000Z"[..]),
        (8387, b"\x18\x0f20500101080000Z"),
    ] {
        let mut profile = leaf_profile();
        profile.validity_days = validity_days;
        let signed = ca.issue(&profile, &csr, &RequestNames::default()).unwrap();
        assert!(has(signed.der(), time), "{validity_days}");
        Bench::new(&ca).openssl(signed.der(), "sslserver").unwrap();
    }
}

/// C3: the same rules hold for CAs below.
#[test]
fn a_subordinate_ends_with_its_issuer_too() {
    let ca = Ca::root();
    let mut profile = ca_profile(None);
    profile.validity_days = 20 * 366;
    let signed = ca.certify_ca(&TestKey::p384(), &profile).unwrap();
    assert_eq!(signed.not_after(), ca.issuer.not_after());
    assert_eq!(signed.warnings().len(), 1);
    profile.validity_policy = ValidityPolicy::Reject;
    assert!(matches!(
        ca.certify_ca(&TestKey::p384(), &profile),
        Err(PlanError::Outlives { .. })
    ));
}
