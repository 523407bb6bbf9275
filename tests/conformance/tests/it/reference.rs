//! Reference pages against the program: the command line's page is what the program prints, and every machine
//! config in the book is one that the node accepts.

use std::{collections::BTreeSet, time::Duration};

use vidimus_testkit::command;

use crate::{build, markdown, repository};

const PAGE: &str = "docs/src/reference/cli.md";

/// Set this variable to write the page anew.
const UPDATE: &str = "VIDIMUS_UPDATE_DOCS";

#[test]
#[expect(
    clippy::disallowed_methods,
    reason = "a page of the working tree, under version control"
)]
fn the_page_of_the_command_line_is_what_the_program_prints() {
    let mut page = String::from(
        "# Command line\n\n<!-- Written by the program; see CONTRIBUTING.md for how to renew it. -->\n",
    );
    describe(&mut page, &[]);
    assert!(
        page.contains("## `vidimus quickstart`"),
        "the commands were not found:\n{page}"
    );
    if std::env::var_os(UPDATE).is_some() {
        let path = repository::root().join(PAGE);
        std::fs::write(path, &page).expect("the page can be written");
    }
    assert_eq!(
        repository::read(PAGE),
        page,
        "{PAGE} is out of date: run `make reference` and look at the difference"
    );
}

#[test]
fn every_variable_of_the_command_line_is_on_the_page_of_variables() {
    let page = repository::read("docs/src/reference/environment.md");
    let reference = repository::read(PAGE);
    let named: BTreeSet<&str> = reference
        .split("[env: ")
        .skip(1)
        .filter_map(|rest| rest.split(['=', ']']).next())
        .collect();
    assert!(!named.is_empty(), "{PAGE} names no variable");
    for name in named {
        assert!(
            page.contains(&format!("| `{name}` |")),
            "{name} is not on the page"
        );
    }
}

#[test]
fn every_metric_is_on_the_page_of_metrics_and_no_other() {
    let quoted = |path: &str, quote: char| -> BTreeSet<String> {
        let text = repository::read(path);
        let parts = text.split(quote).map(str::to_owned);
        let is_name = |part: &String| {
            let all = part.chars().all(|c| c.is_ascii_lowercase() || c == '_');
            all && part.starts_with("vidimus_tls_")
        };
        parts.filter(is_name).collect()
    };
    let made: BTreeSet<String> = repository::files("crates/vidimus-tls/src/metrics")
        .iter()
        .flat_map(|path| quoted(path, '"'))
        .collect();
    assert!(made.len() > 5, "{made:?}");
    assert_eq!(quoted("docs/src/reference/metrics.md", '`'), made);
}

#[test]
fn every_machine_config_in_the_book_is_accepted() {
    let mut checked = 0;
    for page in repository::pages() {
        let text = std::fs::read_to_string(&page).expect("a page that was just found");
        for block in markdown::blocks(&text, "yaml") {
            if block.contains("kind: MachineConfig") {
                checked += 1;
                if let Err(errors) = vidimus_node::config::parse(&page.to_string_lossy(), &block) {
                    panic!("{errors}");
                }
            }
        }
    }
    assert!(
        checked > 1,
        "only {checked} machine configs found in the book"
    );
}

/// The help of a command and of every command below it.
fn describe(page: &mut String, path: &[&str]) {
    let mut vidimus = build::vidimus();
    vidimus
        .args(path)
        .arg("--help")
        .env_remove("COLUMNS")
        .env_clear();
    let help = command::run(vidimus, b"", Duration::from_secs(60))
        .success()
        .stdout_text();
    let name = ["vidimus"]
        .iter()
        .chain(path)
        .copied()
        .collect::<Vec<_>>()
        .join(" ");
    // Clap leaves spaces on empty lines.
    let help: Vec<&str> = help.trim_end().lines().map(str::trim_end).collect();
    let help = help.join("\n");
    page.push_str(&format!("\n## `{name}`\n\n```text\n{help}\n```\n"));
    for child in subcommands(&help) {
        let below: Vec<&str> = path.iter().copied().chain([child]).collect();
        describe(page, &below);
    }
}

/// The names in the list that clap heads with "Commands:".
fn subcommands(help: &str) -> Vec<&str> {
    help.lines()
        .skip_while(|line| *line != "Commands:")
        .skip(1)
        .take_while(|line| !line.is_empty())
        .filter(|line| line.starts_with("  ") && !line.starts_with("   "))
        .filter_map(|line| line.split_whitespace().next())
        .filter(|name| *name != "help")
        .collect()
}

#[test]
fn commands_are_read_out_of_a_help_text() {
    let help = "Usage: x\n\nCommands:\n  one   Does one\n  two   Does two,\n        at length\n  help  Print\n\nOptions:\n  -h\n";
    assert_eq!(subcommands(help), ["one", "two"]);
}
