//! Which identities may call which methods.

use std::collections::HashMap;
use std::fmt;

use super::AllowList;
use crate::identity::PeerIdentity;

/// The most rules of one policy.
pub(super) const MAX_RULES: usize = 1024;

/// Rules per method. What none of them matches is refused.
///
/// Of several that match a path the longest decides, wherever it stands: a whole path before a prefix, a longer prefix
/// before a shorter one.
#[derive(Clone, Debug, Default)]
pub struct MethodRules {
    rules: Vec<MethodRule>,
    /// By pattern; whole paths and prefixes can't be confused, since only prefixes end at a slash and a path that does
    /// is matched by both alike.
    by_pattern: HashMap<String, usize>,
    longest_prefix: usize,
}

/// One rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MethodRule {
    pattern: String,
    /// `None` is everybody who may call at all.
    callers: Option<AllowList>,
}

/// Why a rule could not be added: what is accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Rejected(pub(super) &'static str);

impl MethodRules {
    /// Adds a rule for a path, or for all paths that begin with a pattern that ends at a slash.
    pub(super) fn add(&mut self, rule: MethodRule) -> Result<(), Rejected> {
        if self.rules.len() >= MAX_RULES {
            return Err(Rejected("at most 1024 rules"));
        }
        let index = self.rules.len();
        if self.by_pattern.contains_key(&rule.pattern) {
            return Err(Rejected("each pattern once"));
        }
        if rule.is_prefix() {
            self.longest_prefix = self.longest_prefix.max(rule.pattern.len());
        }
        self.by_pattern.insert(rule.pattern.clone(), index);
        self.rules.push(rule);
        Ok(())
    }

    /// The rules in the order of the file.
    pub fn iter(&self) -> std::slice::Iter<'_, MethodRule> {
        self.rules.iter()
    }

    /// The rule that decides about a path.
    #[must_use]
    pub fn find(&self, path: &str) -> Option<&MethodRule> {
        self.rules.get(self.index_of(path)?)
    }

    pub(super) fn index_of(&self, path: &str) -> Option<usize> {
        if let Some(index) = self.by_pattern.get(path) {
            return Some(*index);
        }
        // No further than any pattern reaches: the path is the caller's, with as many slashes as it likes.
        let reach = path.len().min(self.longest_prefix);
        let mut prefix = path.get(..reach).or_else(|| path.get(..0))?;
        while let Some(slash) = prefix.rfind('/') {
            let with_slash = prefix.get(..=slash)?;
            if let Some(index) = self.by_pattern.get(with_slash) {
                return Some(*index);
            }
            prefix = prefix.get(..slash)?;
        }
        None
    }

    pub(super) fn judge(&self, peer: &PeerIdentity) -> Vec<bool> {
        self.iter().map(|rule| rule.permits(peer)).collect()
    }
}

impl MethodRule {
    pub(super) fn new(pattern: String, callers: Option<AllowList>) -> Result<Self, Rejected> {
        let readable = |b: u8| b.is_ascii_graphic() && b != b'*';
        if !pattern.starts_with('/') || pattern.len() > 1024 || !pattern.bytes().all(readable) {
            return Err(Rejected(
                "/package.Service/Method, or a prefix that ends at a slash: /package.Service/, /",
            ));
        }
        Ok(Self { pattern, callers })
    }

    /// `/package.Service/Method`, or a prefix that ends at a slash.
    #[must_use]
    pub fn pattern(&self) -> &str {
        &self.pattern
    }

    /// Whether it is about every path that begins with the pattern.
    #[must_use]
    pub fn is_prefix(&self) -> bool {
        self.pattern.ends_with('/')
    }

    /// The entries of its list; `None` for everybody who may call at all. Without entries it permits nobody.
    #[must_use]
    pub fn callers(&self) -> Option<&AllowList> {
        self.callers.as_ref()
    }

    fn permits(&self, peer: &PeerIdentity) -> bool {
        self.callers
            .as_ref()
            .is_none_or(|callers| callers.lists_peer(peer))
    }
}

impl fmt::Display for MethodRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.callers {
            None => write!(f, "{}: *", self.pattern),
            Some(callers) => write!(f, "{}: {callers}", self.pattern),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(patterns: &[&str]) -> MethodRules {
        let mut rules = MethodRules::default();
        for pattern in patterns {
            let rule = MethodRule::new((*pattern).to_owned(), None).expect(pattern);
            rules.add(rule).expect(pattern);
        }
        rules
    }

    fn found<'a>(rules: &'a MethodRules, path: &str) -> Option<&'a str> {
        rules.find(path).map(MethodRule::pattern)
    }

    /// V17.
    #[test]
    fn the_longest_match_decides_wherever_it_stands() {
        let patterns = ["/", "/a.B/", "/a.B/Call", "/api/v1/", "/api/"];
        let mut backwards = patterns;
        backwards.reverse();
        for order in [patterns, backwards] {
            let rules = rules(&order);
            for (path, expected) in [
                ("/a.B/Call", "/a.B/Call"),
                ("/a.B/Other", "/a.B/"),
                ("/a.B/Calls", "/a.B/"),
                ("/a.B/", "/a.B/"),
                ("/a.B/Call/", "/a.B/"),
                ("/a.BC/Call", "/"),
                ("/a.B", "/"),
                ("/api/v1/x/y", "/api/v1/"),
                ("/api/v2", "/api/"),
                ("/", "/"),
            ] {
                assert_eq!(found(&rules, path), Some(expected), "{path}");
            }
        }
    }

    /// V17.
    #[test]
    fn what_no_rule_matches_is_found_nowhere() {
        let rules = rules(&["/a.B/Call", "/a.C/"]);
        for path in [
            "/a.B/Other",
            "/a.B/call",
            "/A.B/Call",
            "a.C/x",
            "//a.C/x",
            "/a.C",
            "/",
            "",
            "*",
            "ä/",
        ] {
            assert_eq!(found(&rules, path), None, "{path}");
        }
    }

    #[test]
    fn a_pattern_is_a_path_and_stands_once() {
        for bad in ["", "a.B/Call", "/a.B/*", "*", "/a b", "/ä", "/a\n"] {
            assert!(MethodRule::new(bad.to_owned(), None).is_err(), "{bad:?}");
        }
        let mut rules = rules(&["/a.B/"]);
        let again = MethodRule::new("/a.B/".to_owned(), None).expect("a rule");
        assert_eq!(rules.add(again), Err(Rejected("each pattern once")));
    }
}
