use std::{error::Error, fs, os::unix::fs::PermissionsExt, path::Path, time::Instant};

use vidimus_keys::{
    PrivateFileError, Secret,
    file::{EncryptionError, FileKey, KeyAlgorithm, KeyError},
};
use vidimus_x509::{
    key, pem,
    signer::{SignatureAlgorithm, Signer},
};

use crate::openssl;

const PASSPHRASE: &str = "correct horse battery staple";

fn secret(text: &str) -> Secret {
    Secret::from_passphrase(text.to_owned().into()).unwrap()
}

fn put(path: &Path, content: &[u8]) {
    #[expect(
        clippy::disallowed_methods,
        reason = "a file that another program wrote"
    )]
    fs::write(path, content).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o600)).unwrap();
}

/// K9: each kind of key comes back from its file as the same key, signs, and openssl agrees.
#[test]
fn keys_come_back_from_their_files_and_openssl_verifies_what_they_sign() {
    let dir = tempfile::tempdir().unwrap();
    for (algorithm, text, signs) in [
        (
            KeyAlgorithm::EcdsaP384,
            "EC P-384",
            SignatureAlgorithm::EcdsaP384Sha384,
        ),
        (
            KeyAlgorithm::Rsa3072,
            "RSA 3072",
            SignatureAlgorithm::RsaPkcs1Sha384,
        ),
        (
            KeyAlgorithm::Rsa4096,
            "RSA 4096",
            SignatureAlgorithm::RsaPkcs1Sha384,
        ),
    ] {
        let path = dir.path().join(format!("{algorithm}.key"));
        let made = FileKey::generate(algorithm).unwrap();
        made.save_new(&path, &secret(PASSPHRASE)).unwrap();
        let opened = FileKey::open(&path, &secret(PASSPHRASE)).unwrap();
        assert_eq!(opened.spki_der(), made.spki_der());
        assert_eq!(
            (opened.key_algorithm(), opened.algorithm()),
            (algorithm, signs)
        );
        assert_eq!(key::describe(opened.spki_der()), text);

        let message = b"to be signed";
        let public = dir.path().join("public.pem");
        let signature = dir.path().join("signature");
        put(
            &public,
            pem::encode("PUBLIC KEY", opened.spki_der()).as_bytes(),
        );
        put(&signature, &opened.sign(message).unwrap());
        let verify = |message: &[u8]| {
            let (public, signature) = (public.to_str().unwrap(), signature.to_str().unwrap());
            let args = [
                "dgst",
                "-sha384",
                "-verify",
                public,
                "-signature",
                signature,
            ];
            openssl::try_run(&args, message).status.success()
        };
        assert!(verify(message), "{algorithm}");
        assert!(!verify(b"something else"), "{algorithm}");
    }
}

/// K9: an operator can get at the key without us, with the same passphrase only.
#[test]
fn openssl_reads_a_key_file_with_its_passphrase() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("ca.key");
    let key = FileKey::generate(KeyAlgorithm::EcdsaP384).unwrap();
    key.save_new(&path, &secret(PASSPHRASE)).unwrap();
    let path = path.to_str().unwrap();
    let with = |pass: &str| {
        let pass = format!("pass:{pass}");
        let args = [
            "pkey", "-in", path, "-passin", &pass, "-pubout", "-outform", "DER",
        ];
        openssl::try_run(&args, b"")
    };
    assert_eq!(with(PASSPHRASE).stdout, key.spki_der());
    assert!(!with("correct horse battery stable").status.success());
    let text = openssl::run(&["asn1parse", "-in", path], b"");
    let text = String::from_utf8(text).unwrap();
    assert!(
        text.contains(":scrypt") && text.contains(":aes-256-cbc"),
        "{text}"
    );
}

/// K9: a key that openssl encrypted opens too.
#[test]
fn a_key_encrypted_by_openssl_opens() {
    let dir = tempfile::tempdir().unwrap();
    let pass = format!("pass:{PASSPHRASE}");
    for (curve, kdf) in [
        ("P-384", &["-v2", "aes-256-cbc", "-iter", "600000"][..]),
        ("P-384", &["-scrypt"]),
    ] {
        let curve = format!("ec_paramgen_curve:{curve}");
        let plain = openssl::run(&["genpkey", "-algorithm", "EC", "-pkeyopt", &curve], b"");
        let mut args = vec!["pkcs8", "-topk8", "-passout", &pass];
        args.extend(kdf);
        let path = dir.path().join("theirs.key");
        put(&path, &openssl::run(&args, &plain));
        let key = FileKey::open(&path, &secret(PASSPHRASE)).unwrap();
        let public = openssl::run(&["pkey", "-pubout", "-outform", "DER"], &plain);
        assert_eq!(key.spki_der(), public);
    }
}

