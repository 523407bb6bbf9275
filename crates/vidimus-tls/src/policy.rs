//! Who may call: the allow-list on top of a verified certificate, and rules per method.
//!
//! A [`Policy`] is immutable: from a list, such as one in the environment, or from a YAML file with rules per method,
//! SPIFFE trust domains and a mode that only reports. A [`PolicyWatch`] is the policy of this moment and of every later
//! one; made from a file it follows that file. [`crate::server::Server`] applies it by itself; [`PolicyLayer`] is for
//! services that something else serves.

#![warn(clippy::indexing_slicing, clippy::arithmetic_side_effects)]

mod allow_list;
mod bundles;
mod driver;
mod entry;
mod error;
mod file;
mod layer;
mod refusal;
mod rules;
mod sources;
mod watch;

use std::fmt;
use std::path::Path;

use serde::Serialize;

pub use allow_list::{AllowList, AllowListError};
pub use driver::PolicyDriver;
pub use error::{PolicyError, PolicyProblem};
pub use layer::{PolicyFuture, PolicyLayer, PolicyService};
pub use refusal::PolicyRefusal;
pub(crate) use refusal::{Refused, is_grpc, respond, trailers};
pub use rules::{MethodRule, MethodRules};
pub use watch::{PolicyPublisher, PolicyStatus, PolicyWatch};

use crate::identity::PeerIdentity;

/// What happens to a call that the policy doesn't permit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// It is refused.
    #[default]
    Enforce,
    /// It passes, and is logged and counted. Peers that were not verified are refused all the same.
    Report,
}

/// Who may call what. Immutable.
#[derive(Clone, Debug, Default)]
pub struct Policy {
    generation: u64,
    mode: Mode,
    allow: AllowList,
    methods: Option<MethodRules>,
}

/// What a policy says of one peer, worked out once: whether it may call at all, and whether each rule permits it.
#[derive(Clone, Debug)]
pub(crate) struct Judgement {
    admitted: Result<(), PolicyRefusal>,
    /// In the order of the rules; empty without rules.
    by_rule: Vec<bool>,
}

impl From<AllowList> for Policy {
    /// Only a list: no rules per method, and what it doesn't permit is refused.
    fn from(allow: AllowList) -> Self {
        Self {
            allow,
            ..Self::default()
        }
    }
}

impl Policy {
    /// Reads a policy file and the bundles that it names, once.
    ///
    /// # Errors
    ///
    /// The file or a bundle cannot be read, or says something that is not accepted; every such problem at once.
    pub fn load(path: &Path) -> Result<Self, PolicyError> {
        sources::Sources::read(path).policy()
    }

    /// A policy file without bundles, for fuzzers.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Result<Self, Vec<PolicyProblem>> {
        let raw = file::Raw::parse(bytes).map_err(|problem| vec![problem])?;
        raw.check(|_| Err("no file".to_owned()))
    }

    /// Grows by one with every change that is taken into use; 1 for a policy that was made and not followed.
    #[must_use]
    pub fn generation(&self) -> u64 {
        self.generation.max(1)
    }

    /// What happens to calls that are not permitted.
    #[must_use]
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// Who may call at all. Empty: every verified peer.
    #[must_use]
    pub fn allow_list(&self) -> &AllowList {
        &self.allow
    }

    /// The rules per method. Without any, whoever may call at all may call everything.
    #[must_use]
    pub fn methods(&self) -> Option<&MethodRules> {
        self.methods.as_ref()
    }

    /// Whether anybody who was verified may not call everything.
    pub(crate) fn restricts(&self) -> bool {
        !self.allow.is_permissive() || self.methods.is_some()
    }

    /// Whether this peer may call `path`, `/package.Service/Method` or an HTTP path. The mode changes nothing here.
    ///
    /// # Errors
    ///
    /// Why not.
    pub fn check(&self, peer: Option<&PeerIdentity>, path: &str) -> Result<(), PolicyRefusal> {
        let judgement = self.judge(peer);
        self.permit(&judgement, path)
    }

    /// Works out what this policy says of a peer. `None` is one that nothing is known of.
    pub(crate) fn judge(&self, peer: Option<&PeerIdentity>) -> Judgement {
        let by_rule = match (&self.methods, peer) {
            (Some(rules), Some(peer)) => rules.judge(peer),
            (Some(rules), None) => vec![false; rules.iter().len()],
            (None, _) => Vec::new(),
        };
        Judgement {
            admitted: self.allow.check(peer),
            by_rule,
        }
    }

    /// Likewise for the peer of a UNIX socket that was admitted as such: a list that names no users says nothing of it.
    pub(crate) fn judge_local(&self, peer: &PeerIdentity) -> Judgement {
        let mut judgement = self.judge(Some(peer));
        if !self.allow.names_users() {
            judgement.admitted = Ok(());
        }
        judgement
    }

    /// Whether the peer of whom `judgement` is may call `path`.
    pub(crate) fn permit(&self, judgement: &Judgement, path: &str) -> Result<(), PolicyRefusal> {
        judgement.admitted?;
        let Some(rules) = &self.methods else {
            return Ok(());
        };
        let permitted = rules
            .index_of(path)
            .and_then(|index| judgement.by_rule.get(index));
        match permitted {
            Some(true) => Ok(()),
            Some(false) | None => Err(PolicyRefusal::MethodNotAllowed),
        }
    }

    /// Whether `refusal` is to be carried out. Reporting alone never lets a peer in that wasn't verified.
    pub(crate) fn enforces(&self, refusal: PolicyRefusal) -> bool {
        match self.mode {
            Mode::Enforce => true,
            Mode::Report => matches!(
                refusal,
                PolicyRefusal::Unauthenticated(_) | PolicyRefusal::Withdrawn
            ),
        }
    }

    /// What is allowed, for the log: who may call at all, or who may call `path`.
    pub(crate) fn allowed_for(&self, refusal: PolicyRefusal, path: &str) -> String {
        match (&self.methods, refusal) {
            (Some(rules), PolicyRefusal::MethodNotAllowed) => match rules.find(path) {
                Some(rule) => rule.to_string(),
                None => "no rule matches".to_owned(),
            },
            _ => self.allow.to_string(),
        }
    }

    /// Whether this policy permits everything to somebody new because a list of `self` was emptied or left out.
    pub(crate) fn emptied_since(&self, earlier: &Self) -> Option<&'static str> {
        let allow = (&earlier.allow, &self.allow);
        let opened = |says: fn(&AllowList) -> bool| says(allow.0) && !says(allow.1);
        if opened(|list| !list.is_permissive()) {
            Some("allow")
        } else if opened(AllowList::names_users) {
            // On a UNIX socket a list that names no users admits them all.
            Some("allow that name users")
        } else if self.methods.is_none() && earlier.methods.is_some() {
            Some("methods")
        } else {
            None
        }
    }

    pub(crate) fn with_generation(mut self, generation: u64) -> Self {
        self.generation = generation;
        self
    }

    /// Says loudly, once more, that nothing is refused.
    pub(crate) fn warn_of_report_mode(&self) {
        if self.mode == Mode::Report {
            tracing::warn!(
                audit = true,
                generation = self.generation(),
                "the policy only REPORTS: calls that it doesn't permit are counted and logged, and NOT refused"
            );
        }
    }
}

impl Judgement {
    /// Whether the peer may call at all.
    pub(crate) fn admitted(&self) -> Result<(), PolicyRefusal> {
        self.admitted
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Enforce => "enforce",
            Self::Report => "report",
        })
    }
}
