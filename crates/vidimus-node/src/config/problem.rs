//! What is wrong with a machine config: every problem of the file, each with its place.

use std::{cell::RefCell, collections::BTreeSet, fmt, sync::Arc};

use miette::{Diagnostic, LabeledSpan, SourceCode};

/// A place in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// Byte offset from the start of the file.
    pub offset: usize,
    /// Bytes that belong to it; 0 where unknown.
    pub length: usize,
}

impl Place {
    /// The start of the file.
    pub const START: Self = Self {
        line: 1,
        column: 1,
        offset: 0,
        length: 0,
    };
}

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Where.
    pub place: Place,
    /// The dotted path of the field (`pki.profiles[2].name`); empty for the file as a whole.
    pub field: String,
    /// What stands there.
    pub found: String,
    /// What would be accepted.
    pub accepted: String,
}

impl Problem {
    pub(super) fn new(
        place: Place,
        field: impl Into<String>,
        found: impl Into<String>,
        accepted: impl Into<String>,
    ) -> Self {
        Self {
            place,
            field: field.into(),
            found: found.into(),
            accepted: accepted.into(),
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:{}: ", self.place.line, self.place.column)?;
        if !self.field.is_empty() {
            write!(formatter, "{}: ", self.field)?;
        }
        write!(
            formatter,
            "found {}; accepted: {}",
            self.found, self.accepted
        )
    }
}

/// Everything that is wrong with one machine config, in the order of the file.
///
/// `Display` gives one line a problem (`FILE:LINE:COLUMN: FIELD: found …; accepted: …`); as a miette diagnostic it
/// shows the lines of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigErrors {
    name: String,
    source: Arc<str>,
    problems: Vec<Problem>,
}

impl ConfigErrors {
    pub(super) fn new(name: &str, source: &str, mut problems: Vec<Problem>) -> Self {
        problems.sort_by_key(|problem| (problem.place.line, problem.place.column));
        // A rule of the whole profile may fail because of a field that was reported already.
        let mut seen = BTreeSet::new();
        problems.retain(|problem| {
            problem.field.is_empty() || seen.insert((problem.place, problem.field.clone()))
        });
        Self {
            name: name.to_owned(),
            source: Arc::from(source),
            problems,
        }
    }

    /// The problems, never empty, in the order of the file.
    #[must_use]
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }
}

impl fmt::Display for ConfigErrors {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.problems.iter().enumerate() {
            if index > 0 {
                formatter.write_str("\n")?;
            }
            write!(formatter, "{}:{problem}", self.name)?;
        }
        Ok(())
    }
}

impl std::error::Error for ConfigErrors {}

impl Diagnostic for ConfigErrors {
    fn source_code(&self) -> Option<&dyn SourceCode> {
        Some(&self.source)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        Some(Box::new(self.problems.iter().map(|problem| {
            LabeledSpan::new(
                Some(format!("accepted: {}", problem.accepted)),
                problem.place.offset,
                problem.place.length,
            )
        })))
    }
}

/// Where the readers of one file put what they find wrong.
#[derive(Debug, Default)]
pub(super) struct Problems(RefCell<Vec<Problem>>);

impl Problems {
    pub(super) fn push(&self, problem: Problem) {
        self.0.borrow_mut().push(problem);
    }

    pub(super) fn count(&self) -> usize {
        self.0.borrow().len()
    }

    pub(super) fn into_inner(self) -> Vec<Problem> {
        self.0.into_inner()
    }
}

/// Text from the file, quoted, without control characters and not longer than a line.
pub(super) fn quote(text: &str) -> String {
    format!("{:?}", clip(text))
}

/// The first 80 characters.
pub(super) fn clip(text: &str) -> String {
    const MOST: usize = 80;
    let mut clipped: String = text.chars().take(MOST).collect();
    if text.chars().nth(MOST).is_some() {
        clipped.push('…');
    }
    clipped
}
