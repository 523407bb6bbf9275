//! The store's files: modes, locks, what is refused.

use std::fs::{self, File, Permissions};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use rusqlite::Connection;
use vidimus_fs::lock::LockError;
use vidimus_store::suite::{Authority, audit_seed, draft, intact};
use vidimus_store::{IssuedFilter, OpenError, Store};
use vidimus_testkit::Process;

use crate::child::{self, Work};

fn open(path: &Path) -> Result<Store, OpenError> {
    Store::open(path, audit_seed().key())
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Runtime::new().unwrap().block_on(future)
}

/// C14.
#[test]
fn all_files_are_for_their_owner_alone() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("vidimus.db");
    let modes = || -> Vec<(String, u32)> {
        let mut modes: Vec<_> = fs::read_dir(dir.path())
            .unwrap()
            .map(|entry| {
                let entry = entry.unwrap();
                let mode = entry.metadata().unwrap().permissions().mode() & 0o7777;
                (entry.file_name().into_string().unwrap(), mode)
            })
            .collect();
        modes.sort();
        modes
    };
    let store = open(&path).unwrap();
    block_on(store.append_audit(draft("x"))).unwrap();
    let names = [
        "vidimus.db",
        "vidimus.db-shm",
        "vidimus.db-wal",
        "vidimus.db.lock",
    ];
    assert_eq!(modes(), names.map(|name| (name.to_owned(), 0o600)));
    drop(store);
    // Closed as it should be, there is no log left to be forgotten when the file is copied.
    assert_eq!(modes().len(), 2);

    fs::set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
    let store = open(&path).unwrap();
    assert!(modes().iter().all(|(_, mode)| *mode == 0o600));
    assert_eq!(intact(&store), 1);
}

/// C14.
#[test]
fn a_second_process_is_refused_until_the_first_is_gone() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("vidimus.db");
    let mut process = Process::spawn(child::command(Work::Record, dir.path(), &["env"]));
    process.wait_for_line("recorded", std::time::Duration::from_secs(60));
    let refused = open(&path);
    assert!(
        matches!(
            &refused,
            Err(OpenError::Locked(LockError::Held { holder, .. })) if *holder == Some(process.id())
        ),
        "{refused:?}"
    );
    process.kill();
    assert!(intact(&open(&path).unwrap()) > 0);
}

/// C14.
#[test]
fn within_one_process_a_store_is_open_once_and_can_be_opened_again_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("vidimus.db");
    for turn in 1..20 {
        let store = open(&path).unwrap();
        assert!(matches!(open(&path), Err(OpenError::Locked(_))));
        assert_eq!(block_on(store.append_audit(draft("x"))).unwrap(), turn);
    }
}

/// C14.
#[test]
fn a_newer_schema_is_refused_and_left_as_it_is() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("vidimus.db");
    drop(open(&path).unwrap());
    let version = |to: Option<i64>| {
        let connection = Connection::open(&path).unwrap();
        if let Some(to) = to {
            connection.pragma_update(None, "user_version", to).unwrap();
        }
        connection
            .query_row("PRAGMA user_version", [], |row| row.get::<_, i64>(0))
            .unwrap()
    };
    let newest = version(None);
    version(Some(newest + 1));
    for refused in [
        open(&path).map(drop),
        Store::open_read_only(&path).map(drop),
    ] {
        assert!(
            matches!(
                refused,
                Err(OpenError::NewerSchema { found, supported, .. })
                    if found == newest + 1 && supported == newest
            ),
            "{refused:?}"
        );
    }
    assert_eq!(version(None), newest + 1);
    version(Some(newest));
    open(&path).unwrap();
}

/// C14.
#[test]
fn what_is_not_ours_is_refused_and_left_as_it_is() {
    let dir = tempfile::tempdir().unwrap();
    let text = dir.path().join("text");
    let line = "not a database, but long enough to be looked at as one ".repeat(20);
    File::create(&text)
        .unwrap()
        .write_all(line.as_bytes())
        .unwrap();
    let other = dir.path().join("other.db");
    let connection = Connection::open(&other).unwrap();
    connection
        .execute_batch("CREATE TABLE t (x); INSERT INTO t VALUES (1)")
        .unwrap();
    drop(connection);
    for path in [&text, &other] {
        let before = fs::read(path).unwrap();
        for refused in [open(path).map(drop), Store::open_read_only(path).map(drop)] {
            assert!(
                matches!(refused, Err(OpenError::NotAStore { .. })),
                "{refused:?}"
            );
        }
        assert_eq!(fs::read(path).unwrap(), before);
    }
    let absent = dir.path().join("absent.db");
    let refused = Store::open_read_only(&absent);
    assert!(
        matches!(refused, Err(OpenError::NotFound { .. })),
        "{refused:?}"
    );
    assert!(!absent.exists());
    let refused = open(&dir.path().join("no/folder/vidimus.db"));
    assert!(
        matches!(refused, Err(OpenError::Locked(LockError::Lock { .. }))),
        "{refused:?}"
    );
}

