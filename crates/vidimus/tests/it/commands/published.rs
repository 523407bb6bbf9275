//! `vidimus tls roots` on a folder whose files are published together, as the quickstart and other programs of this
//! project do it.

use std::{fs, os::unix::fs::PermissionsExt as _, path::Path, process::Stdio};

use vidimus_fs::{
    Mode,
    bundle::{self, Turn},
};
use vidimus_testkit::{Credential, Pki, wait_until};

use crate::support::{PATIENCE, Ran, vidimus, write};

/// As much as a list of some ten thousand certificates: more than roots may have, less than lists may.
const LARGE: usize = 5 * 1024 * 1024;

fn files<'a>(
    leaf: &'a [(&'static str, String); 3],
    crl: &'a str,
) -> Vec<(&'a str, &'a [u8], Mode)> {
    let mode = |name: &str| match name {
        "tls.key" => Mode::Private,
        _ => Mode::Public,
    };
    let of_leaf = leaf
        .iter()
        .map(|(name, content)| (*name, content.as_bytes(), mode(name)));
    of_leaf
        .chain([("crl.pem", crl.as_bytes(), Mode::Public)])
        .collect()
}

fn leaf(pki: &Pki) -> Credential {
    pki.leaf("leaf").dns("leaf.example.org").issue()
}

fn read(dir: &Path, name: &str) -> String {
    fs::read_to_string(dir.join(name)).expect("a published file")
}

/// T9, V10. Only `ca.crt` changes, however large the revocation lists beside it are.
#[test]
fn a_root_comes_and_goes_in_a_published_folder_with_large_lists() {
    let (old, new) = (Pki::new("Old"), Pki::new("New"));
    let house = tempfile::tempdir().expect("a folder");
    let dir = house.path().join("tls");
    let list = old.root.revocation_list(1).pem();
    let crl = format!("{}\n{list}", "text between blocks\n".repeat(LARGE / 20));
    let leaf = leaf(&old).files(&[&old.root]);
    bundle::publish(&dir, &files(&leaf, &crl)).expect("published files");
    let pem = house.path().join("new.pem");
    write(&pem, new.root.pem());

    let folder = dir.display().to_string();
    let pem = pem.display().to_string();
    let added = Ran::well(["tls", "roots", "add", &folder, "--root", &pem]);
    let note = "add the list of the CA that issues it";
    assert!(added.stderr.contains(note), "{}", added.stderr);
    let both = format!("{}{}", old.root.pem(), new.root.pem());
    assert_eq!(read(&dir, "ca.crt"), both);

    let before = fs::read_link(dir.join("..data")).expect("a generation");
    Ran::well(["tls", "roots", "remove", &folder, "CN=New root", "--force"]);
    assert_ne!(fs::read_link(dir.join("..data")).expect("another"), before);
    assert_eq!(read(&dir, "ca.crt"), old.root.pem());
    assert!(read(&dir, "crl.pem") == crl, "the lists are as before");
    for (name, content) in &leaf[..2] {
        assert_eq!(read(&dir, name), *content, "{name}");
    }
    let key = fs::metadata(dir.join("tls.key")).expect("the key");
    assert_eq!(key.permissions().mode() & 0o777, 0o600);
}

/// T9, V10. What another program publishes while the command waits for its turn is not put back.
#[test]
fn a_leaf_that_is_published_meanwhile_stays() {
    let (old, new) = (Pki::new("Old"), Pki::new("New"));
    let house = tempfile::tempdir().expect("a folder");
    let dir = house.path().join("tls");
    let first = leaf(&old).files(&[&old.root]);
    bundle::publish(&dir, &files(&first, "")).expect("published files");
    let pem = house.path().join("new.pem");
    write(&pem, new.root.pem());

    let turn = Turn::take(&dir).expect("the folder");
    let mut command = vidimus(["tls", "roots", "add"]);
    command.arg(&dir).arg("--root").arg(&pem);
    let added = command.stderr(Stdio::piped()).spawn().expect("the program");
    let waiter = format!(" {} ", added.id());
    wait_until(PATIENCE, || {
        let locks = fs::read_to_string("/proc/locks").map_err(|error| error.to_string())?;
        let waits = |line: &str| line.contains("-> FLOCK") && line.contains(&waiter);
        locks.lines().any(waits).then_some(()).ok_or(locks)
    });
    let second = leaf(&old).files(&[&old.root]);
    turn.publish(&files(&second, "")).expect("a new leaf");
    drop(turn);

    let ended = added.wait_with_output().expect("its end");
    let told = String::from_utf8_lossy(&ended.stderr);
    assert!(ended.status.success(), "{told}");
    let both = format!("{}{}", old.root.pem(), new.root.pem());
    assert_eq!(read(&dir, "ca.crt"), both);
    assert_eq!(read(&dir, "tls.crt"), second[0].1);
    assert_eq!(read(&dir, "tls.key"), second[1].1);
}
