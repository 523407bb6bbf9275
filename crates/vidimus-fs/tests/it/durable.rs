//! One file: the old content or the new one.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use vidimus_fs::durable::{self, WriteError};
use vidimus_fs::{Mode, read};

use crate::child;

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

fn names(dir: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

/// C3.
#[test]
fn a_file_is_written_with_its_mode_and_nothing_beside_it() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("ca.key");
    durable::write(&path, b"one", Mode::Private).unwrap();
    assert_eq!(
        (fs::read(&path).unwrap(), mode(&path)),
        (b"one".to_vec(), 0o600)
    );
    durable::write(&path, b"two", Mode::Public).unwrap();
    assert_eq!(
        (fs::read(&path).unwrap(), mode(&path)),
        (b"two".to_vec(), 0o644)
    );
    assert_eq!(names(dir.path()), ["ca.key"]);
}

/// C3.
#[test]
fn a_file_that_exists_is_not_created_again() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("ca.key");
    durable::create_new(&path, b"one", Mode::Private).unwrap();
    let refused = durable::create_new(&path, b"two", Mode::Private);
    assert!(
        matches!(refused, Err(WriteError::Exists { .. })),
        "{refused:?}"
    );
    assert_eq!(
        (fs::read(&path).unwrap(), mode(&path)),
        (b"one".to_vec(), 0o600)
    );

    let dangling = dir.path().join("dangling");
    symlink("nowhere", &dangling).unwrap();
    let refused = durable::create_new(&dangling, b"two", Mode::Private);
    assert!(
        matches!(refused, Err(WriteError::Exists { .. })),
        "{refused:?}"
    );
    assert_eq!(names(dir.path()), ["ca.key", "dangling"]);
}

/// C3.
#[test]
fn of_many_that_create_one_file_one_succeeds() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("audit.seed");
    let succeeded = thread::scope(|scope| {
        let writers: Vec<_> = (0..8)
            .map(|n: u8| {
                let path = &path;
                scope.spawn(move || durable::create_new(path, &[n; 4096], Mode::Private).is_ok())
            })
            .collect();
        let results = writers.into_iter().map(|writer| writer.join().unwrap());
        results.filter(|succeeded| *succeeded).count()
    });
    assert_eq!(succeeded, 1);
    let content = fs::read(&path).unwrap();
    assert!(content.len() == 4096 && content.iter().all(|byte| *byte == content[0]));
    assert_eq!(names(dir.path()), ["audit.seed"]);
}

/// X10. A process that dies in the middle of writing (here by the file size limit, which kills it
/// with a signal) leaves what was there.
#[test]
fn death_in_the_middle_leaves_the_old_content() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("tls.key");
    durable::write(&path, b"old", Mode::Private).unwrap();
    let killed = child::command("write", &path, "ulimit -f 64")
        .output()
        .unwrap();
    assert!(
        !killed.status.success(),
        "the child was to be stopped: {killed:?}"
    );
    assert_eq!(fs::read(&path).unwrap(), b"old");

    let absent = dir.path().join("new.key");
    let killed = child::command("create", &absent, "ulimit -f 64")
        .output()
        .unwrap();
    assert!(
        !killed.status.success(),
        "the child was to be stopped: {killed:?}"
    );
    assert!(!absent.exists());

    for work in [("write", &path), ("create", &absent)] {
        let done = child::command(work.0, work.1, "").output().unwrap();
        assert!(done.status.success(), "{done:?}");
        assert_eq!(fs::read(work.1).unwrap(), vec![b'n'; 1 << 20]);
    }
}

/// X10. A failure that is reported (the target's name is a folder's) leaves no temporary file.
#[test]
fn a_failure_leaves_everything_as_it_was() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("tls.key");
    fs::create_dir(&folder).unwrap();
    let failed = durable::write(&folder, b"new", Mode::Private);
    assert!(
        matches!(failed, Err(WriteError::Place { .. })),
        "{failed:?}"
    );
    let failed = durable::write(dir.path().join("absent/tls.key"), b"new", Mode::Private);
    assert!(
        matches!(failed, Err(WriteError::Write { .. })),
        "{failed:?}"
    );
    let failed = durable::write("/", b"new", Mode::Private);
    assert!(
        matches!(failed, Err(WriteError::NotAFileName { .. })),
        "{failed:?}"
    );
    assert_eq!(names(dir.path()), ["tls.key"]);
    assert!(folder.is_dir());
}

/// X10.
#[test]
fn a_reader_beside_a_writer_sees_whole_contents_only() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("file");
    durable::write(&path, &[0; 8192], Mode::Private).unwrap();
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            for turn in 0..200_u8 {
                durable::write(&path, &[turn; 8192], Mode::Private).unwrap();
            }
            done.store(true, Ordering::Release);
        });
        while !done.load(Ordering::Acquire) {
            let content = read::bounded(&path, 8192).unwrap();
            assert_eq!(content.len(), 8192);
            assert!(content.iter().all(|byte| *byte == content[0]));
        }
    });
}