/// K9: the wrong secret is an error that says so, whatever it decrypts to.
#[test]
fn a_wrong_secret_is_told_from_a_damaged_file() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("ca.key");
    let key = FileKey::generate(KeyAlgorithm::EcdsaP384).unwrap();
    key.save_new(&path, &secret(PASSPHRASE)).unwrap();
    FileKey::open(&path, &secret(PASSPHRASE)).unwrap();
    let wrong = FileKey::open(&path, &secret("another passphrase")).unwrap_err();
    assert!(matches!(&wrong, KeyError::WrongSecret { path: of } if *of == path));
    assert!(!format!("{wrong}").contains("another"));

    let whole = fs::read(&path).unwrap();
    for damaged in [
        &b""[..],
        b"no key at all",
        &whole[..whole.len() / 2],
        b"-----BEGIN ENCRYPTED PRIVATE KEY-----\nMAMCAQE=\n-----END ENCRYPTED PRIVATE KEY-----\n",
    ] {
        put(&path, damaged);
        let refused = FileKey::open(&path, &secret(PASSPHRASE)).unwrap_err();
        assert!(
            matches!(refused, KeyError::Pem { .. } | KeyError::Damaged { .. }),
            "{refused:?}"
        );
    }
}

/// K9: no byte of the file can be changed unnoticed, and none makes it panic, hang or fill memory.
#[test]
fn a_file_damaged_at_any_byte_of_its_parameters_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("ca.key");
    let key = FileKey::generate(KeyAlgorithm::EcdsaP384).unwrap();
    key.save_new(&path, &secret(PASSPHRASE)).unwrap();
    let text = fs::read(&path).unwrap();
    let der = pem::decode("ENCRYPTED PRIVATE KEY", &text).unwrap();
    // The key's own bytes begin after the parameters; of those a sample is enough, each costs a
    // key derivation.
    let parameters = 110;
    let tested = (0..parameters)
        .step_by(3)
        .chain((parameters..der.len()).step_by(97));
    for position in tested {
        let change = if position % 2 == 0 { 0x01 } else { 0xff };
        let mut damaged = der.clone();
        damaged[position] ^= change;
        put(
            &path,
            pem::encode("ENCRYPTED PRIVATE KEY", &damaged).as_bytes(),
        );
        let began = Instant::now();
        match FileKey::open(&path, &secret(PASSPHRASE)) {
            // A changed IV changes the first block only, some bits of which mean nothing.
            Ok(opened) => assert_eq!(opened.spki_der(), key.spki_der()),
            Err(refused) => assert!(
                refused.source().is_some()
                    || matches!(
                        refused,
                        KeyError::WrongSecret { .. } | KeyError::Unsupported { .. }
                    )
            ),
        }
        assert!(
            began.elapsed().as_secs() < 60,
            "byte {position} ^ {change:#x}"
        );
    }
}

/// K9: parameters that would cost gigabytes or hours are refused before they are used.
#[test]
fn a_key_derivation_that_costs_too_much_is_not_begun() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("ca.key");
    let key = FileKey::generate(KeyAlgorithm::EcdsaP384).unwrap();
    key.save_new(&path, &secret(PASSPHRASE)).unwrap();
    let der = pem::decode("ENCRYPTED PRIVATE KEY", &fs::read(&path).unwrap()).unwrap();
    // INTEGER 16384, 8, 5 stand one after the other.
    let ours = [2, 2, 0x40, 0x00, 2, 1, 8, 2, 1, 5];
    let at = der
        .windows(ours.len())
        .position(|window| window == ours)
        .unwrap();
    for theirs in [
        [2, 2, 0x40, 0x00, 2, 1, 8, 2, 1, 33],
        [2, 2, 0x40, 0x00, 2, 1, 127, 2, 1, 5],
        [2, 2, 0x40, 0x00, 2, 1, 8, 2, 1, 0],
        [2, 2, 0x40, 0x00, 2, 1, 0, 2, 1, 5],
        [2, 2, 0x40, 0x01, 2, 1, 8, 2, 1, 5],
        [2, 3, 0x40, 0x00, 0x00, 2, 1, 8, 2, 1],
    ] {
        let mut hostile = der.clone();
        hostile[at..at + theirs.len()].copy_from_slice(&theirs);
        put(
            &path,
            pem::encode("ENCRYPTED PRIVATE KEY", &hostile).as_bytes(),
        );
        let refused = FileKey::open(&path, &secret(PASSPHRASE)).unwrap_err();
        let KeyError::Damaged { source, .. } = &refused else {
            panic!("{theirs:?}: {refused:?}");
        };
        assert!(matches!(
            source,
            EncryptionError::Cost | EncryptionError::Structure
        ));
    }
}

