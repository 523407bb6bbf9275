//! Checking offline: what was done to a store or its files is found, and named.

use std::fs;
use std::path::Path;

use rusqlite::Connection;
use vidimus_audit::verify::Reason;
use vidimus_audit::{AuditSeed, Head};
use vidimus_store::Store;
use vidimus_store::export::AuditFiles;
use vidimus_store::suite::{Authority, audit_seed, draft};
use vidimus_store::verify::{Verdict, VerifyError, path as verify};

/// Five entries: an issuance, another entry, two issuances, another entry.
async fn store(dir: &Path) -> Head {
    let authority = Authority::new();
    let store = Store::open(dir.join("vidimus.db"), audit_seed().key()).unwrap();
    store
        .record_issuance(authority.issuance("leaf"))
        .await
        .unwrap();
    store.append_audit(draft("refused")).await.unwrap();
    store
        .record_issuance(authority.issuance("leaf"))
        .await
        .unwrap();
    store
        .record_issuance(authority.issuance("other"))
        .await
        .unwrap();
    store.append_audit(draft("last")).await.unwrap();
    AuditFiles::new(dir.join("audit"), store.clone())
        .catch_up()
        .await
        .unwrap();
    store.audit_head().await.unwrap()
}

fn check(path: &Path, expected: Option<Head>) -> Verdict {
    verify(path, audit_seed().key().public(), expected).unwrap()
}

/// What somebody who can write to the file can do: triggers are no lock.
fn tamper(path: &Path, sql: &str) {
    let connection = Connection::open(path).unwrap();
    connection
        .execute_batch(&format!(
            "DROP TRIGGER audit_no_update; DROP TRIGGER audit_no_delete;
             DROP TRIGGER certificate_no_update; DROP TRIGGER certificate_no_delete; {sql}"
        ))
        .unwrap();
}

/// C14.
#[tokio::test]
async fn a_store_and_its_files_verify_alike() {
    let dir = tempfile::tempdir().unwrap();
    let head = store(dir.path()).await;
    let day = fs::read_dir(dir.path().join("audit"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .find(|path| path.extension().is_some_and(|suffix| suffix == "log"))
        .unwrap();
    for path in [dir.path().join("vidimus.db"), dir.path().join("audit"), day] {
        match check(&path, Some(head)) {
            Verdict::Intact(found) => assert_eq!((found.entries, found.head), (5, head)),
            other => panic!("{}: {other:?}", path.display()),
        }
        let other = AuditSeed::from_bytes(&[9; 32]).key().public();
        let verdict = verify(&path, other, None).unwrap();
        assert!(
            matches!(&verdict, Verdict::Broken(found) if found.seq == 1),
            "{verdict:?}"
        );
    }
}

/// C14.
#[tokio::test]
async fn what_is_done_to_a_store_is_found() {
    let broken = |seq: u64, reason: Reason| move |verdict: &Verdict| matches!(verdict, Verdict::Broken(found) if found.seq == seq && found.reason == reason);
    let fault = |seq: u64, what: &'static str| move |verdict: &Verdict| matches!(verdict, Verdict::Certificate(f) if f.seq == seq && f.what.contains(what));
    type Expected = Box<dyn Fn(&Verdict) -> bool>;
    let cases: Vec<(&str, Expected)> = vec![
        (
            "UPDATE audit SET json = replace(json, 'CN=admin', 'CN=other') WHERE seq = 2",
            Box::new(broken(2, Reason::BadSignature)),
        ),
        (
            "DELETE FROM audit WHERE seq = 2",
            Box::new(broken(2, Reason::Gap { found: 3 })),
        ),
        (
            "DELETE FROM audit WHERE seq = 1",
            Box::new(broken(1, Reason::Gap { found: 2 })),
        ),
        (
            "DELETE FROM audit WHERE seq > 4",
            Box::new(broken(5, Reason::Truncated { found: 4 })),
        ),
        (
            "DELETE FROM audit WHERE seq > 3",
            Box::new(fault(4, "entry is missing")),
        ),
        (
            "DELETE FROM certificate WHERE id = 2",
            Box::new(fault(3, "not in the store")),
        ),
        (
            "DELETE FROM certificate WHERE id = 3",
            Box::new(fault(4, "not in the store")),
        ),
        (
            "UPDATE certificate SET der = x'3000' WHERE id = 2",
            Box::new(fault(3, "not the certificate")),
        ),
        (
            "UPDATE certificate SET serial = randomblob(16) WHERE id = 2",
            Box::new(fault(3, "serial number")),
        ),
        (
            "UPDATE certificate SET profile = 'leaf' WHERE id = 3",
            Box::new(fault(4, "profile")),
        ),
        (
            "UPDATE certificate SET audit_seq = 2 WHERE id = 2",
            Box::new(fault(2, "tells of none")),
        ),
    ];
    for (sql, expected) in cases {
        let dir = tempfile::tempdir().unwrap();
        let head = store(dir.path()).await;
        let path = dir.path().join("vidimus.db");
        assert!(matches!(check(&path, Some(head)), Verdict::Intact(_)));
        tamper(&path, sql);
        let verdict = check(&path, Some(head));
        assert!(expected(&verdict), "{sql}: {verdict:?}");
    }
}

/// C14. Without a place kept elsewhere a missing end can't be seen; with it, it is.
#[tokio::test]
async fn a_missing_end_of_the_files_is_found_by_the_expected_head() {
    let dir = tempfile::tempdir().unwrap();
    let head = store(dir.path()).await;
    let audit = dir.path().join("audit");
    let day = fs::read_dir(&audit)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .find(|path| path.extension().is_some_and(|suffix| suffix == "log"))
        .unwrap();
    let text = fs::read_to_string(&day).unwrap();
    let cut: String = text
        .lines()
        .take(3)
        .map(|line| format!("{line}\n"))
        .collect();
    vidimus_fs::durable::write(&day, cut.as_bytes(), vidimus_fs::Mode::Private).unwrap();
    assert!(matches!(check(&audit, None), Verdict::Intact(found) if found.entries == 3));
    match check(&audit, Some(head)) {
        Verdict::Broken(found) => assert_eq!(found.reason, Reason::Truncated { found: 3 }),
        other => panic!("{other:?}"),
    }
}

/// C14.
#[test]
fn what_is_no_log_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    for path in [dir.path().to_owned(), dir.path().join("absent")] {
        let refused = verify(&path, audit_seed().key().public(), None);
        assert!(
            matches!(refused, Err(VerifyError::NoLog { .. })),
            "{refused:?}"
        );
    }
    let file = dir.path().join("notes.txt");
    vidimus_fs::durable::write(&file, b"notes\n", vidimus_fs::Mode::Private).unwrap();
    let verdict = check(&file, None);
    assert!(
        matches!(&verdict, Verdict::Broken(found) if found.position.as_ref().is_some_and(|at| at.line == 1)),
        "{verdict:?}"
    );
}
