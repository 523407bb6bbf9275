//! The policy file: YAML in, a [`Policy`] out, or everything that is wrong with it at once.
//!
//! Pure: no file is read here; the bundles that it names come with it.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer};
use serde_saphyr::{Location, Spanned};

use super::bundles::Bundles;
use super::entry::{Anchors, Rejected};
use super::rules::{self, MethodRule, MethodRules};
use super::{AllowList, Mode, Policy, PolicyProblem};
use crate::identity::is_trust_domain;

/// The largest policy file, in bytes.
pub(super) const MAX_BYTES: usize = 1 << 20;
/// The most trust domains of one file.
const MAX_TRUST_DOMAINS: usize = 256;
/// Stands for everybody who may call at all, alone in the list of a rule.
const EVERYBODY: &str = "*";

/// What a policy file says, before anything of it is checked.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Raw {
    #[serde(default, deserialize_with = "given")]
    mode: Option<Spanned<String>>,
    #[serde(default, deserialize_with = "given")]
    allow: Option<Vec<Spanned<String>>>,
    #[serde(default)]
    trust_domains: BTreeMap<String, Spanned<String>>,
    #[serde(default, deserialize_with = "given")]
    methods: Option<Vec<RawRule>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawRule {
    #[serde(rename = "match")]
    pattern: Spanned<String>,
    allow: Vec<Spanned<String>>,
}

/// A field that is there is not null: `allow:` with nothing after it is a mistake, not an empty list.
fn given<'de, D: Deserializer<'de>, T: Deserialize<'de>>(source: D) -> Result<Option<T>, D::Error> {
    T::deserialize(source).map(Some)
}

impl Raw {
    /// A syntax error or an unknown field stands alone: what comes after it can't be trusted.
    pub(super) fn parse(bytes: &[u8]) -> Result<Self, PolicyProblem> {
        let whole = |found: String, accepted: &str| PolicyProblem {
            line: 0,
            column: 0,
            field: String::new(),
            found,
            accepted: accepted.to_owned(),
        };
        if bytes.len() > MAX_BYTES {
            let found = format!("{} bytes", bytes.len());
            return Err(whole(found, "a file of at most 1 MiB"));
        }
        let text = std::str::from_utf8(bytes)
            .map_err(|error| whole(error.to_string(), "text in UTF-8"))?;
        serde_saphyr::from_str(text).map_err(|error| {
            let location = error.location().unwrap_or(Location::UNKNOWN);
            PolicyProblem {
                line: narrow(location.line()),
                column: narrow(location.column()),
                field: String::new(),
                found: first_line(&error.without_snippet().to_string()),
                accepted: "YAML with mode, allow, trust_domains and methods".to_owned(),
            }
        })
    }

    /// The files that hold the roots of the trust domains, as written.
    pub(super) fn bundles(&self) -> impl Iterator<Item = &str> {
        let known = self.trust_domains.values().take(MAX_TRUST_DOMAINS);
        known.map(|bundle| bundle.value.as_str())
    }

