//! `docs/status.md`: one row a requirement, with the tests that show it.

use std::collections::BTreeSet;

/// How far a requirement is met.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum State {
    /// Nothing of it can be used.
    NotYet,
    /// Something of it can be used; the row says what is missing.
    Partly,
    /// A user can rely on it.
    Works,
}

/// A test as the table names it: `crates/vidimus-x509/tests/it/csr.rs::refuses_trailing_bytes`.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct TestName {
    /// The source file, from the root of the repository.
    pub path: String,
    /// The function.
    pub name: String,
}

/// One requirement.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Row {
    /// `V1`, `C14`, `K9`.
    pub id: String,
    /// What it means to a user.
    pub meaning: String,
    /// How far it is met.
    pub state: State,
    /// What shows it.
    pub tests: Vec<TestName>,
}

/// Reads the rows of every table in `page` whose first column is a requirement id.
///
/// # Errors
///
/// All lines that look like a row and are none, each with its number.
pub fn rows(page: &str) -> Result<Vec<Row>, Vec<String>> {
    let mut rows = Vec::new();
    let mut problems = Vec::new();
    for (number, line) in (1..).zip(page.lines()) {
        match row(line) {
            None => {}
            Some(Ok(row)) => rows.push(row),
            Some(Err(problem)) => problems.push(format!("line {number}: {problem}")),
        }
    }
    if problems.is_empty() {
        Ok(rows)
    } else {
        Err(problems)
    }
}

/// What is wrong with `rows`: ids that are missing, doubled or not `required`, and rows that say they work
/// (or partly work) without naming a test that `is_run` knows.
pub fn problems(
    rows: &[Row],
    required: &[String],
    is_run: impl Fn(&TestName) -> bool,
) -> Vec<String> {
    let mut problems = Vec::new();
    let mut seen = BTreeSet::new();
    for row in rows {
        if !seen.insert(row.id.as_str()) {
            problems.push(format!("{}: stands there twice", row.id));
        }
        if !required.contains(&row.id) {
            problems.push(format!("{}: no such requirement", row.id));
        }
        if row.meaning.is_empty() {
            problems.push(format!(
                "{}: says nothing about what it means to a user",
                row.id
            ));
        }
        if row.state != State::NotYet && row.tests.is_empty() {
            problems.push(format!("{}: names no test", row.id));
        }
        for test in row.tests.iter().filter(|test| !is_run(test)) {
            problems.push(format!(
                "{}: no runner runs {}::{}",
                row.id, test.path, test.name
            ));
        }
    }
    problems.extend(
        required
            .iter()
            .filter(|id| !seen.contains(id.as_str()))
            .map(|id| format!("{id}: has no row")),
    );
    problems
}

fn row(line: &str) -> Option<Result<Row, String>> {
    let cells: Vec<&str> = line
        .trim()
        .strip_prefix('|')?
        .strip_suffix('|')?
        .split('|')
        .map(str::trim)
        .collect();
    let id = *cells.first()?;
    if !is_id(id) {
        return None;
    }
    Some(match cells.as_slice() {
        [_, meaning, state, named] => parse(id, meaning, state, named),
        _ => Err(format!("{id} has {} columns; a row has 4", cells.len())),
    })
}

fn parse(id: &str, meaning: &str, state: &str, named: &str) -> Result<Row, String> {
    let state = match state {
        "works" => State::Works,
        "partly" => State::Partly,
        "not yet" => State::NotYet,
        other => {
            return Err(format!(
                "{id} is `{other}`; a row is `works`, `partly` or `not yet`"
            ));
        }
    };
    let tests = named
        .split("<br>")
        .map(|name| name.trim().trim_matches('`'))
        .filter(|name| !name.is_empty())
        .map(|name| match name.rsplit_once("::") {
            Some((path, name)) => Ok(TestName {
                path: path.to_owned(),
                name: name.to_owned(),
            }),
            None => Err(format!(
                "{id} names `{name}`; a test is named `path::test_name`"
            )),
        })
        .collect::<Result<_, _>>()?;
    Ok(Row {
        id: id.to_owned(),
        meaning: meaning.to_owned(),
        state,
        tests,
    })
}

/// A capital letter and a number.
fn is_id(cell: &str) -> bool {
    let mut characters = cell.chars();
    let number = match characters.next() {
        Some(letter) if letter.is_ascii_uppercase() => characters.as_str(),
        _ => return false,
    };
    !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "\
# Status

| id | what it means to a user | state | shown by |
|---|---|---|---|
| V1 | A thing. | works | `crates/a/src/b.rs::does_it`<br>`tests/it/c.rs::does_it_for_real` |
| V2 | Another. | not yet | |
";

    fn required() -> Vec<String> {
        vec!["V1".to_owned(), "V2".to_owned()]
    }

    fn run_all(_: &TestName) -> bool {
        true
    }

    #[test]
    fn a_page_whose_tests_are_run_is_fine() {
        let rows = rows(PAGE).unwrap();
        assert_eq!(rows[0].tests[1].path, "tests/it/c.rs");
        assert_eq!(rows[0].tests[1].name, "does_it_for_real");
        assert_eq!(problems(&rows, &required(), run_all), Vec::<String>::new());
    }

    #[test]
    fn a_row_that_works_must_name_a_test_that_is_run() {
        let rows = rows(PAGE).unwrap();
        let ignored = |test: &TestName| test.name != "does_it";
        assert_eq!(
            problems(&rows, &required(), ignored),
            ["V1: no runner runs crates/a/src/b.rs::does_it"]
        );
    }

    #[test]
    fn a_row_that_works_must_name_a_test_at_all() {
        for state in ["works", "partly"] {
            let rows = rows(&format!(
                "| V1 | A thing. | {state} | |\n| V2 | Another. | not yet | |"
            ))
            .unwrap();
            assert_eq!(problems(&rows, &required(), run_all), ["V1: names no test"]);
        }
    }

    #[test]
    fn every_requirement_has_exactly_one_row() {
        let rows =
            rows("| V1 | A | not yet | |\n| V1 | A | not yet | |\n| V9 | | not yet | |").unwrap();
        assert_eq!(
            problems(&rows, &required(), run_all),
            [
                "V1: stands there twice",
                "V9: no such requirement",
                "V9: says nothing about what it means to a user",
                "V2: has no row",
            ]
        );
    }

    #[test]
    fn a_line_that_only_looks_like_a_row_is_named() {
        let problems =
            rows("| V1 | A | done | |\n| V2 | A | works | does_it |\n| V3 | A | works |")
                .unwrap_err();
        assert_eq!(
            problems,
            [
                "line 1: V1 is `done`; a row is `works`, `partly` or `not yet`",
                "line 2: V2 names `does_it`; a test is named `path::test_name`",
                "line 3: V3 has 3 columns; a row has 4",
            ]
        );
    }
}
