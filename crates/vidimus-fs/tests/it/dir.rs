//! Private folders.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;

use vidimus_fs::dir::{DirError, create_private, require_private};

/// C14.
#[test]
fn folders_are_made_for_their_owner_alone() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("a/b/c");
    create_private(&path).unwrap();
    for made in ["a", "a/b", "a/b/c"] {
        let mode = fs::metadata(root.path().join(made))
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o7777, 0o700, "{made}");
    }
    create_private(&path).unwrap();
    require_private(&path).unwrap();
}

/// C14.
#[test]
fn folders_that_others_may_enter_are_refused_and_left_as_they_are() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("data");
    create_private(&path).unwrap();
    for open in [0o750, 0o701, 0o704, 0o755] {
        fs::set_permissions(&path, Permissions::from_mode(open)).unwrap();
        for refused in [create_private(&path), require_private(&path)] {
            assert!(
                matches!(refused, Err(DirError::Open { found, .. }) if found == open),
                "{refused:?}"
            );
        }
        assert_eq!(
            fs::metadata(&path).unwrap().permissions().mode() & 0o7777,
            open
        );
    }
    for private in [0o700, 0o500] {
        fs::set_permissions(&path, Permissions::from_mode(private)).unwrap();
        require_private(&path).unwrap();
    }
    let file = root.path().join("file");
    fs::File::create(&file).unwrap();
    let refused = create_private(&file);
    assert!(
        matches!(refused, Err(DirError::NotAFolder { .. })),
        "{refused:?}"
    );
    let refused = require_private(root.path().join("absent"));
    assert!(
        matches!(refused, Err(DirError::Inspect { .. })),
        "{refused:?}"
    );
}