    /// Checks everything. `bundle` gives the bytes of a file that [`Self::bundles`] named, or why there are none.
    pub(super) fn check<'b>(
        &self,
        bundle: impl Fn(&str) -> Result<&'b [u8], String>,
    ) -> Result<Policy, Vec<PolicyProblem>> {
        let mut problems = Problems::default();
        let bundles = self.trust(bundle, &mut problems);
        let anchors = |domain: &str| bundles.anchors(domain);
        let mode = self.mode(&mut problems);
        let allow = self.allow(&anchors, &mut problems);
        let methods = self.methods(&anchors, &mut problems);
        if self.allow.is_none() && self.methods.is_none() {
            problems.whole(
                "neither allow nor methods",
                "one of them; `allow: []` lets every verified peer call",
            );
        }
        problems.finish()?;
        Ok(Policy {
            generation: 0,
            mode,
            allow,
            methods,
        })
    }

    fn mode(&self, problems: &mut Problems) -> Mode {
        match self.mode.as_ref().map(|mode| mode.value.as_str()) {
            None | Some("enforce") => Mode::Enforce,
            Some("report") => Mode::Report,
            Some(_) => {
                if let Some(mode) = &self.mode {
                    problems.refuse(mode, "mode".to_owned(), "enforce or report");
                }
                Mode::Enforce
            }
        }
    }

    fn trust<'b>(
        &self,
        bundle: impl Fn(&str) -> Result<&'b [u8], String>,
        problems: &mut Problems,
    ) -> Bundles {
        let mut bundles = Bundles::default();
        if self.trust_domains.len() > MAX_TRUST_DOMAINS {
            let found = format!("{} trust domains", self.trust_domains.len());
            problems.whole(&found, "at most 256 trust_domains");
        }
        for (domain, file) in self.trust_domains.iter().take(MAX_TRUST_DOMAINS) {
            let field = format!("trust_domains.{}", clip(domain));
            if !is_trust_domain(domain) {
                problems.push(
                    file,
                    field,
                    format!("the name {:?}", clip(domain)),
                    "a trust domain without spiffe://: lower-case letters, digits, dots, dashes and underscores",
                );
                continue;
            }
            let added = bundle(&file.value).and_then(|bytes| bundles.add(domain, bytes));
            if let Err(found) = added {
                let found = format!("{} with {found}", clip(&file.value));
                let accepted = "a PEM file with the roots of this trust domain alone";
                bundles.add_unusable(domain);
                problems.push(file, field, found, accepted);
            }
        }
        bundles
    }

    fn allow(&self, anchors: Anchors<'_>, problems: &mut Problems) -> AllowList {
        let entries = self.allow.as_deref().unwrap_or_default();
        if let Some(everybody) = entries.iter().find(|entry| entry.value == EVERYBODY) {
            let accepted = "names; `allow: []` lets every verified peer call";
            problems.refuse(everybody, "allow".to_owned(), accepted);
        }
        list(entries, "allow", anchors, problems)
    }

    fn methods(&self, anchors: Anchors<'_>, problems: &mut Problems) -> Option<MethodRules> {
        let raw = self.methods.as_ref()?;
        let mut rules = MethodRules::default();
        if raw.is_empty() {
            problems.whole(
                "methods without any rule",
                "rules, or no methods at all: whoever may call may then call everything",
            );
        }
        for (index, rule) in raw.iter().enumerate().take(rules::MAX_RULES + 1) {
            let field = format!("methods[{index}]");
            let callers = match rule.allow.as_slice() {
                [only] if only.value == EVERYBODY => None,
                entries => Some(list(entries, &format!("{field}.allow"), anchors, problems)),
            };
            let added = MethodRule::new(rule.pattern.value.clone(), callers)
                .and_then(|rule| rules.add(rule));
            if let Err(rules::Rejected(accepted)) = added {
                problems.refuse(&rule.pattern, format!("{field}.match"), accepted);
            }
        }
        Some(rules)
    }
}

fn list(
    entries: &[Spanned<String>],
    field: &str,
    anchors: Anchors<'_>,
    problems: &mut Problems,
) -> AllowList {
    let mut list = AllowList::default();
    for (index, entry) in entries.iter().enumerate() {
        let field = || format!("{field}[{index}]");
        match list.push(&entry.value, anchors) {
            Ok(()) => {}
            Err(Some(Rejected(accepted))) => problems.refuse(entry, field(), accepted),
            Err(None) => {
                problems.refuse(entry, field(), "at most 1024 entries");
                break;
            }
        }
    }
    list
}

/// What was found wrong so far.
#[derive(Default)]
struct Problems(Vec<PolicyProblem>);

impl Problems {
    fn push(&mut self, at: &Spanned<String>, field: String, found: String, accepted: &str) {
        self.0.push(PolicyProblem {
            line: narrow(at.referenced.line()),
            column: narrow(at.referenced.column()),
            field,
            found,
            accepted: accepted.to_owned(),
        });
    }

    fn refuse(&mut self, at: &Spanned<String>, field: String, accepted: &str) {
        self.push(at, field, format!("{:?}", clip(&at.value)), accepted);
    }

    fn whole(&mut self, found: &str, accepted: &str) {
        self.0.push(PolicyProblem {
            line: 0,
            column: 0,
            field: String::new(),
            found: found.to_owned(),
            accepted: accepted.to_owned(),
        });
    }

    fn finish(mut self) -> Result<(), Vec<PolicyProblem>> {
        if self.0.is_empty() {
            return Ok(());
        }
        self.0.sort_by_key(|problem| (problem.line, problem.column));
        Err(self.0)
    }
}

fn narrow(number: impl TryInto<u32>) -> u32 {
    number.try_into().unwrap_or(u32::MAX)
}

/// The first 80 characters.
fn clip(text: &str) -> String {
    text.chars().take(80).collect()
}

fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().to_owned()
}
