//! Which tests a test runner would run, by source file and function.

use std::{
    collections::BTreeSet,
    path::{Component, Path, PathBuf},
};

use crate::status::TestName;

/// The tests of one test binary.
#[derive(Clone, Debug)]
pub struct Binary {
    /// The file that the binary is built from: `crates/a/src/lib.rs`, `crates/a/tests/it/main.rs`.
    root: PathBuf,
    /// Paths as the test harness prints them: `csr::tests::refuses_trailing_bytes`.
    tests: BTreeSet<String>,
}

impl Binary {
    /// From what the binary prints for `--list --format terse`, and for the same with `--ignored`.
    #[must_use]
    pub fn new(root: &Path, listed: &str, ignored: &str) -> Self {
        let mut tests = names(listed);
        for name in names(ignored) {
            tests.remove(&name);
        }
        Self {
            root: root.to_owned(),
            tests,
        }
    }

    /// Whether the binary runs `test`: a function of the module that the test's file is.
    #[must_use]
    pub fn runs(&self, test: &TestName) -> bool {
        let Some(module) = self.module(Path::new(&test.path)) else {
            return false;
        };
        let nested = format!("::{}", test.name);
        self.tests.iter().any(|listed| {
            let inside = match module.as_str() {
                "" => Some(listed.as_str()),
                module => listed
                    .strip_prefix(module)
                    .and_then(|rest| rest.strip_prefix("::")),
            };
            inside.is_some_and(|inside| inside == test.name || inside.ends_with(&nested))
        })
    }

    /// How many tests it runs.
    #[must_use]
    pub fn count(&self) -> usize {
        self.tests.len()
    }

    /// The module that `file` is in this binary; empty for its root, `None` if it lies elsewhere.
    fn module(&self, file: &Path) -> Option<String> {
        if file == self.root {
            return Some(String::new());
        }
        let inside = file
            .strip_prefix(self.root.parent()?)
            .ok()?
            .with_extension("");
        let parts: Vec<_> = inside
            .components()
            .map(|part| match part {
                Component::Normal(name) => name.to_str(),
                _ => None,
            })
            .collect::<Option<_>>()?;
        Some(parts.join("::"))
    }
}

fn names(listing: &str) -> BTreeSet<String> {
    listing
        .lines()
        .filter_map(|line| line.strip_suffix(": test"))
        .map(str::to_owned)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn test(path: &str, name: &str) -> TestName {
        TestName {
            path: path.to_owned(),
            name: name.to_owned(),
        }
    }

    fn library() -> Binary {
        let listed =
            "csr::tests::refuses_junk: test\ncsr::rsa::tests::takes_pss: test\nslow: test\n";
        Binary::new(Path::new("crates/a/src/lib.rs"), listed, "slow: test\n")
    }

    #[test]
    fn a_test_is_found_in_the_module_that_its_file_is() {
        assert!(library().runs(&test("crates/a/src/csr.rs", "refuses_junk")));
        assert!(library().runs(&test("crates/a/src/csr/rsa.rs", "takes_pss")));
        assert!(!library().runs(&test("crates/a/src/pem.rs", "refuses_junk")));
        assert!(!library().runs(&test("crates/b/src/csr.rs", "refuses_junk")));
        assert!(!library().runs(&test("crates/a/src/csr.rs", "junk")));
    }

    #[test]
    fn an_ignored_test_is_not_run() {
        assert!(!library().runs(&test("crates/a/src/lib.rs", "slow")));
        assert_eq!(library().count(), 2);
    }

    #[test]
    fn a_test_of_an_integration_suite_is_found_by_its_file() {
        let suite = Binary::new(
            Path::new("crates/a/tests/it/main.rs"),
            "csr::takes_p384: test\nstarts: test\n",
            "",
        );
        assert!(suite.runs(&test("crates/a/tests/it/csr.rs", "takes_p384")));
        assert!(suite.runs(&test("crates/a/tests/it/main.rs", "starts")));
        assert!(!suite.runs(&test("crates/a/tests/csr.rs", "takes_p384")));
    }
}
