//! What a watch tells about itself.

use std::time::SystemTime;

use serde::Serialize;

use crate::clock::{serialize_optional_time, serialize_time};
use crate::identity::Fingerprint;
use crate::material::{Material, RevocationCheck, RevocationListInfo, Root, Units};

/// A watch's state for status pages and metrics.
#[derive(Clone, Debug, Serialize)]
pub struct MaterialStatus {
    /// The generation in use.
    pub generation: u64,
    /// Changes taken into use since the start.
    pub reloads: u64,
    /// When the last change was taken into use.
    #[serde(serialize_with = "serialize_optional_time")]
    pub last_reload: Option<SystemTime>,
    /// Changes that failed their checks since the start, of both units.
    pub failures: u64,
    /// How often the files were looked at since the start.
    pub looks: u64,
    /// Whether the system reports changes of the files; if not, only the poll notices them. `None` without files.
    pub events: Option<bool>,
    /// Certificate and key.
    pub identity: UnitStatus,
    /// The roots.
    pub trust: UnitStatus,
    /// Who this process is: the leaf's subject.
    pub subject: String,
    /// The leaf's SHA-256.
    pub fingerprint: Fingerprint,
    /// The leaf's first instant.
    #[serde(serialize_with = "serialize_time")]
    pub leaf_not_before: SystemTime,
    /// The leaf's last instant.
    #[serde(serialize_with = "serialize_time")]
    pub leaf_not_after: SystemTime,
    /// The roots in use.
    pub roots: Vec<Root>,
    /// Which certificates are looked up in revocation lists.
    pub revocation: RevocationCheck,
    /// The revocation lists in use.
    pub revocation_lists: Vec<RevocationListInfo>,
}

/// The state of one unit of material.
#[derive(Clone, Debug, Default, Serialize)]
pub struct UnitStatus {
    /// Changes of this unit that failed their checks.
    pub failures: u64,
    /// Why the files as they are now are not in use; `None` if they are.
    pub last_error: Option<String>,
    /// What tells this error from the next one.
    #[serde(skip)]
    pub(super) reason: Option<String>,
}

impl MaterialStatus {
    pub(super) fn of(material: &Material) -> Self {
        let leaf = material.identity().names();
        Self {
            generation: material.generation(),
            reloads: 0,
            last_reload: None,
            failures: 0,
            looks: 0,
            events: None,
            identity: UnitStatus::default(),
            trust: UnitStatus::default(),
            subject: leaf.subject().to_owned(),
            fingerprint: leaf.fingerprint(),
            leaf_not_before: leaf.not_before(),
            leaf_not_after: leaf.not_after(),
            roots: material.trust().roots().to_vec(),
            revocation: material.trust().revocation_options().check(),
            revocation_lists: material.trust().revocation_lists(),
        }
    }

    pub(super) fn reloaded(&mut self, material: &Material, now: SystemTime) {
        *self = Self {
            reloads: self.reloads.saturating_add(1),
            last_reload: Some(now),
            failures: self.failures,
            looks: self.looks,
            events: self.events,
            identity: self.identity.clone(),
            trust: self.trust.clone(),
            ..Self::of(material)
        };
    }

    /// The units that failed when they were judged last.
    pub(super) fn failed(&self) -> Units {
        Units {
            identity: self.identity.last_error.is_some(),
            trust: self.trust.last_error.is_some(),
        }
    }

    /// Whether the leaf has expired: the process still serves, but its peers refuse it.
    #[must_use]
    pub fn is_expired_at(&self, now: SystemTime) -> bool {
        now > self.leaf_not_after
    }

    /// Why the files as they are now are not in use, of either unit.
    #[must_use]
    pub fn last_error(&self) -> Option<&str> {
        let either = self.identity.last_error.as_ref();
        either
            .or(self.trust.last_error.as_ref())
            .map(String::as_str)
    }
}
