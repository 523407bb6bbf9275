//! The audit log.

use vidimus_audit::{AuditSeed, Draft, Entry, Outcome};

use super::{Authority, Database, audit_seed, draft, intact, open};
use crate::certificate::detail::CERTIFICATE_SHA256;
use crate::error::OpenError;
use crate::identity::IdentityRow;

/// Every kind of write has its entry, in one chain, and reopening goes on with it.
pub async fn the_log_chains_over_everything_written_and_goes_on_after_reopening(
    database: &impl Database,
) {
    let authority = Authority::new();
    let store = open(database);
    store.append_audit(draft("first")).await.unwrap();
    store
        .record_issuance(authority.issuance("leaf"))
        .await
        .unwrap();
    store
        .put_config("a: 1", "d1", draft("ApplyConfig"))
        .await
        .unwrap();
    let row = IdentityRow {
        key_file: "ca-1.key".to_owned(),
        csr_der: None,
        chain_pem: None,
    };
    let id = store.put_identity(row, draft("Begin")).await.unwrap();
    store
        .activate_identity(id, "chain", draft("Complete"))
        .await
        .unwrap();
    store.put_meta("role", "root", draft("init")).await.unwrap();
    assert_eq!(intact(&store), 6);
    let head = store.audit_head().await.unwrap();
    assert_eq!(head.seq, 6);
    drop(store);

    let store = open(database);
    assert_eq!(store.audit_head().await.unwrap(), head);
    assert_eq!(store.append_audit(draft("seventh")).await.unwrap(), 7);
    assert_eq!(intact(&store), 7);
    let lines = store.audit_lines(3, 2).await.unwrap();
    assert_eq!(
        lines.iter().map(|line| line.seq).collect::<Vec<_>>(),
        [3, 4]
    );
    assert!(store.audit_lines(8, 10).await.unwrap().is_empty());
    assert_eq!(
        store.audit_public_key().await.unwrap(),
        audit_seed().key().public()
    );
}

/// The entry of an issuance says which certificate it is, whatever the caller wrote there.
pub async fn an_issuance_entry_names_its_certificate(database: &impl Database) {
    let authority = Authority::new();
    let store = open(database);
    let mut issuance = authority.issuance("leaf-server");
    issuance.audit = Draft::new("CN=admin", "IssueLeaf", Outcome::Error)
        .with("serial_hex", "00")
        .with("request_dns_names", "host.example");
    let recorded = store.record_issuance(issuance).await.unwrap();

    let entry = entry(&store.audit_lines(recorded.audit_seq, 1).await.unwrap()[0].json);
    assert_eq!(entry.seq, recorded.audit_seq);
    assert_eq!(entry.outcome, Outcome::Ok);
    assert_eq!(entry.details["serial_hex"], recorded.serial.to_string());
    assert_eq!(entry.details["profile"], "leaf-server");
    assert_eq!(entry.details["request_dns_names"], "host.example");
    assert_eq!(
        entry.details[CERTIFICATE_SHA256],
        vidimus_audit::entry::sha256_hex(&recorded.der)
    );
}

/// Refusals are entries too, with what was asked and by whom.
pub async fn a_refusal_has_its_entry(database: &impl Database) {
    let store = open(database);
    let refusal = Draft::new("CN=mallory", "IssueLeaf", Outcome::Denied)
        .with_request(b"request")
        // Only the entry of a certificate that is recorded tells of one.
        .with(CERTIFICATE_SHA256, "00");
    let digest = refusal.request_digest_sha256;
    let seq = store.append_audit(refusal).await.unwrap();
    let entry = entry(&store.audit_lines(seq, 1).await.unwrap()[0].json);
    assert_eq!(entry.actor_subject, "CN=mallory");
    assert_eq!(entry.outcome, Outcome::Denied);
    assert_eq!(entry.request_digest_sha256, digest);
    assert!(!entry.details.contains_key(CERTIFICATE_SHA256));
    assert_eq!(intact(&store), 1);
}

/// A log has one key for its whole life.
pub async fn another_audit_key_is_refused(database: &impl Database) {
    let store = open(database);
    store.append_audit(draft("first")).await.unwrap();
    drop(store);
    let other = AuditSeed::from_bytes(&[8; 32]).key();
    let refused = database.open(other);
    assert!(
        matches!(refused, Err(OpenError::AuditKey { .. })),
        "{refused:?}"
    );
    assert_eq!(intact(&open(database)), 1);
}

/// The number of the last committed entry is there to wait for.
pub async fn whoever_waits_for_commits_hears_of_each(database: &impl Database) {
    let store = open(database);
    let mut committed = store.committed();
    assert_eq!(*committed.borrow_and_update(), 0);
    for expected in 1..=3 {
        store.append_audit(draft("one")).await.unwrap();
        committed.changed().await.unwrap();
        assert_eq!(*committed.borrow_and_update(), expected);
    }
    drop(store);
    assert_eq!(*open(database).committed().borrow(), 3);
}

fn entry(json: &str) -> Entry {
    serde_json::from_str(json).unwrap()
}
