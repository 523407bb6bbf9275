//! Certificates: recorded once, found again, listed.

use std::collections::BTreeSet;
use std::sync::Arc;

use tokio::task::JoinSet;
use vidimus_x509::serial::Serial;

use super::{Authority, Database, draft, intact, open, random};
use crate::certificate::{Cursor, Issuance, IssuedFilter};
use crate::error::StoreError;

/// Everything about a certificate comes back as it went in, now and after reopening.
pub async fn an_issuance_is_found_again_after_reopening(database: &impl Database) {
    let authority = Authority::new();
    let store = open(database);
    let issuance = authority.issuance("leaf-server");
    let signed = issuance.signed.clone();
    let recorded = store.record_issuance(issuance).await.unwrap();
    assert_eq!(recorded.der, signed.der());
    assert_eq!(recorded.serial, signed.serial());
    assert_eq!(recorded.profile, "leaf-server");
    assert_eq!(recorded.requester, "CN=admin");
    assert_eq!(recorded.subject, signed.subject_text());
    assert_eq!(recorded.names, ["host.example"]);
    assert_eq!(recorded.not_before, signed.not_before());
    assert_eq!(recorded.not_after, signed.not_after());
    assert_eq!(recorded.ski_hex, signed.ski_hex());
    drop(store);

    let store = open(database);
    let found = store.find_issued(&signed.serial()).await.unwrap();
    assert_eq!(found, Some(recorded.into_inner()));
    let other = Serial::random(&random()).unwrap();
    assert_eq!(store.find_issued(&other).await.unwrap(), None);
    assert_eq!(store.issued_count().await.unwrap(), 1);
}

/// A serial number that is taken is an error of its own, and leaves no trace in rows or log.
pub async fn a_serial_number_is_recorded_once_and_a_refusal_writes_nothing(
    database: &impl Database,
) {
    let authority = Authority::new();
    let store = open(database);
    let first = authority.issuance("leaf");
    let serial = first.signed.serial();
    store.record_issuance(first).await.unwrap();
    let head = store.audit_head().await.unwrap();

    let again = Issuance {
        signed: authority.sign_as(serial),
        ..authority.issuance("leaf")
    };
    let refused = store.record_issuance(again).await;
    assert!(
        matches!(&refused, Err(StoreError::DuplicateSerial { serial: taken }) if *taken == serial),
        "{refused:?}"
    );
    assert_eq!(store.issued_count().await.unwrap(), 1);
    assert_eq!(store.audit_head().await.unwrap(), head);

    store
        .record_issuance(authority.issuance("leaf"))
        .await
        .unwrap();
    assert_eq!(store.issued_count().await.unwrap(), 2);
    assert_eq!(intact(&store), 2);
}

/// Requests that are refused while others are in the same transaction fail alone.
pub async fn a_bad_request_does_not_fail_its_neighbours(database: &impl Database) {
    let authority = Arc::new(Authority::new());
    let store = open(database);
    let first = authority.issuance("leaf");
    let serial = first.signed.serial();
    store.record_issuance(first).await.unwrap();

    let mut tasks = JoinSet::new();
    for turn in 0..200 {
        let bad = turn % 3 == 0;
        let signed = if bad {
            authority.sign_as(serial)
        } else {
            authority.sign()
        };
        let issuance = Issuance {
            signed,
            ..authority.issuance("leaf")
        };
        let store = store.clone();
        tasks.spawn(async move { (bad, store.record_issuance(issuance).await) });
    }
    let mut good = 0;
    while let Some(answer) = tasks.join_next().await {
        let (bad, result) = answer.unwrap();
        assert_eq!(bad, result.is_err(), "{result:?}");
        good += u64::from(!bad);
    }
    assert_eq!(store.issued_count().await.unwrap(), 1 + good);
    assert_eq!(intact(&store), 1 + good);
}

