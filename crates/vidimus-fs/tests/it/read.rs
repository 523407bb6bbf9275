//! Bounded reads, and what counts as absent.

use std::fs;
use std::os::unix::fs::symlink;

use vidimus_fs::Mode;
use vidimus_fs::durable;
use vidimus_fs::read::{ReadError, bounded};

/// V7.
#[test]
fn only_an_absent_file_is_not_found() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    durable::write(&file, b"12345", Mode::Public).unwrap();
    assert_eq!(bounded(&file, 5).unwrap(), b"12345");

    let absent = bounded(dir.path().join("absent"), 5);
    assert!(
        matches!(absent, Err(ReadError::NotFound { .. })),
        "{absent:?}"
    );
    symlink("absent", dir.path().join("dangling")).unwrap();
    let dangling = bounded(dir.path().join("dangling"), 5);
    assert!(
        matches!(dangling, Err(ReadError::NotFound { .. })),
        "{dangling:?}"
    );

    let folder = bounded(dir.path(), 5);
    assert!(matches!(folder, Err(ReadError::Read { .. })), "{folder:?}");
    let below_a_file = bounded(file.join("x"), 5);
    assert!(
        matches!(below_a_file, Err(ReadError::Read { .. })),
        "{below_a_file:?}"
    );
    symlink("loop", dir.path().join("loop")).unwrap();
    let looped = bounded(dir.path().join("loop"), 5);
    assert!(matches!(looped, Err(ReadError::Read { .. })), "{looped:?}");
}

/// V7.
#[test]
fn a_larger_file_is_refused_and_one_of_the_greatest_size_is_not() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    durable::write(&file, &[b'x'; 100], Mode::Public).unwrap();
    assert_eq!(bounded(&file, 100).unwrap().len(), 100);
    let refused = bounded(&file, 99);
    assert!(
        matches!(refused, Err(ReadError::TooLarge { max_bytes: 99, .. })),
        "{refused:?}"
    );
    // A file without an end, and with a size of 0 in its metadata.
    assert_eq!(fs::metadata("/dev/zero").unwrap().len(), 0);
    let endless = bounded("/dev/zero", 1 << 16);
    assert!(
        matches!(endless, Err(ReadError::TooLarge { .. })),
        "{endless:?}"
    );
}
