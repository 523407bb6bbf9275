//! Reads fields out of the tree: takes what is asked for, remembers what was asked for, and reports the rest.
//!
//! Every reader goes on after a problem, so that one run over a file finds all of them.

use std::fmt;

use super::{
    problem::{Place, Problem, Problems, quote},
    tree::{Entry, Node, Value},
};

/// A scalar's text with its place and path.
#[derive(Debug, Clone)]
pub(super) struct Text<'tree> {
    pub(super) value: &'tree str,
    pub(super) place: Place,
    pub(super) field: String,
}

/// Something that can be said about a field that was read.
pub(super) trait Field {
    fn place(&self) -> Place;
    fn field(&self) -> &str;
}

impl Field for Text<'_> {
    fn place(&self) -> Place {
        self.place
    }

    fn field(&self) -> &str {
        &self.field
    }
}

/// The fields of one mapping.
pub(super) struct Fields<'tree> {
    path: String,
    place: Place,
    entries: &'tree [Entry],
    asked: Vec<&'static str>,
    problems: &'tree Problems,
}

impl fmt::Debug for Fields<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Fields")
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
}

impl Field for Fields<'_> {
    fn place(&self) -> Place {
        self.place
    }

    fn field(&self) -> &str {
        &self.path
    }
}

impl<'tree> Fields<'tree> {
    /// The fields of `node`; reports anything that is no mapping, and repeated keys.
    pub(super) fn open(node: &'tree Node, path: String, problems: &'tree Problems) -> Option<Self> {
        let Value::Mapping(entries) = &node.value else {
            problems.push(Problem::new(node.place, path, node.describe(), "a mapping"));
            return None;
        };
        let fields = Self {
            path,
            place: node.place,
            entries,
            asked: Vec::new(),
            problems,
        };
        for (index, entry) in entries.iter().enumerate() {
            let earlier = entries.iter().take(index).find(|e| e.key == entry.key);
            if let Some(earlier) = earlier {
                problems.push(Problem::new(
                    entry.key_place,
                    fields.path_of(&entry.key),
                    format!("the field again (first on line {})", earlier.key_place.line),
                    "each field once",
                ));
            }
        }
        Some(fields)
    }

    /// Reports a problem of a field of this file.
    pub(super) fn refuse(
        &self,
        at: &impl Field,
        found: impl Into<String>,
        accepted: impl Into<String>,
    ) {
        self.problems
            .push(Problem::new(at.place(), at.field(), found, accepted));
    }

    /// Reports a problem of a field below this mapping by its dotted path (`sans.dns[1]`), at the deepest node there is.
    pub(super) fn refuse_field(&self, field: &str, found: String, accepted: String) {
        self.problems.push(Problem::new(
            self.place_below(field),
            self.path_of(field),
            found,
            accepted,
        ));
    }

    fn place_below(&self, field: &str) -> Place {
        let mut place = self.place;
        let mut entries = self.entries;
        for step in field.split('.') {
            let name = step.split('[').next().unwrap_or(step);
            let Some(entry) = entries.iter().find(|entry| entry.key == name) else {
                return place;
            };
            place = entry.node.place;
            match &entry.node.value {
                Value::Mapping(below) => entries = below,
                Value::Sequence(items) => {
                    let index = step
                        .split_once('[')
                        .and_then(|(_, rest)| rest.trim_end_matches(']').parse::<usize>().ok());
                    match index.and_then(|index| items.get(index)) {
                        Some(Node {
                            place: item,
                            value: Value::Mapping(below),
                        }) => (place, entries) = (*item, below),
                        Some(item) => return item.place,
                        None => return place,
                    }
                }
                Value::Scalar { .. } => return place,
            }
        }
        place
    }

    /// How many problems the file has so far.
    pub(super) fn problem_count(&self) -> usize {
        self.problems.count()
    }

