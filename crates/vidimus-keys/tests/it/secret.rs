use std::{fs, os::unix::fs::PermissionsExt, path::Path};

use vidimus_keys::{
    PrivateFileError, Secret,
    file::{FileKey, KeyAlgorithm},
    secret::SecretError,
};

fn file(dir: &Path, content: &[u8], mode: u32) -> std::path::PathBuf {
    let path = dir.join(format!("secret-{mode:o}"));
    let _absent = fs::remove_file(&path);
    #[expect(
        clippy::disallowed_methods,
        reason = "a file that another program wrote"
    )]
    fs::write(&path, content).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
    path
}

/// K9: what others can read is no secret.
#[test]
fn a_key_file_that_others_can_read_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let content = b"0123456789abcdef";
    for mode in [0o600, 0o400] {
        Secret::from_key_file(&file(dir.path(), content, mode)).unwrap();
    }
    for mode in [0o644, 0o640, 0o604, 0o620, 0o601, 0o660] {
        let refused = Secret::from_key_file(&file(dir.path(), content, mode)).unwrap_err();
        let SecretError::File(refused @ PrivateFileError::Exposed { mode: found, .. }) = &refused
        else {
            panic!("{refused:?}");
        };
        assert_eq!(*found, mode);
        assert!(refused.to_string().contains("chmod 600"), "{refused}");
    }
}

/// K9: a pipe would block, a folder has no content.
#[test]
fn only_a_regular_file_is_a_key_file() {
    let dir = tempfile::tempdir().unwrap();
    let pipe = dir.path().join("pipe");
    let made = std::process::Command::new("mkfifo")
        .arg("-m600")
        .arg(&pipe)
        .status()
        .unwrap();
    assert!(made.success());
    for path in [dir.path(), &pipe] {
        let refused = Secret::from_key_file(path).unwrap_err();
        assert!(
            matches!(
                refused,
                SecretError::File(PrivateFileError::NotRegular { .. })
            ),
            "{refused:?}"
        );
    }
    let absent = Secret::from_key_file(&dir.path().join("absent")).unwrap_err();
    assert!(matches!(
        absent,
        SecretError::File(PrivateFileError::Read { source, .. })
            if source.kind() == std::io::ErrorKind::NotFound
    ));
}

/// K9: the whole content is the secret, but for the line end that an editor adds.
#[test]
fn a_line_end_after_the_secret_does_not_count() {
    let dir = tempfile::tempdir().unwrap();
    let key_path = dir.path().join("ca.key");
    let key = FileKey::generate(KeyAlgorithm::EcdsaP384).unwrap();
    let plain = Secret::from_key_file(&file(dir.path(), b"0123456789abcdef", 0o600)).unwrap();
    key.save_new(&key_path, &plain).unwrap();
    for content in [&b"0123456789abcdef\n"[..], b"0123456789abcdef\r\n"] {
        let secret = Secret::from_key_file(&file(dir.path(), content, 0o600)).unwrap();
        FileKey::open(&key_path, &secret).unwrap();
    }
    let other = Secret::from_key_file(&file(dir.path(), b"0123456789abcdef ", 0o600)).unwrap();
    FileKey::open(&key_path, &other).unwrap_err();
}

/// K9: too short to withstand guessing, or too long to be meant.
#[test]
fn the_length_of_a_secret_is_bounded() {
    let passphrase = |text: &str| Secret::from_passphrase(text.to_owned().into());
    passphrase("twelve bytes").unwrap();
    let short = passphrase("eleven byte").unwrap_err();
    assert!(matches!(
        short,
        SecretError::TooShort {
            found: 11,
            accepted: 12
        }
    ));
    assert!(matches!(
        passphrase(&"x".repeat(4097)),
        Err(SecretError::TooLong)
    ));
    let dir = tempfile::tempdir().unwrap();
    let short = Secret::from_key_file(&file(dir.path(), b"0123456789abcde\n", 0o600));
    assert!(matches!(
        short,
        Err(SecretError::TooShort {
            found: 15,
            accepted: 16
        })
    ));
    let long = Secret::from_key_file(&file(dir.path(), &[b'x'; 5000], 0o600));
    assert!(matches!(
        long,
        Err(SecretError::File(PrivateFileError::TooLarge { .. }))
    ));
}

/// K9: a new key file is random, private, and never overwrites one that is there.
#[test]
fn a_new_key_file_is_private_and_never_overwrites() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("unlock");
    let made = Secret::create_key_file(&path).unwrap();
    let content = fs::read_to_string(&path).unwrap();
    assert_eq!(
        fs::metadata(&path).unwrap().permissions().mode() & 0o7777,
        0o600
    );
    assert_eq!(content.trim_end().len(), 64);
    assert!(
        content
            .trim_end()
            .bytes()
            .all(|byte| byte.is_ascii_hexdigit())
    );

    let key = FileKey::generate(KeyAlgorithm::EcdsaP384).unwrap();
    key.save_new(&dir.path().join("ca.key"), &made).unwrap();
    let read = Secret::from_key_file(&path).unwrap();
    FileKey::open(&dir.path().join("ca.key"), &read).unwrap();

    assert!(matches!(
        Secret::create_key_file(&path),
        Err(SecretError::Write { .. })
    ));
    assert_eq!(fs::read_to_string(&path).unwrap(), content);
    Secret::create_key_file(&dir.path().join("other")).unwrap();
    assert_ne!(
        fs::read_to_string(dir.path().join("other")).unwrap(),
        content
    );
}

/// K9: nothing that is printed shows a secret.
#[test]
fn debug_shows_neither_secret_nor_key() {
    let secret = Secret::from_passphrase("a passphrase".to_owned().into()).unwrap();
    assert_eq!(format!("{secret:?}"), "Secret(..)");
    let key = FileKey::generate(KeyAlgorithm::EcdsaP384).unwrap();
    assert_eq!(format!("{key:?}"), "FileKey { algorithm: EcdsaP384, .. }");
}
