//! The `openssl` program as the judge of keys, signatures and hashes: what it accepts, anybody can
//! check without our code.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::process::Command;

use data_encoding::{BASE64_NOPAD, HEXLOWER};
use vidimus_audit::{AuditSeed, Draft, Head, Outcome, chain};

use crate::chain::at;

fn openssl(dir: &Path, arguments: &[&str]) -> (bool, String) {
    let output = Command::new("openssl")
        .args(arguments)
        .current_dir(dir)
        .output()
        .expect("openssl is installed");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    (output.status.success(), text)
}

fn put(dir: &Path, name: &str, bytes: &[u8]) {
    File::create(dir.join(name))
        .unwrap()
        .write_all(bytes)
        .unwrap();
}

/// C14. The key is HKDF-SHA256 of the seed under our label, the signature is Ed25519 over the JSON
/// bytes, the hash is SHA-256 of them: all three by openssl.
#[test]
fn openssl_derives_the_key_and_verifies_the_signature() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let seed = AuditSeed::from_bytes(&[0x5e; 32]);
    let label = HEXLOWER.encode(b"vidimus.dev/audit-signer/v1");
    let (ok, private) = openssl(
        dir,
        &[
            "kdf",
            "-keylen",
            "32",
            "-kdfopt",
            "digest:SHA2-256",
            "-kdfopt",
            &format!("hexkey:{}", *seed.to_hex()),
            "-kdfopt",
            &format!("hexinfo:{label}"),
            "HKDF",
        ],
    );
    assert!(ok);
    let private = HEXLOWER
        .decode(private.trim().replace(':', "").to_lowercase().as_bytes())
        .unwrap();
    // PKCS#8 of an Ed25519 key (RFC 8410 §7): a fixed start, then the 32 bytes.
    let mut der = HEXLOWER
        .decode(b"302e020100300506032b657004220420")
        .unwrap();
    der.extend(private);
    put(dir, "key.der", &der);
    let (ok, _) = openssl(
        dir,
        &[
            "pkey", "-inform", "DER", "-in", "key.der", "-pubout", "-outform", "DER", "-out",
            "pub.der",
        ],
    );
    assert!(ok);
    let public = std::fs::read(dir.join("pub.der")).unwrap();
    assert_eq!(
        HEXLOWER.encode(&public[12..]),
        seed.key().public().to_string()
    );

    let draft = Draft::new("CN=admin", "IssueLeaf", Outcome::Ok).with("serial_hex", "2a");
    let line = chain::append(&Head::genesis(), draft, at(0), &seed.key());
    put(dir, "json", line.json.as_bytes());
    put(
        dir,
        "sig",
        &BASE64_NOPAD.decode(line.signature.as_bytes()).unwrap(),
    );
    let verify = [
        "pkeyutl", "-verify", "-pubin", "-inkey", "pub.der", "-keyform", "DER", "-rawin", "-in",
        "json", "-sigfile", "sig",
    ];
    let (ok, said) = openssl(dir, &verify);
    assert!(ok, "{said}");
    let (_, hash) = openssl(dir, &["dgst", "-sha256", "-r", "json"]);
    assert!(hash.starts_with(&HEXLOWER.encode(&line.hash)), "{hash}");

    put(dir, "json", line.json.replace("2a", "2b").as_bytes());
    let (ok, _) = openssl(dir, &verify);
    assert!(!ok, "a changed entry verifies");
}
