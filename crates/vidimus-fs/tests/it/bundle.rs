//! Several files that change together.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use vidimus_fs::bundle::{PATIENCE, PublishError, Turn, publish};
use vidimus_fs::{Mode, durable};

const NAMES: [&str; 3] = ["tls.crt", "tls.key", "ca.crt"];

fn files(content: &[u8]) -> [(&str, &[u8], Mode); 3] {
    [
        ("tls.crt", content, Mode::Public),
        ("tls.key", content, Mode::Private),
        ("ca.crt", content, Mode::Public),
    ]
}

/// Reads as a careful reader does: `..data` is resolved once, and all names are read below it.
fn read_once(dir: &Path) -> io::Result<Vec<Vec<u8>>> {
    let generation = dir.join(fs::read_link(dir.join("..data"))?);
    NAMES
        .iter()
        .map(|name| fs::read(generation.join(name)))
        .collect()
}

fn hidden(dir: &Path) -> usize {
    fs::read_dir(dir)
        .unwrap()
        .filter(|entry| {
            let name = entry.as_ref().unwrap().file_name();
            name.to_str().unwrap().starts_with('.')
        })
        .count()
}

/// V10.
#[test]
fn the_files_appear_under_their_names_with_their_modes() {
    let root = tempfile::tempdir().unwrap();
    let dir = root.path().join("new/tls");
    publish(&dir, &files(b"one")).unwrap();
    for (name, content, mode) in files(b"one") {
        let path = dir.join(name);
        assert_eq!(fs::read(&path).unwrap(), content);
        assert_eq!(
            fs::metadata(&path).unwrap().permissions().mode() & 0o777,
            mode.bits()
        );
        assert_eq!(
            fs::read_link(&path).unwrap(),
            Path::new("..data").join(name)
        );
    }
    publish(&dir, &files(b"two")).unwrap();
    assert!(
        NAMES
            .iter()
            .all(|name| fs::read(dir.join(name)).unwrap() == b"two")
    );
    assert_eq!(
        hidden(&dir),
        2,
        "`..data` and the one generation it leads to"
    );
}

/// V10.
#[test]
fn a_reader_beside_a_writer_sees_one_generation_only() {
    let root = tempfile::tempdir().unwrap();
    let dir = root.path().join("tls");
    publish(&dir, &files(b"0")).unwrap();
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            for turn in 1..150_u8 {
                publish(&dir, &files(&[turn; 5000])).unwrap();
            }
            done.store(true, Ordering::Release);
        });
        let mut read = 0;
        while !done.load(Ordering::Acquire) || read == 0 {
            match read_once(&dir) {
                Ok(contents) => {
                    read += 1;
                    assert!(contents.iter().all(|content| *content == contents[0]));
                }
                // The generation went away between two reads: the next look finds a newer one.
                Err(error) => assert_eq!(error.kind(), io::ErrorKind::NotFound),
            }
        }
    });
    assert_eq!(read_once(&dir).unwrap(), vec![vec![149; 5000]; 3]);
}

/// V10. The first publication over an empty folder: none of the names, then all.
#[test]
fn new_names_appear_together() {
    let root = tempfile::tempdir().unwrap();
    let dir = root.path();
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            publish(dir, &files(b"one")).unwrap();
            done.store(true, Ordering::Release);
        });
        while !done.load(Ordering::Acquire) {
            // Whoever finds the first of them finds the others.
            if fs::read(dir.join("tls.crt")).is_ok() {
                assert!(NAMES.iter().all(|name| fs::read(dir.join(name)).is_ok()));
            }
        }
    });
}

/// V10.
#[test]
fn files_laid_out_by_hand_are_taken_over_and_replaced() {
    let root = tempfile::tempdir().unwrap();
    let dir = root.path();
    durable::write(dir.join("tls.crt"), b"by hand", Mode::Public).unwrap();
    durable::write(dir.join("tls.key"), b"by hand", Mode::Private).unwrap();
    durable::write(dir.join("notes.txt"), b"keep", Mode::Public).unwrap();
    publish(dir, &files(b"one")).unwrap();
    assert_eq!(read_once(dir).unwrap(), vec![b"one".to_vec(); 3]);
    assert_eq!(fs::read(dir.join("tls.key")).unwrap(), b"one");
    assert_eq!(fs::read(dir.join("notes.txt")).unwrap(), b"keep");
    assert_eq!(hidden(dir), 2);
}

