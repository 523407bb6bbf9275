//! A full disk: a clear refusal, nothing lost, and on it goes when there is room.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::time::Duration;

use vidimus_store::export::AuditFiles;
use vidimus_store::suite::{Authority, audit_seed, draft, intact};
use vidimus_store::verify::{self, Verdict};
use vidimus_store::{Options, Store, StoreError};
use vidimus_testkit::Process;

use crate::child::{self, Work};

/// Records until there is no room; returns how many were recorded.
async fn record_until_full(store: &Store, authority: &Authority) -> u64 {
    let mut recorded = 0;
    loop {
        match store.record_issuance(authority.issuance("leaf")).await {
            Ok(_) => recorded += 1,
            Err(StoreError::Full { path }) => {
                assert_eq!(path, store.path());
                return recorded;
            }
            Err(other) => panic!("{other:?}"),
        }
        assert!(recorded < 100_000, "the disk doesn't get full");
    }
}

/// X11. SQLite's own "database or disk is full", by the size that the store may have.
#[test]
fn a_store_at_its_greatest_size_refuses_and_loses_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("vidimus.db");
    let limited = || Options {
        max_bytes: Some(300_000),
        ..Options::default()
    };
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let authority = Authority::new();
        let store = Store::open_with(&path, audit_seed().key(), limited()).unwrap();
        let recorded = record_until_full(&store, &authority).await;
        assert!(recorded > 10);
        // Every kind of write hears it, all at a time too, and reading goes on.
        for _ in 0..3 {
            let answers = tokio::join!(
                store.record_issuance(authority.issuance("leaf")),
                store.put_config("x".repeat(50_000), "d", draft("Apply")),
                store.record_issuance(authority.issuance("leaf")),
            );
            assert!(
                matches!(answers.1, Err(StoreError::Full { .. })),
                "{:?}",
                answers.1
            );
        }
        let recorded = store.issued_count().await.unwrap();
        let entries = intact(&store);
        assert!(entries >= recorded);
        assert_eq!(store.config().await.unwrap(), None);
        drop(store);

        let store = Store::open(&path, audit_seed().key()).unwrap();
        assert_eq!(store.issued_count().await.unwrap(), recorded);
        store
            .record_issuance(authority.issuance("leaf"))
            .await
            .unwrap();
        store.put_config("a: 1", "d", draft("Apply")).await.unwrap();
        assert_eq!(intact(&store), entries + 2);
    });
}

/// The child, in a file system of a few megabytes that only it sees.
pub(crate) async fn fill_the_disk(dir: &Path) {
    let filler = dir.join("filler");
    File::create(&filler)
        .unwrap()
        .write_all(&vec![0; 2 << 20])
        .unwrap();
    let authority = Authority::new();
    let store = Store::open(dir.join("vidimus.db"), audit_seed().key()).unwrap();
    let files = AuditFiles::new(dir.join("audit"), store.clone());
    store
        .record_issuance(authority.issuance("leaf"))
        .await
        .unwrap();
    files.catch_up().await.unwrap();

    record_until_full(&store, &authority).await;
    let refused = store
        .append_audit(draft("x").with("reason", "y".repeat(20_000)))
        .await;
    assert!(
        matches!(refused, Err(StoreError::Full { .. })),
        "{refused:?}"
    );
    let recorded = store.issued_count().await.unwrap();
    assert_eq!(intact(&store), recorded);
    let behind = files.catch_up().await;
    assert!(behind.is_err(), "{behind:?}");
    let status = files.status().borrow().clone();
    assert_eq!(status.failures, 1);
    assert!(
        status
            .last_error
            .is_some_and(|error| error.contains("No space left"))
    );

    std::fs::remove_file(&filler).unwrap();
    store
        .record_issuance(authority.issuance("leaf"))
        .await
        .unwrap();
    let head = store.audit_head().await.unwrap();
    assert_eq!(intact(&store), recorded + 1);
    assert_eq!(files.catch_up().await.unwrap(), recorded + 1);
    assert_eq!(files.status().borrow().failures, 0);
    let verdict = verify::path(dir.join("audit"), audit_seed().key().public(), Some(head));
    assert!(matches!(verdict, Ok(Verdict::Intact(_))), "{verdict:?}");
    drop((files, store));

    let store = Store::open(dir.join("vidimus.db"), audit_seed().key()).unwrap();
    assert_eq!(store.issued_count().await.unwrap(), recorded + 1);
    println!("went on with {} certificates", recorded + 1);
}

/// X11. A real full file system (a tmpfs in a mount namespace of the child's own). Where the kernel
/// gives tests no such namespace, it says so, and the test above stands alone.
#[test]
fn a_full_disk_refuses_loses_nothing_and_goes_on_when_there_is_room() {
    let dir = tempfile::tempdir().unwrap();
    let Some(before) = child::in_own_mount(dir.path(), "") else {
        return;
    };
    let command = child::command(Work::FillTheDisk, dir.path(), &before);
    let mut process = Process::spawn(command);
    process.wait_for_line("went on with", Duration::from_secs(120));
    let status = process.wait_exit(Duration::from_secs(30));
    assert!(status.success(), "{process}");
}
