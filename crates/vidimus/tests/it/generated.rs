//! Completion scripts and man pages come from the same arguments as the program.

use std::{fs, process::Command};

use crate::support::{Ran, write};

/// Each shell's script is printed, and bash accepts its own.
#[test]
fn every_shell_gets_its_completion() {
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let script = Ran::well(["completion", shell]).stdout;
        assert!(script.contains("quickstart"), "{shell}");
    }
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("vidimus.bash");
    write(&file, Ran::well(["completion", "bash"]).stdout);
    let checked = Command::new("bash")
        .arg("-n")
        .arg(&file)
        .status()
        .expect("bash runs");
    assert!(checked.success());
    assert_eq!(Ran::of(["completion", "tcsh"]).code, Some(2));
}

/// There is a page for the program and for each subcommand.
#[test]
fn every_command_gets_its_man_page() {
    let folder = tempfile::tempdir().expect("a folder");
    let pages = folder.path().join("man");
    Ran::well(["man", &pages.display().to_string()]);
    for name in [
        "vidimus",
        "vidimus-quickstart",
        "vidimus-ca-issue-leaf",
        "vidimus-node-init",
        "vidimus-tls-check",
    ] {
        let page = fs::read_to_string(pages.join(format!("{name}.1"))).expect(name);
        assert!(page.starts_with(".ie"), "{name} is a roff page");
        assert!(page.contains(&format!(".TH {name}")), "{name}");
    }
}

/// Every command explains itself with an example.
#[test]
fn every_command_that_does_something_shows_an_example() {
    let commands = [
        "audit verify",
        "ca get-issued",
        "ca issue-leaf",
        "ca list-issued",
        "ca sign-subordinate",
        "completion",
        "config apply",
        "config get",
        "config validate",
        "identity show",
        "identity validate",
        "man",
        "node init",
        "node run",
        "provider run",
        "provider validate",
        "quickstart",
        "status",
        "tls check",
    ];
    for command in commands {
        let help = Ran::well(command.split(' ').chain(["--help"])).stdout;
        assert!(
            help.contains("Example"),
            "{command} has no example:\n{help}"
        );
    }
}
