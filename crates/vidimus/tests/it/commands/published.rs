//! `vidimus tls roots` on a folder whose files are published together, as the quickstart and other programs of this
//! project do it.

use std::{
    fs,
    io::{BufRead as _, BufReader, Write as _},
    os::unix::{fs::PermissionsExt as _, net::UnixListener},
    path::Path,
    process::Stdio,
    thread,
    time::Duration,
};

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
    let (old, new, third) = (Pki::new("Old"), Pki::new("New"), Pki::new("Third"));
    let house = tempfile::tempdir().expect("a folder");
    let dir = house.path().join("tls");
    let first = leaf(&old).files(&[&old.root]);
    bundle::publish(&dir, &files(&first, "")).expect("published files");
    let pem = house.path().join("new.pem");
    write(&pem, new.root.pem());

    let turn = Turn::take(&dir, PATIENCE).expect("the folder");
    let mut command = vidimus(["tls", "roots", "add"]);
    command.arg(&dir).arg("--root").arg(&pem);
    let added = command.stderr(Stdio::piped()).spawn().expect("the program");
    // It opens the folder to wait for its turn, and has read nothing by then.
    let open = format!("/proc/{}/fd", added.id());
    wait_until(PATIENCE, || {
        let open = fs::read_dir(&open).map_err(|error| error.to_string())?;
        let mut targets = open.flatten().map(|entry| fs::read_link(entry.path()));
        let waits = targets.any(|target| target.is_ok_and(|target| target == dir));
        waits
            .then_some(())
            .ok_or_else(|| "not in the folder yet".to_owned())
    });
    let second = leaf(&old).files(&[&old.root, &third.root]);
    turn.publish(&files(&second, "")).expect("a new leaf");
    drop(turn);

    let ended = added.wait_with_output().expect("its end");
    let told = String::from_utf8_lossy(&ended.stderr);
    assert!(ended.status.success(), "{told}");
    let all = [&old, &third, &new].map(|pki| pki.root.pem()).concat();
    assert_eq!(read(&dir, "ca.crt"), all);
    assert_eq!(read(&dir, "tls.crt"), second[0].1);
    assert_eq!(read(&dir, "tls.key"), second[1].1);
}

/// T9, V10. The folder is not kept from others while a program takes its time to say who needs the root. Roots that changed
/// meanwhile end the removal, and so does a certificate that needs the root by now; another one is not put back.
#[test]
fn what_changes_while_a_program_is_asked_is_seen() {
    let (old, new, third) = (Pki::new("Old"), Pki::new("New"), Pki::new("Third"));
    let two = [&old.root, &new.root];
    let three = [&old.root, &new.root, &third.root];
    for (meanwhile, words) in [
        (leaf(&new).files(&three), "was changed while"),
        (leaf(&old).files(&two), "issue it anew first"),
        (leaf(&new).files(&two), "removed from"),
    ] {
        let house = tempfile::tempdir().expect("a folder");
        let dir = house.path().join("tls");
        bundle::publish(&dir, &files(&leaf(&new).files(&two), "")).expect("published files");
        let socket = house.path().join("admin.sock");
        let listener = UnixListener::bind(&socket).expect("a socket");
        let (folder, socket) = (dir.display().to_string(), socket.display().to_string());
        let ran = thread::scope(|scope| {
            scope.spawn(|| {
                answer(&listener, || {
                    let turn = Turn::take(&dir, Duration::ZERO).expect("nobody has the folder");
                    turn.publish(&files(&meanwhile, "")).expect("new files");
                });
                if words == "removed from" {
                    answer(&listener, || ()); // whether it has gone out of use
                }
            });
            Ran::of([
                "tls",
                "roots",
                "remove",
                &folder,
                "CN=Old root",
                "--socket",
                &socket,
            ])
        });
        let removed = words == "removed from";
        ran.failed(i32::from(!removed), words);
        let roots = if removed {
            new.root.pem()
        } else {
            meanwhile[2].1.clone()
        };
        assert_eq!(read(&dir, "ca.crt"), roots);
        assert_eq!(read(&dir, "tls.crt"), meanwhile[0].1);
    }
}

/// Takes one question to a program whose peers don't need any root, and answers it after `first`.
fn answer(listener: &UnixListener, first: impl FnOnce()) {
    let (stream, _) = listener.accept().expect("a question");
    let lines = BufReader::new(&stream).lines();
    let head = lines
        .map_while(Result::ok)
        .take_while(|line| !line.is_empty());
    assert!(head.count() > 0);
    first();
    let page = r#"{"generation":1,"roots":[],"summary":[],"connections":[],"without":{"known":true,"needed_by":[]}}"#;
    let length = page.len();
    write!(
        &stream,
        "HTTP/1.1 200 OK\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{page}"
    )
    .expect("an answer");
}
