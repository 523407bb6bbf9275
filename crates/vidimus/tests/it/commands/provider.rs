//! `vidimus provider`: starting only when it is protected, and looking at one.

use std::{
    io::{self, Read as _, Write as _},
    net::{Shutdown, TcpListener, TcpStream},
    process::Command,
    thread,
    time::Duration,
};

use vidimus_testkit::{Pki, Process};

use crate::support::{PATIENCE, Ran, vidimus};

pub(super) fn run(tls_dir: &str, insecure: Option<&str>) -> Command {
    let mut command = vidimus([
        "provider",
        "run",
        "--bind",
        "127.0.0.1",
        "--port",
        "0",
        "--health-port",
        "0",
    ]);
    command.args(["--tls-dir", tls_dir, "--log-format", "json"]);
    command
        .env_remove("VIRTRIGAUD_PROVIDER_INSECURE")
        .env_remove("VIRTRIGAUD_PROVIDER_ALLOWED_SANS");
    if let Some(word) = insecure {
        command.env("VIRTRIGAUD_PROVIDER_INSECURE", word);
    }
    command
}

/// The address that a running provider logs.
pub(super) fn address(process: &mut Process) -> String {
    let line = process.wait_for_line("\"grpc\"", PATIENCE);
    let line: serde_json::Value = serde_json::from_str(&line).expect("a JSON log line");
    line["grpc"].as_str().expect("an address").to_owned()
}

/// V7: no files and no opt-in ends with VirtRigaud's sentence and exit code 1; `1` and `yes` are no opt-in.
#[test]
fn without_files_and_without_the_word_it_does_not_start() {
    let folder = tempfile::tempdir().expect("a folder");
    let dir = folder.path().display().to_string();
    let sentence = format!(
        "TLS material missing at {dir} and VIRTRIGAUD_PROVIDER_INSECURE is not set to \"true\"; either provision \
         {dir}/{{tls.crt,tls.key,ca.crt}} or set VIRTRIGAUD_PROVIDER_INSECURE=true to opt into plaintext (audit-flagged)"
    );
    for word in [None, Some("1"), Some("yes"), Some("")] {
        let output = run(&dir, word).output().expect("the program runs");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{word:?}: {stderr}");
        assert!(stderr.contains(&sentence), "{word:?}: {stderr}");
    }
}

/// V7: some but not all of the files is an error that names the missing ones, whatever the variable says.
#[test]
fn with_some_of_the_files_it_names_the_missing_ones() {
    let folder = tempfile::tempdir().expect("a folder");
    let pki = Pki::new("ca");
    pki.leaf("web")
        .server()
        .issue()
        .write_dir(folder.path(), &[&pki.root]);
    std::fs::remove_file(folder.path().join("tls.key")).expect("remove the key");
    std::fs::remove_file(folder.path().join("ca.crt")).expect("remove the roots");
    let dir = folder.path().display().to_string();
    let output = run(&dir, Some("true")).output().expect("the program runs");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(
        stderr.contains(&format!("{dir}/tls.key")) && stderr.contains(&format!("{dir}/ca.crt")),
        "{stderr}"
    );
}

/// V7: the word opts into plaintext, loudly; a client must say plaintext too.
#[test]
fn the_word_opts_into_plaintext_with_an_audit_warning() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut process = Process::spawn(run(&folder.path().display().to_string(), Some(" TRUE ")));
    let address = address(&mut process);
    let warned = process
        .lines()
        .iter()
        .any(|line| line.text.contains("WARN") && line.text.contains("audit"));
    assert!(warned, "{:?}", process.lines());
    let ran = Ran::well(["provider", "validate", &address, "--plaintext"]);
    assert!(ran.stdout.contains("plaintext"), "{}", ran.stdout);
    process.terminate();
    assert!(
        process.wait_exit(PATIENCE).success(),
        "{:?}",
        process.lines()
    );
}

