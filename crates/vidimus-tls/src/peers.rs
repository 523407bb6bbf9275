//! Who is connected under which root, and what would become of them without it: what a person needs to see before an old
//! root is removed.
//!
//! Everything here is computed from the connections and the material of one moment. It names peers, so it belongs on an
//! admin socket and nowhere else.

use std::collections::BTreeMap;
use std::time::SystemTime;

use serde::Serialize;

use crate::clock::{serialize_optional_time, serialize_time};
use crate::identity::Fingerprint;
use crate::material::{Material, Root};
use crate::server::{ConnectionId, ConnectionInfo};

/// The peers of a server at one moment.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Peers {
    /// That moment.
    #[serde(serialize_with = "serialize_time")]
    pub at: SystemTime,
    /// The generation of the material in use; 0 without TLS.
    pub generation: u64,
    /// The roots in use, in the order of the file, with how many connections rest on each.
    pub roots: Vec<RootUse>,
    /// The connections by root and generation.
    pub summary: Vec<Summary>,
    /// The connections one by one.
    pub connections: Vec<ConnectionInfo>,
    /// What the removal of a root would do, where that was asked for.
    pub without: Option<Without>,
}

/// A root in use.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct RootUse {
    /// The root.
    #[serde(flatten)]
    pub root: Root,
    /// Connections whose chain leads to it at present.
    pub connections: usize,
}

/// Connections with the same root and generation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Summary {
    /// SHA-256 of the root that their chains lead to; `None` if they have none: no TLS, or pinned certificates.
    pub anchor: Option<Fingerprint>,
    /// The root's subject.
    pub subject: Option<String>,
    /// The generation of the material in their handshakes.
    pub generation: u64,
    /// Whether that is the generation in use.
    pub current: bool,
    /// How many they are.
    pub connections: usize,
    /// Those of them that have been asked to end.
    pub draining: usize,
    /// Calls in flight on them.
    pub calls: usize,
    /// Since when the oldest is there.
    #[serde(serialize_with = "serialize_time")]
    pub oldest_since: SystemTime,
    /// When the first certificate in one of their paths expires; `None` without certificates.
    #[serde(serialize_with = "serialize_optional_time")]
    pub next_expiry: Option<SystemTime>,
}

/// What the removal of a root would do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Without {
    /// SHA-256 of the root.
    pub root: Fingerprint,
    /// Whether it is in use at all.
    pub known: bool,
    /// Connections whose chain would not hold along any path to the roots that remain.
    pub needed_by: Vec<ConnectionId>,
}

/// Counts connections by root and generation, in the order of the roots' subjects.
#[must_use]
pub fn summarize(connections: &[ConnectionInfo], generation: u64) -> Vec<Summary> {
    let mut groups: BTreeMap<_, Summary> = BTreeMap::new();
    for connection in connections {
        let key = (
            connection.anchor_subject.as_deref(),
            connection.anchor,
            connection.generation,
        );
        let group = groups.entry(key).or_insert_with(|| Summary {
            anchor: connection.anchor,
            subject: connection.anchor_subject.clone(),
            generation: connection.generation,
            current: connection.generation == generation,
            connections: 0,
            draining: 0,
            calls: 0,
            oldest_since: connection.since,
            next_expiry: None,
        });
        group.connections = group.connections.saturating_add(1);
        group.draining = group
            .draining
            .saturating_add(usize::from(connection.draining));
        group.calls = group.calls.saturating_add(connection.streams);
        group.oldest_since = group.oldest_since.min(connection.since);
        group.next_expiry = match (group.next_expiry, connection.not_after) {
            (Some(one), Some(two)) => Some(one.min(two)),
            (one, two) => one.or(two),
        };
    }
    groups.into_values().collect()
}

impl Peers {
    pub(crate) fn new(
        at: SystemTime,
        material: Option<&Material>,
        connections: Vec<ConnectionInfo>,
        without: Option<Without>,
    ) -> Self {
        let generation = material.map_or(0, Material::generation);
        let roots = material.map(|material| material.trust().roots());
        let of_root = |root: &Root| RootUse {
            root: root.clone(),
            connections: connections
                .iter()
                .filter(|connection| connection.anchor == Some(root.fingerprint()))
                .count(),
        };
        Self {
            at,
            generation,
            roots: roots.unwrap_or_default().iter().map(of_root).collect(),
            summary: summarize(&connections, generation),
            connections,
            without,
        }
    }
}