/// C13. Beside the one that writes, others read what is committed.
#[test]
fn a_store_in_use_can_be_read_by_others() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("vidimus.db");
    block_on(async {
        let store = open(&path).unwrap();
        let authority = Authority::new();
        let reader = Store::open_read_only(&path).unwrap();
        for count in 1..=5 {
            store
                .record_issuance(authority.issuance("leaf"))
                .await
                .unwrap();
            assert_eq!(reader.issued_count().await.unwrap(), count);
        }
        assert_eq!(intact(&reader), 5);
        drop(store);
        assert_eq!(reader.issued_count().await.unwrap(), 5);
    });
}

/// The child: the folder is on a file system that is mounted read-only.
pub(crate) fn check_read_only(dir: &Path) {
    let path = dir.join("odd ?#%&name.db");
    assert!(
        File::create(dir.join("x")).is_err(),
        "the medium can be written to"
    );
    assert_eq!(intact(&Store::open_read_only(&path).unwrap()), 1);
    println!("read it");
}

/// C14. A copy can be checked where nothing can be written, whatever its name is.
#[test]
fn a_copy_on_a_read_only_medium_can_be_checked() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("vidimus.db");
    let store = open(&path).unwrap();
    block_on(store.append_audit(draft("x"))).unwrap();
    drop(store);
    let mount = dir.path().join("mount");
    fs::create_dir(&mount).unwrap();
    let (from, to) = (path.display(), mount.display());
    let then = format!("cp '{from}' '{to}/odd ?#%&name.db' && mount -o remount,ro '{to}' &&");
    let Some(before) = child::in_own_mount(&mount, &then) else {
        return;
    };
    let mut process = Process::spawn(child::command(Work::ReadOnlyMedium, &mount, &before));
    process.wait_for_line("read it", std::time::Duration::from_secs(60));
}

/// C13. Rows and entries can't be changed or deleted, not even by a later mistake of ours.
#[test]
fn what_was_recorded_can_not_be_changed_or_deleted() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("vidimus.db");
    let store = open(&path).unwrap();
    block_on(store.record_issuance(Authority::new().issuance("leaf"))).unwrap();
    let connection = Connection::open(&path).unwrap();
    for statement in [
        "DELETE FROM certificate",
        "UPDATE certificate SET profile = 'other'",
        "DELETE FROM audit",
        "UPDATE audit SET json = '{}'",
    ] {
        let refused = connection.execute(statement, []).unwrap_err().to_string();
        assert!(refused.contains("never changed"), "{statement}: {refused}");
    }
    let page = block_on(store.list_issued(IssuedFilter::default(), 10, None)).unwrap();
    assert_eq!(page.items.len(), 1);
    assert_eq!(intact(&store), 1);
}

/// X13. Looking a certificate up and listing walk an index: no statement reads a whole table.
#[test]
fn no_question_walks_a_whole_table() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("vidimus.db");
    drop(open(&path).unwrap());
    let connection = Connection::open(&path).unwrap();
    let plan = |sql: &str| -> String {
        let mut statement = connection
            .prepare(&format!("EXPLAIN QUERY PLAN {sql}"))
            .unwrap();
        let details = statement
            .query_map([], |row| row.get::<_, String>(3))
            .unwrap();
        details.map(Result::unwrap).collect::<Vec<_>>().join("; ")
    };
    for (sql, expected) in [
        (
            "SELECT der FROM certificate WHERE serial = x'00'",
            "SEARCH certificate USING INDEX",
        ),
        (
            "SELECT der FROM certificate WHERE id > 5 ORDER BY id LIMIT 9",
            "SEARCH certificate USING INTEGER PRIMARY KEY",
        ),
        (
            "SELECT der FROM certificate INDEXED BY certificate_by_profile
             WHERE profile = 'x' AND id > 5 ORDER BY id LIMIT 9",
            "SEARCH certificate USING INDEX certificate_by_profile (profile=? AND id>?)",
        ),
        (
            "SELECT coalesce(max(id), 0) FROM certificate",
            "SEARCH certificate",
        ),
        (
            "SELECT json FROM audit WHERE seq >= 5 ORDER BY seq LIMIT 9",
            "SEARCH audit USING INTEGER PRIMARY KEY",
        ),
    ] {
        let found = plan(sql);
        assert!(found.starts_with(expected), "{sql}: {found}");
        assert!(!found.contains("TEMP B-TREE"), "{sql}: {found}");
    }
}
