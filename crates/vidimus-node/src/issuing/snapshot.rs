//! What a request is decided by: one immutable view of config and identity, replaced as a whole.

use std::{collections::HashMap, sync::Arc};

use vidimus_x509::profile::Profile;

use super::IssueError;
use crate::{
    config::{Config, Role},
    identity::CaIdentity,
};

/// Config and identity as they were at one moment.
#[derive(Debug, Clone)]
pub struct Snapshot {
    config: Arc<Config>,
    config_generation: u64,
    identity: Option<Arc<CaIdentity>>,
    by_name: Arc<HashMap<String, usize>>,
}

/// What kind of certificate is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A certificate that cannot sign others.
    Leaf,
    /// A CA's.
    Subordinate,
}

impl Kind {
    fn matches(self, profile: &Profile) -> bool {
        profile.basic_constraints.is_ca == (self == Self::Subordinate)
    }
}

impl Snapshot {
    pub(crate) fn new(
        config: Arc<Config>,
        config_generation: u64,
        identity: Option<Arc<CaIdentity>>,
    ) -> Self {
        let names = config.pki.profiles.iter().enumerate();
        let by_name = names
            .map(|(index, profile)| (profile.name.clone(), index))
            .collect();
        Self {
            config,
            config_generation,
            identity,
            by_name: Arc::new(by_name),
        }
    }

    /// The same config over another identity.
    pub(crate) fn with_identity(&self, identity: Arc<CaIdentity>) -> Self {
        Self {
            identity: Some(identity),
            ..self.clone()
        }
    }

    /// The machine config in force.
    #[must_use]
    pub fn config(&self) -> &Arc<Config> {
        &self.config
    }

    /// Counts the configs that were stored; 1 for the first.
    #[must_use]
    pub fn config_generation(&self) -> u64 {
        self.config_generation
    }

    /// What signs; `None` while this node waits for its first certificate.
    #[must_use]
    pub fn identity(&self) -> Option<&Arc<CaIdentity>> {
        self.identity.as_ref()
    }

    /// The profile of this name, if it makes what is asked for.
    pub(crate) fn profile(&self, name: &str, kind: Kind) -> Result<&Profile, IssueError> {
        let profile = self
            .by_name
            .get(name)
            .and_then(|index| self.config.pki.profiles.get(*index));
        let Some(profile) = profile else {
            return Err(IssueError::UnknownProfile {
                found: name.chars().take(64).collect(),
                accepted: self.names_of(kind),
            });
        };
        if kind.matches(profile) {
            return Ok(profile);
        }
        Err(IssueError::WrongKind {
            profile: profile.name.clone(),
            found: match kind {
                Kind::Leaf => "a CA",
                Kind::Subordinate => "a leaf",
            },
            accepted: self.names_of(kind),
        })
    }

    /// The irreversible gate of a root (before anything touches its key).
    pub(crate) fn require_leaves(&self) -> Result<(), IssueError> {
        if self.config.role == Role::Root && !self.config.pki.acknowledges_root_leaves() {
            return Err(IssueError::RootLeaves);
        }
        Ok(())
    }

    pub(crate) fn require_identity(&self) -> Result<&Arc<CaIdentity>, IssueError> {
        self.identity.as_ref().ok_or(IssueError::NoIdentity)
    }

    fn names_of(&self, kind: Kind) -> Vec<String> {
        let profiles = self.config.pki.profiles.iter();
        profiles
            .filter(|profile| kind.matches(profile))
            .map(|profile| profile.name.clone())
            .collect()
    }
}
