//! The YAML of a machine config as a tree whose every key and value knows its place in the file.
//!
//! Only what a config needs: one document, mappings with plain text keys, sequences, scalars. Anchors, aliases and
//! tags are refused, so that no small file can grow into a large one. Does not know any field.

use serde_saphyr::granit_parser::{
    Event, Marker, Options, Parser, ScalarStyle, ScanError, Span, StrInput,
};

use super::problem::{Place, Problem};

/// Nested deeper than this is no machine config.
const MAX_DEPTH: usize = 32;

/// A value and where it begins.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) place: Place,
    pub(super) value: Value,
}

/// What a YAML node holds.
#[derive(Debug)]
pub(super) enum Value {
    Mapping(Vec<Entry>),
    Scalar { text: String, plain: bool },
    Sequence(Vec<Node>),
}

/// One `key: value` of a mapping.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) key: String,
    pub(super) key_place: Place,
    pub(super) node: Node,
}

impl Node {
    /// Whether the value is absent: nothing after the colon, `~` or `null`.
    pub(super) fn is_null(&self) -> bool {
        match &self.value {
            Value::Scalar { text, plain: true } => {
                matches!(text.as_str(), "" | "~" | "null" | "Null" | "NULL")
            }
            Value::Mapping(_) | Value::Scalar { .. } | Value::Sequence(_) => false,
        }
    }

    /// What a person would call this node, for "found".
    pub(super) fn describe(&self) -> String {
        match &self.value {
            Value::Mapping(_) => "a mapping".to_owned(),
            Value::Sequence(_) => "a list".to_owned(),
            Value::Scalar { .. } if self.is_null() => "nothing".to_owned(),
            Value::Scalar { text, .. } => super::problem::quote(text),
        }
    }
}

/// Parses one YAML document. A syntax error stands alone: nothing after it can be trusted.
pub(super) fn parse(text: &str) -> Result<Node, Problem> {
    let mut options = Options::default();
    options.set_emit_comments(false);
    options.disallow_directives = true;
    options.flow_nesting_limit = MAX_DEPTH;
    options.block_nesting_limit = MAX_DEPTH;
    let mut events = Events {
        parser: Parser::new_from_str_with_options(text, options),
    };
    let root = loop {
        let (event, span) = events.next()?;
        match event {
            Event::StreamStart | Event::DocumentStart(..) => {}
            Event::StreamEnd => return Err(empty(&span)),
            event => break events.node(event, &span)?,
        }
    };
    loop {
        let (event, span) = events.next()?;
        match event {
            Event::StreamEnd => return Ok(root),
            Event::DocumentEnd => {}
            _ => {
                return Err(Problem::new(
                    place(&span),
                    "",
                    "a second document",
                    "one YAML document",
                ));
            }
        }
    }
}

struct Events<'input> {
    parser: Parser<'input, StrInput<'input>>,
}

impl<'input> Events<'input> {
    fn next(&mut self) -> Result<(Event<'input>, Span), Problem> {
        match self.parser.next_event() {
            Some(Ok(event)) => Ok(event),
            Some(Err(error)) => Err(syntax(&error)),
            // The parser ends with `StreamEnd`, after which nobody asks.
            None => Ok((Event::StreamEnd, Span::default())),
        }
    }

    fn node(&mut self, event: Event<'input>, span: &Span) -> Result<Node, Problem> {
        let place = place(span);
        let value = match event {
            Event::Scalar(text, style, anchor, tag) => {
                refuse_properties(place, anchor, tag.is_some())?;
                Value::Scalar {
                    text: text.into_owned(),
                    plain: style == ScalarStyle::Plain,
                }
            }
            Event::SequenceStart(_, anchor, tag) => {
                refuse_properties(place, anchor, tag.is_some())?;
                self.sequence()?
            }
            Event::MappingStart(_, anchor, tag) => {
                refuse_properties(place, anchor, tag.is_some())?;
                self.mapping()?
            }
            _ => {
                return Err(Problem::new(
                    place,
                    "",
                    "an alias",
                    "the value itself; anchors and aliases are not used in a machine config",
                ));
            }
        };
        Ok(Node { place, value })
    }

    fn sequence(&mut self) -> Result<Value, Problem> {
        let mut items = Vec::new();
        loop {
            let (event, span) = self.next()?;
            match event {
                Event::SequenceEnd => return Ok(Value::Sequence(items)),
                event => items.push(self.node(event, &span)?),
            }
        }
    }

    fn mapping(&mut self) -> Result<Value, Problem> {
        let mut entries: Vec<Entry> = Vec::new();
        loop {
            let (event, span) = self.next()?;
            if event == Event::MappingEnd {
                return Ok(Value::Mapping(entries));
            }
            let key_node = self.node(event, &span)?;
            let Value::Scalar { text: key, .. } = key_node.value else {
                return Err(Problem::new(
                    key_node.place,
                    "",
                    "a list or mapping as a key",
                    "a field name",
                ));
            };
            let (event, span) = self.next()?;
            let node = self.node(event, &span)?;
            entries.push(Entry {
                key,
                key_place: key_node.place,
                node,
            });
        }
    }
}

fn refuse_properties(place: Place, anchor: usize, tagged: bool) -> Result<(), Problem> {
    let found = match (anchor, tagged) {
        (0, false) => return Ok(()),
        (0, true) => "a tag",
        _ => "an anchor",
    };
    Err(Problem::new(
        place,
        "",
        found,
        "a plain value; anchors, aliases and tags are not used in a machine config",
    ))
}

fn empty(span: &Span) -> Problem {
    Problem::new(
        place(span),
        "",
        "an empty file",
        "a machine config: `apiVersion`, `kind`, `role`, `pki`",
    )
}

fn syntax(error: &ScanError) -> Problem {
    Problem::new(
        Place::at(error.marker(), 0),
        "",
        super::problem::clip(&error.info()),
        "valid YAML",
    )
}

fn place(span: &Span) -> Place {
    let length = span
        .byte_range()
        .map_or(0, |range| range.end.saturating_sub(range.start));
    Place::at(&span.start, length)
}

impl Place {
    fn at(marker: &Marker, length: usize) -> Self {
        Self {
            line: marker.line().max(1),
            column: marker.col() + 1,
            offset: marker.byte_offset().unwrap_or(0),
            length,
        }
    }
}