    /// Reports a field of this mapping that is missing.
    pub(super) fn missing(&self, name: &str, accepted: impl Into<String>) {
        self.problems.push(Problem::new(
            self.place,
            self.path_of(name),
            "nothing",
            accepted,
        ));
    }

    /// The node of a field, if it is there and not null.
    pub(super) fn node(&mut self, name: &'static str) -> Option<&'tree Node> {
        self.asked.push(name);
        let entry = self.entries.iter().find(|entry| entry.key == name)?;
        (!entry.node.is_null()).then_some(&entry.node)
    }

    /// Whether the key stands in the file, even with nothing behind it.
    pub(super) fn refuse_if_present(&mut self, name: &'static str, found: &str, accepted: &str) {
        self.asked.push(name);
        if let Some(entry) = self.entries.iter().find(|entry| entry.key == name) {
            self.problems.push(Problem::new(
                entry.key_place,
                self.path_of(name),
                found,
                accepted,
            ));
        }
    }

    /// A nested mapping.
    pub(super) fn block(&mut self, name: &'static str) -> Option<Self> {
        let node = self.node(name)?;
        Self::open(node, self.path_of(name), self.problems)
    }

    /// A list's nodes with their paths; an absent one is empty.
    pub(super) fn list(&mut self, name: &'static str) -> Vec<(&'tree Node, String)> {
        let Some(node) = self.node(name) else {
            return Vec::new();
        };
        let path = self.path_of(name);
        let Value::Sequence(items) = &node.value else {
            self.problems
                .push(Problem::new(node.place, path, node.describe(), "a list"));
            return Vec::new();
        };
        items
            .iter()
            .enumerate()
            .map(|(index, item)| (item, format!("{path}[{index}]")))
            .collect()
    }

    /// A list of mappings.
    pub(super) fn blocks(&mut self, name: &'static str) -> Vec<Self> {
        let problems = self.problems;
        self.list(name)
            .into_iter()
            .filter_map(|(node, path)| Self::open(node, path, problems))
            .collect()
    }

    /// A list of texts.
    pub(super) fn texts(&mut self, name: &'static str) -> Vec<Text<'tree>> {
        let problems = self.problems;
        self.list(name)
            .into_iter()
            .filter_map(|(node, field)| text_of(node, field, problems))
            .collect()
    }

    /// A text; absent and empty are both `None`.
    pub(super) fn text(&mut self, name: &'static str) -> Option<Text<'tree>> {
        let node = self.node(name)?;
        text_of(node, self.path_of(name), self.problems).filter(|text| !text.value.is_empty())
    }

    /// A text that must be there.
    pub(super) fn required_text(
        &mut self,
        name: &'static str,
        accepted: &str,
    ) -> Option<Text<'tree>> {
        let text = self.text(name);
        if text.is_none() && self.lacks(name) {
            self.missing(name, accepted);
        }
        text
    }

    /// Whether the field is absent or empty, as opposed to there with a wrong value.
    pub(super) fn lacks(&self, name: &str) -> bool {
        self.entries
            .iter()
            .find(|entry| entry.key == name)
            .is_none_or(|entry| {
                entry.node.is_null()
                    || matches!(&entry.node.value, Value::Scalar { text, .. } if text.is_empty())
            })
    }

    /// `true` or `false`; absent is `false`.
    pub(super) fn flag(&mut self, name: &'static str) -> bool {
        let Some(node) = self.node(name) else {
            return false;
        };
        match &node.value {
            Value::Scalar { text, plain: true } if text.eq_ignore_ascii_case("true") => true,
            Value::Scalar { text, plain: true } if text.eq_ignore_ascii_case("false") => false,
            Value::Mapping(_) | Value::Scalar { .. } | Value::Sequence(_) => {
                self.problems.push(Problem::new(
                    node.place,
                    self.path_of(name),
                    node.describe(),
                    "`true` or `false`",
                ));
                false
            }
        }
    }

    /// A whole number within `range`, with its place.
    pub(super) fn number(
        &mut self,
        name: &'static str,
        range: std::ops::RangeInclusive<u32>,
    ) -> Option<u32> {
        let node = self.node(name)?;
        let number = match &node.value {
            Value::Scalar { text, plain: true } => text.parse().ok(),
            Value::Mapping(_) | Value::Scalar { .. } | Value::Sequence(_) => None,
        };
        let number = number.filter(|number| range.contains(number));
        if number.is_none() {
            self.problems.push(Problem::new(
                node.place,
                self.path_of(name),
                node.describe(),
                format!("a whole number from {} to {}", range.start(), range.end()),
            ));
        }
        number
    }

    /// A list of numbers from 0 to 255.
    pub(super) fn bytes(&mut self, name: &'static str) -> Vec<u8> {
        let problems = self.problems;
        self.list(name)
            .into_iter()
            .filter_map(|(node, path)| {
                let byte = match &node.value {
                    Value::Scalar { text, plain: true } => text.parse().ok(),
                    Value::Mapping(_) | Value::Scalar { .. } | Value::Sequence(_) => None,
                };
                if byte.is_none() {
                    problems.push(Problem::new(
                        node.place,
                        path,
                        node.describe(),
                        "a whole number from 0 to 255",
                    ));
                }
                byte
            })
            .collect()
    }

    /// One of a closed set of words.
    pub(super) fn word<T: Copy>(&mut self, name: &'static str, words: &[(&str, T)]) -> Option<T> {
        let text = self.text(name)?;
        let found = self.choose(&text, words);
        if found.is_none() {
            self.refuse(&text, quote(text.value), list_of(words));
        }
        found
    }

    /// One of a closed set of words, which must be there.
    pub(super) fn required_word<T: Copy>(
        &mut self,
        name: &'static str,
        words: &[(&str, T)],
    ) -> Option<T> {
        let text = self.required_text(name, &list_of(words))?;
        let found = self.choose(&text, words);
        if found.is_none() {
            self.refuse(&text, quote(text.value), list_of(words));
        }
        found
    }

    /// Reports every field that nobody asked for.
    pub(super) fn finish(self) {
        for entry in self.entries {
            if !self.asked.contains(&entry.key.as_str()) {
                let mut known = self.asked.clone();
                known.sort_unstable();
                known.dedup();
                self.problems.push(Problem::new(
                    entry.key_place,
                    self.path_of(&entry.key),
                    "an unknown field",
                    format!("one of {}", known.join(", ")),
                ));
            }
        }
    }

    /// The path of a field of this mapping.
    pub(super) fn path_of(&self, name: &str) -> String {
        let name: String = super::problem::clip(name)
            .chars()
            .map(|c| if c.is_control() { '\u{fffd}' } else { c })
            .collect();
        if self.path.is_empty() {
            name
        } else {
            format!("{}.{name}", self.path)
        }
    }

    fn choose<T: Copy>(&self, text: &Text<'_>, words: &[(&str, T)]) -> Option<T> {
        words
            .iter()
            .find(|(word, _)| *word == text.value)
            .map(|(_, value)| *value)
    }
}

/// The words of a closed set, for "accepted".
pub(super) fn list_of<T>(words: &[(&str, T)]) -> String {
    words
        .iter()
        .map(|(word, _)| format!("`{word}`"))
        .collect::<Vec<_>>()
        .join(", ")
}

fn text_of<'tree>(node: &'tree Node, field: String, problems: &Problems) -> Option<Text<'tree>> {
    match &node.value {
        Value::Scalar { text, .. } if !node.is_null() => Some(Text {
            value: text,
            place: node.place,
            field,
        }),
        Value::Mapping(_) | Value::Scalar { .. } | Value::Sequence(_) => {
            problems.push(Problem::new(node.place, field, node.describe(), "a text"));
            None
        }
    }
}