/// K9: the mode is 0600 from the first moment, and a key is never overwritten.
#[test]
fn a_key_file_is_private_and_never_overwritten() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("ca.key");
    let key = FileKey::generate(KeyAlgorithm::EcdsaP384).unwrap();
    key.save_new(&path, &secret(PASSPHRASE)).unwrap();
    let content = fs::read(&path).unwrap();
    assert_eq!(
        fs::metadata(&path).unwrap().permissions().mode() & 0o7777,
        0o600
    );
    assert!(content.starts_with(b"-----BEGIN ENCRYPTED PRIVATE KEY-----\n"));
    let other = FileKey::generate(KeyAlgorithm::EcdsaP384).unwrap();
    let refused = other.save_new(&path, &secret(PASSPHRASE)).unwrap_err();
    assert!(matches!(refused, KeyError::Write { .. }));
    assert_eq!(fs::read(&path).unwrap(), content);
    assert_eq!(
        fs::read_dir(dir.path()).unwrap().count(),
        1,
        "nothing is left behind"
    );
}

/// K9: a key that others can read is refused even though it is encrypted.
#[test]
fn a_key_file_that_others_can_read_is_not_opened() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("ca.key");
    let key = FileKey::generate(KeyAlgorithm::EcdsaP384).unwrap();
    key.save_new(&path, &secret(PASSPHRASE)).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    let refused = FileKey::open(&path, &secret(PASSPHRASE)).unwrap_err();
    assert!(matches!(
        refused,
        KeyError::File(PrivateFileError::Exposed { mode: 0o644, .. })
    ));
    fs::set_permissions(&path, fs::Permissions::from_mode(0o400)).unwrap();
    FileKey::open(&path, &secret(PASSPHRASE)).unwrap();
}

/// C5: a CA key of a kind that isn't certified isn't opened either, and the refusal names it.
#[test]
fn keys_of_other_kinds_are_refused_by_name() {
    let dir = tempfile::tempdir().unwrap();
    let pass = format!("pass:{PASSPHRASE}");
    for (options, name) in [
        (
            &["-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256"][..],
            "EC P-256",
        ),
        (
            &["-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-521"],
            "EC P-521",
        ),
        (
            &["-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048"],
            "RSA 2048",
        ),
        (&["-algorithm", "ED25519"], "Ed25519"),
    ] {
        let mut args = vec!["genpkey"];
        args.extend(options);
        let plain = openssl::run(&args, b"");
        let path = dir.path().join("theirs.key");
        put(
            &path,
            &openssl::run(&["pkcs8", "-topk8", "-scrypt", "-passout", &pass], &plain),
        );
        let refused = FileKey::open(&path, &secret(PASSPHRASE)).unwrap_err();
        assert!(
            matches!(&refused, KeyError::Unsupported { found, .. } if found == name),
            "{refused:?}"
        );
    }
}

/// The clear form is for servers' keys: openssl and our own reader take it.
#[test]
fn the_clear_form_is_an_ordinary_key() {
    let key = FileKey::generate(KeyAlgorithm::EcdsaP384).unwrap();
    let text = key.plaintext_pem();
    let public = openssl::run(&["pkey", "-pubout", "-outform", "DER"], text.as_bytes());
    assert_eq!(public, key.spki_der());
    let read = pem::private_key(text.as_bytes()).unwrap();
    assert_eq!(read.kind, pem::PrivateKeyKind::Pkcs8);
}