/// V10.
#[test]
fn names_no_longer_published_go_away() {
    let root = tempfile::tempdir().unwrap();
    let dir = root.path();
    publish(dir, &files(b"one")).unwrap();
    publish(dir, &files(b"two")[..2]).unwrap();
    assert_eq!(fs::read(dir.join("tls.key")).unwrap(), b"two");
    assert!(fs::symlink_metadata(dir.join("ca.crt")).is_err());
}

/// V10. A publication that fails, or died before the swap, leaves the old files.
#[test]
fn a_failed_publication_leaves_the_old_files() {
    let root = tempfile::tempdir().unwrap();
    let dir = root.path();
    publish(dir, &files(b"one")).unwrap();
    for bad in ["", "..data", "a/b", ".."] {
        let refused = publish(
            dir,
            &[("tls.crt", b"two", Mode::Public), (bad, b"x", Mode::Public)],
        );
        assert!(
            matches!(refused, Err(PublishError::Name { .. })),
            "{bad:?} {refused:?}"
        );
    }
    // The same name twice can't be written twice.
    let twice = [("tls.crt", b"two".as_slice(), Mode::Public); 2];
    let refused = publish(dir, &twice);
    assert!(
        matches!(refused, Err(PublishError::Write(_))),
        "{refused:?}"
    );
    assert_eq!(read_once(dir).unwrap(), vec![b"one".to_vec(); 3]);

    // What a dead publisher left (a half-made generation) is swept by the next.
    fs::create_dir(dir.join("..generation-00000000000000000099")).unwrap();
    publish(dir, &files(b"three")).unwrap();
    assert_eq!(read_once(dir).unwrap(), vec![b"three".to_vec(); 3]);
    assert_eq!(hidden(dir), 2);
}

/// V10.
#[test]
fn publishers_take_turns() {
    let root = tempfile::tempdir().unwrap();
    let dir = root.path();
    thread::scope(|scope| {
        for publisher in 0..4_u8 {
            scope.spawn(move || {
                for _ in 0..5 {
                    publish(dir, &files(&[publisher; 100])).unwrap();
                }
            });
        }
    });
    let contents = read_once(dir).unwrap();
    assert!(contents.iter().all(|content| *content == contents[0]));
    assert_eq!(hidden(dir), 2);
}

/// V10. Each adds to what it finds, and nothing is lost: what is there can't change during a turn.
#[test]
fn what_is_made_of_the_present_files_loses_nothing() {
    let root = tempfile::tempdir().unwrap();
    let dir = root.path();
    publish(dir, &files(b"")).unwrap();
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(move || {
                for _ in 0..5 {
                    let turn = Turn::take(dir, PATIENCE).unwrap();
                    let mut content = fs::read(dir.join("ca.crt")).unwrap();
                    content.push(b'x');
                    turn.publish(&files(&content)).unwrap();
                }
            });
        }
    });
    assert_eq!(read_once(dir).unwrap(), vec![vec![b'x'; 20]; 3]);
}

/// V10. A turn that never ends is waited for no longer than asked, and the refusal names the folder.
#[test]
fn a_turn_is_waited_for_in_bounds() {
    let root = tempfile::tempdir().unwrap();
    let dir = root.path();
    let turn = Turn::take(dir, PATIENCE).unwrap();
    let refused = Turn::take(dir, Duration::from_millis(30)).unwrap_err();
    assert!(
        matches!(refused, PublishError::Busy { .. })
            && refused.to_string().contains(dir.to_str().unwrap()),
        "{refused}"
    );
    drop(turn);
    Turn::take(dir, Duration::ZERO).unwrap();
}
