//! `vidimus config`: all problems at once, and a node that takes a config whole or not at all.

use std::fs;

use crate::support::{Cas, Ran, write};

/// C2: every problem of the file is told at once, each with line, column, field, what was found and what is accepted.
#[test]
fn every_problem_is_told_with_its_place() {
    let cas = Cas::make();
    let good = cas.text("node.yaml");
    let ran = Ran::well(["config", "validate", &good, "-o", "json"]);
    assert_eq!(ran.json()["profiles"][1], "sub-ca", "{}", ran.stdout);

    let text = fs::read_to_string(&good).expect("the config");
    let bad = text
        .replace("kind: MachineConfig", "kind: Machine")
        .replace("ECDSA-P384\n  root_subject", "ECDSA-P256\n  root_subject")
        .replace("validity_days: 30", "validity_dayz: 30");
    let file = cas.text("bad.yaml");
    write(&file, &bad);
    let refused = Ran::of(["config", "validate", &file]);
    assert_eq!(refused.code, Some(1), "{}", refused.stderr);
    for (field, found) in [
        ("kind", "Machine"),
        ("pki.root_key_alg", "ECDSA-P256"),
        ("pki.profiles[0]", "validity_dayz"),
    ] {
        let line = refused
            .stderr
            .lines()
            .find(|line| line.contains(field) && line.contains(found));
        let line = line.unwrap_or_else(|| panic!("{field} is missing in {}", refused.stderr));
        assert!(line.starts_with(&format!("{file}:")), "{line}");
        assert!(line.contains("accepted"), "{line}");
    }
    let absent = Ran::of(["config", "validate", "/nowhere/node.yaml"]);
    assert_eq!(absent.code, Some(1));
    assert!(
        absent.stderr.contains("/nowhere/node.yaml"),
        "{}",
        absent.stderr
    );
}

/// C2: a config that is refused changes nothing; one that is taken says its generation; the same again changes nothing.
#[test]
fn a_running_node_takes_a_config_whole_or_not_at_all() {
    let cas = Cas::make();
    let node = cas.run_node();
    let before = Ran::well(node.socket(["config", "get"])).stdout;
    let bad = cas.text("bad.yaml");
    write(&bad, before.replace("leaf-server", "sub-ca"));
    assert_eq!(
        Ran::of(node.socket(["config", "apply", "-f", &bad])).code,
        Some(1)
    );
    assert_eq!(Ran::well(node.socket(["config", "get"])).stdout, before);

    let good = cas.text("good.yaml");
    write(
        &good,
        before.replace("validity_days: 30", "validity_days: 20"),
    );
    let applied = Ran::well(node.socket(["config", "apply", "-f", &good, "-o", "json"])).json();
    assert_eq!(applied["requires_reboot"], false, "{applied}");
    let again = Ran::well(node.socket(["config", "apply", "-f", &good, "-o", "json"])).json();
    assert_eq!(again["digest_sha256"], applied["digest_sha256"]);
    assert!(
        Ran::well(node.socket(["config", "get"]))
            .stdout
            .contains("validity_days: 20")
    );
}
