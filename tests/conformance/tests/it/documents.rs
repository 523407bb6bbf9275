//! README, ARCHITECTURE.md and CHANGELOG.md against the files that they talk about.

use std::collections::BTreeSet;

use crate::{markdown, repository};

/// A crate that nobody can find on the map has no place in the house.
#[test]
fn every_crate_has_a_line_in_the_architecture() {
    let map = repository::read("ARCHITECTURE.md");
    let crates = std::fs::read_dir(repository::root().join("crates")).expect("the crates");
    let mut count = 0;
    for entry in crates {
        let name = entry.expect("a crate's folder").file_name();
        let row = format!("| `{}` |", name.to_string_lossy());
        assert!(
            map.lines().any(|line| line.starts_with(&row)),
            "ARCHITECTURE.md has no row that starts with {row}"
        );
        count += 1;
    }
    let rows = map
        .lines()
        .filter(|line| line.starts_with("| `vidimus"))
        .count();
    assert_eq!(
        rows, count,
        "ARCHITECTURE.md has a row for a crate that is not there"
    );
}

/// The arrows in the document are the ones that cargo-deny checks.
#[test]
fn the_architecture_names_the_arrows_that_are_checked() {
    let document = repository::read("ARCHITECTURE.md");
    let checked = repository::read("deny.toml");
    for line in document
        .lines()
        .filter(|line| line.starts_with("| `vidimus"))
    {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        let [name, _, uses, ..] = cells.as_slice() else {
            panic!("a row of four columns: {line}")
        };
        let user = format!("\"{}\"", name.trim_matches('`'));
        let named: BTreeSet<String> = uses
            .split(',')
            .filter_map(|part| part.trim().strip_prefix('`')?.split('`').next())
            .map(|short| {
                if short.starts_with("vidimus") {
                    short.to_owned()
                } else {
                    format!("vidimus-{short}")
                }
            })
            .collect();
        let allowed: BTreeSet<String> = checked
            .lines()
            .filter(|rule| rule.contains("{ crate = \"vidimus-"))
            .filter(|rule| {
                rule.split("wrappers")
                    .nth(1)
                    .is_some_and(|users| users.contains(&user))
            })
            .filter_map(|rule| rule.split('"').nth(1))
            .map(str::to_owned)
            .collect();
        assert_eq!(
            named, allowed,
            "the arrows from {name}: ARCHITECTURE.md (left), deny.toml (right)"
        );
    }
}

#[test]
fn every_make_command_of_the_pages_is_in_the_makefile() {
    let makefile = repository::read("Makefile");
    let targets: BTreeSet<&str> = makefile
        .lines()
        .filter(|line| line.starts_with(|first: char| first.is_ascii_lowercase()))
        .filter_map(|line| line.split_once(':'))
        .map(|(target, _)| target)
        .collect();
    for target in ["run", "test", "lint", "bench", "fuzz", "soak", "docs"] {
        assert!(targets.contains(target), "the Makefile has no `{target}`");
    }
    let mut named = 0;
    for page in repository::pages() {
        let text = std::fs::read_to_string(&page).expect("a page that was just found");
        for command in make_commands(&text) {
            assert!(
                targets.contains(command),
                "{} says `make {command}`",
                page.display()
            );
            named += 1;
        }
    }
    assert!(named > 5, "only {named} commands found");
    let readme = repository::read("README.md");
    for command in ["run", "test"] {
        assert!(
            make_commands(&readme).contains(&command),
            "README.md does not say `make {command}`"
        );
    }
}

#[test]
fn the_change_log_has_a_place_for_what_is_new() {
    let log = repository::read("CHANGELOG.md");
    let version = format!("## [{}]", env!("CARGO_PKG_VERSION"));
    assert!(
        log.contains("## [Unreleased]") || log.contains(&version),
        "neither [Unreleased] nor {version}"
    );
}

/// The words after `make ` at the start of a piece of code.
fn make_commands(page: &str) -> Vec<&str> {
    markdown::code(page)
        .into_iter()
        .filter_map(|piece| piece.trim_start_matches("$ ").strip_prefix("make "))
        .filter_map(|rest| rest.split(|c: char| !c.is_ascii_lowercase()).next())
        .filter(|word| !word.is_empty())
        .collect()
}
