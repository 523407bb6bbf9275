//! `vidimus audit verify`: a log that holds, and one that was touched.

use std::fs;

use crate::support::{Cas, Ran, write};

/// C14: folder, file and store are checked offline; the first bad entry is named; a missing end is found by a kept head.
#[test]
fn a_changed_entry_is_named_and_a_missing_end_found() {
    let cas = Cas::make();
    let node = cas.run_node();
    let csr = cas.openssl_csr("web.example.org");
    for _ in 0..3 {
        Ran::well(node.socket([
            "ca",
            "issue-leaf",
            "--csr",
            &csr,
            "--profile",
            "leaf-server",
        ]));
    }
    let whole = Ran::well(["audit", "verify", &cas.text("node"), "-o", "json"]).json();
    assert_eq!(whole["intact"], true, "{whole}");
    let head = whole["head"].as_str().expect("a head").to_owned();
    let mut process = node.process;
    process.terminate();
    assert!(process.wait_exit(crate::support::PATIENCE).success());

    let files = Ran::well(["audit", "verify", &cas.text("node/audit"), "-o", "json"]).json();
    assert!(
        files["entries"].as_u64() >= whole["entries"].as_u64(),
        "{files}"
    );
    let key = whole["public_key"].as_str().expect("a key").to_owned();
    let day = fs::read_dir(cas.path("node/audit"))
        .expect("the files")
        .map(|entry| entry.expect("an entry").path())
        .find(|path| path.extension().is_some_and(|ending| ending == "log"))
        .expect("a day");
    let original = fs::read_to_string(&day).expect("the log");
    let check = |text: &str, more: &[&str]| {
        write(cas.path("copy.log"), text);
        let copy = cas.text("copy.log");
        let fixed = ["audit", "verify", &copy, "--public-key", &key];
        Ran::of(fixed.iter().chain(more))
    };
    assert_eq!(check(&original, &[]).code, Some(0));

    let lines: Vec<&str> = original.lines().collect();
    let changed = original.replacen("leaf-server", "leaf-sorver", 1);
    assert_ne!(changed, original, "the log tells the profile");
    let refused = check(&changed, &[]);
    assert_eq!(refused.code, Some(1), "{}", refused.stdout);
    assert!(
        refused.stdout.contains("BROKEN") && refused.stdout.contains("signature"),
        "{}",
        refused.stdout
    );

    let without_one: String = lines
        .iter()
        .enumerate()
        .filter(|(at, _)| *at != 2)
        .map(|(_, line)| format!("{line}\n"))
        .collect();
    let refused = check(&without_one, &[]);
    assert_eq!(refused.code, Some(1), "{}", refused.stdout);
    assert!(refused.stdout.contains("sequence"), "{}", refused.stdout);

    let cut: String = lines
        .iter()
        .take(2)
        .map(|line| format!("{line}\n"))
        .collect();
    assert_eq!(
        check(&cut, &[]).code,
        Some(0),
        "a log that was cut looks whole by itself"
    );
    assert_eq!(
        check(&cut, &["--expect-head", &head]).code,
        Some(1),
        "but not to who kept its head"
    );
}

/// What is no log is told, and no key is a question of the command line.
#[test]
fn what_is_no_log_is_told() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("x.log");
    write(&file, "hello\n");
    let file = file.display().to_string();
    let no_key = Ran::of(["audit", "verify", &file]);
    no_key.failed(2, "--public-key");
    let key = "00".repeat(32);
    let no_log = Ran::of(["audit", "verify", &file, "--public-key", &key]);
    assert_eq!(no_log.code, Some(1), "{}", no_log.stderr);
    let bad_key = Ran::of(["audit", "verify", &file, "--public-key", "zz"]);
    assert_eq!(bad_key.code, Some(2), "{}", bad_key.stderr);
}