/// Sixty-four at a time: each certificate is recorded, each answer carries its own.
pub async fn many_submitters_record_everything_once(database: &impl Database) {
    const SUBMITTERS: usize = 64;
    const EACH: usize = 10;
    let authority = Arc::new(Authority::new());
    let store = open(database);
    let mut tasks = JoinSet::new();
    for _ in 0..SUBMITTERS {
        let (authority, store) = (Arc::clone(&authority), store.clone());
        tasks.spawn(async move {
            let mut serials = Vec::new();
            for _ in 0..EACH {
                let issuance = authority.issuance("leaf");
                let serial = issuance.signed.serial();
                let recorded = store.record_issuance(issuance).await.unwrap();
                assert_eq!(recorded.serial, serial);
                serials.push(serial);
            }
            serials
        });
    }
    let serials: BTreeSet<Serial> = tasks.join_all().await.into_iter().flatten().collect();
    assert_eq!(serials.len(), SUBMITTERS * EACH);
    let mut listed = BTreeSet::new();
    let mut after = None;
    loop {
        let filter = IssuedFilter::default();
        let page = store.list_issued(filter, 100, after).await.unwrap();
        listed.extend(page.items.iter().map(|certificate| certificate.serial));
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    assert_eq!(listed, serials);
    assert_eq!(intact(&store), (SUBMITTERS * EACH) as u64);
}

/// Pages come in the order of issue and are cut where asked, for all and for one profile; a page
/// token survives its text form; rows recorded meanwhile come last.
pub async fn lists_are_paged_oldest_first_and_filtered_by_profile(database: &impl Database) {
    let authority = Authority::new();
    let store = open(database);
    let mut all = Vec::new();
    for turn in 0..10 {
        let profile = if turn % 2 == 0 { "even" } else { "odd" };
        let recorded = store
            .record_issuance(authority.issuance(profile))
            .await
            .unwrap();
        all.push(recorded.into_inner());
    }
    for filter in [None, Some("even"), Some("odd"), Some("none")] {
        let expected: Vec<_> = all
            .iter()
            .filter(|one| filter.is_none_or(|profile| one.profile == profile))
            .cloned()
            .collect();
        let filter = IssuedFilter {
            profile: filter.map(str::to_owned),
        };
        let mut found = Vec::new();
        let mut after: Option<Cursor> = None;
        loop {
            let page = store.list_issued(filter.clone(), 3, after).await.unwrap();
            assert!(page.items.len() <= 3);
            found.extend(page.items);
            let Some(next) = page.next else { break };
            after = Some(next.to_string().parse().unwrap());
        }
        assert_eq!(found, expected, "{filter:?}");
    }

    let first = store
        .list_issued(IssuedFilter::default(), 10, None)
        .await
        .unwrap();
    assert_eq!((first.items.len(), first.next), (10, None));
    let first = store
        .list_issued(IssuedFilter::default(), 9, None)
        .await
        .unwrap();
    let late = store
        .record_issuance(authority.issuance("even"))
        .await
        .unwrap();
    let rest = store
        .list_issued(IssuedFilter::default(), 9, first.next)
        .await
        .unwrap();
    assert_eq!(rest.items.last(), Some(&*late));
    assert_eq!(rest.items.len(), 2);
    assert!("-1".parse::<Cursor>().is_err() && "x".parse::<Cursor>().is_err());
}

/// A reader sees what was recorded as soon as the answer is there.
pub async fn what_was_recorded_is_read_at_once(database: &impl Database) {
    let authority = Authority::new();
    let store = open(database);
    for count in 1..=20 {
        let recorded = store
            .record_issuance(authority.issuance("leaf"))
            .await
            .unwrap();
        let found = store.find_issued(&recorded.serial).await.unwrap();
        assert_eq!(found.as_ref(), Some(&*recorded));
        assert_eq!(store.issued_count().await.unwrap(), count);
        let seq = store.append_audit(draft("between")).await.unwrap();
        assert_eq!(store.audit_head().await.unwrap().seq, seq);
    }
}
