//! One process at a time.

use std::io::{BufRead, BufReader};
use std::process::Child;

use vidimus_fs::lock::{DirLock, FileLock, LockError};

use crate::child;

/// Waits until the child says that it holds the lock; its output ends if it dies before.
fn wait_until_locked(child: &mut Child) {
    let stdout = child.stdout.take().unwrap();
    let locked = BufReader::new(stdout)
        .lines()
        .any(|line| line.unwrap().contains("locked"));
    assert!(locked, "the child did not get the lock");
}

/// C14.
#[test]
fn a_second_process_is_refused_and_hears_who_holds_the_lock() {
    let dir = tempfile::tempdir().unwrap();
    let mut child = child::command("lock", dir.path(), "").spawn().unwrap();
    wait_until_locked(&mut child);
    match DirLock::acquire(dir.path()) {
        Err(LockError::Held { path, holder }) => {
            assert_eq!(path, dir.path());
            assert_eq!(holder, Some(child.id()));
        }
        other => panic!("{other:?}"),
    }
    // A killed holder leaves nothing that anybody has to remove.
    child.kill().unwrap();
    child.wait().unwrap();
    DirLock::acquire(dir.path()).unwrap();
}

/// C14.
#[test]
fn within_one_process_a_lock_is_held_once_too() {
    let dir = tempfile::tempdir().unwrap();
    let lock = DirLock::acquire(dir.path()).unwrap();
    let refused = DirLock::acquire(dir.path()).unwrap_err();
    assert!(refused.to_string().contains("this process"), "{refused}");
    let file = FileLock::acquire(dir.path().join("vidimus.db.lock")).unwrap();
    drop(lock);
    DirLock::acquire(dir.path()).unwrap();
    drop(file);
    let absent = DirLock::acquire(dir.path().join("absent"));
    assert!(matches!(absent, Err(LockError::Lock { .. })), "{absent:?}");
}