/// V4, V5, V6: under mutual TLS the right certificate is let in; a wrong name, another CA or none are told apart.
#[test]
fn validate_tells_how_a_provider_answers() {
    let folder = tempfile::tempdir().expect("a folder");
    let pki = Pki::new("ca");
    let (server, client) = (folder.path().join("server"), folder.path().join("client"));
    pki.leaf("provider")
        .dns("provider.example.org")
        .server()
        .issue()
        .write_dir(&server, &[&pki.root]);
    pki.leaf("manager")
        .dns("manager.example.org")
        .client()
        .issue()
        .write_dir(&client, &[&pki.root]);
    let mut command = run(&server.display().to_string(), None);
    command.env("VIRTRIGAUD_PROVIDER_ALLOWED_SANS", "manager.example.org");
    let mut process = Process::spawn(command);
    let address = address(&mut process);
    let client = client.display().to_string();
    let validate = |more: &[&str]| {
        let fixed = ["provider", "validate", &address, "--tls", &client];
        Ran::of(fixed.iter().chain(more))
    };
    let good = validate(&["--server-name", "provider.example.org", "-o", "json"]);
    assert_eq!(good.code, Some(0), "{}", good.stderr);
    assert_eq!(good.json()["ok"], true);
    assert_eq!(
        good.json()["certificate"]["names"][0],
        "provider.example.org"
    );

    let other_name = validate(&["--server-name", "other.example.org"]);
    other_name.failed(3, "other.example.org");
    let skipped = validate(&[
        "--server-name",
        "other.example.org",
        "--insecure-skip-verify",
    ]);
    assert_eq!(skipped.code, Some(0), "{}", skipped.stderr);
    assert!(
        skipped.stderr.contains("WARN") && skipped.stdout.contains("not verified"),
        "{}{}",
        skipped.stdout,
        skipped.stderr
    );
    let none = validate(&["--server-name", "provider.example.org", "--no-certificate"]);
    none.failed(3, "CertificateRequired");
    let named = validate(&["--provider", "ns"]);
    assert_eq!(named.code, Some(2), "{}", named.stderr);
    process.terminate();
    assert!(
        process.wait_exit(PATIENCE).success(),
        "{:?}",
        process.lines()
    );
}

/// The limit is one for everything: each of the three calls is answered within it, and all together are not.
#[test]
fn validate_gives_up_when_everything_takes_longer_than_it_may() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut process = Process::spawn(run(&folder.path().display().to_string(), Some("true")));
    let slow = slow_way_to(address(&mut process));
    let validate = |limit| {
        let args = ["provider", "validate", &slow, "--plaintext", "--timeout"];
        Ran::of(args.iter().chain([&limit]))
    };
    validate("1").failed(3, "did not answer everything within 1 s");
    validate("60").failed(0, "");
    process.terminate();
    let ended = process.wait_exit(PATIENCE);
    assert!(ended.success(), "{:?}", process.lines());
}

/// An address that leads to `server` and brings each of its answers late.
fn slow_way_to(server: String) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("its address").to_string();
    // The threads end with the connections and the test program.
    thread::spawn(move || {
        for client in listener.incoming() {
            let client = client.expect("a connection");
            let server = TcpStream::connect(&server).expect("the server");
            let both = (client.try_clone(), server.try_clone());
            let (mut from, mut to) = (both.0.expect("a socket"), both.1.expect("a socket"));
            thread::spawn(move || {
                let _copied = io::copy(&mut from, &mut to);
                let _gone = to.shutdown(Shutdown::Both);
            });
            thread::spawn(move || bring_late(server, client));
        }
    });
    address
}

fn bring_late(mut from: TcpStream, mut to: TcpStream) -> io::Result<()> {
    let mut answer = [0; 4096];
    loop {
        let length = from.read(&mut answer)?;
        if length == 0 {
            return Ok(());
        }
        thread::sleep(Duration::from_millis(400));
        to.write_all(&answer[..length])?;
    }
}
