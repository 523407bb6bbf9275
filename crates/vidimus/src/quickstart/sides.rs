//! What the two ends of the channel say about themselves, in one form.

use std::collections::BTreeSet;

use anyhow::Context as _;
use serde_json::Value;
use vidimus_provider::manager::Manager;

use super::child::Program;

/// The state of both ends at one moment.
#[derive(Clone, Debug)]
pub(crate) struct Sides {
    pub(crate) provider: End,
    pub(crate) manager: End,
}

/// One end.
#[derive(Clone, Debug, Default)]
pub(crate) struct End {
    pub(crate) posture: String,
    pub(crate) reloads: u64,
    /// Its own certificate.
    pub(crate) fingerprint: String,
    pub(crate) expires: String,
    /// The roots that it trusts.
    pub(crate) roots: BTreeSet<String>,
    pub(crate) connections: Vec<Connection>,
    /// Calls that reached it, and those that it refused; counted by servers.
    pub(crate) calls: u64,
    pub(crate) calls_refused: u64,
}

/// One connection, as one end sees it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Connection {
    /// The generation of this end's material at the handshake.
    pub(crate) generation: u64,
    /// The other end.
    pub(crate) peer: String,
    pub(crate) peer_fingerprint: String,
    /// The root that the other end was verified under.
    pub(crate) anchor: String,
}

impl Sides {
    pub(crate) async fn look(provider: &Program, manager: &Manager) -> anyhow::Result<Self> {
        let page = provider.page("/tls").await?;
        let status = serde_json::to_value(manager.status()).context("read the manager's status")?;
        Ok(Self {
            provider: End::of_server(&page, "counters"),
            manager: End::of(&status, &status["channel"]["connections"], "server"),
        })
    }
}

impl End {
    /// A server's page, with its counters under this name.
    pub(crate) fn of_server(page: &Value, counters: &str) -> Self {
        let count = |name| page[counters][name].as_u64().unwrap_or_default();
        Self {
            calls: count("calls"),
            calls_refused: count("refused_by_policy"),
            ..Self::of(page, &page["connections"], "peer")
        }
    }

    fn of(page: &Value, connections: &Value, peer: &str) -> Self {
        let material = &page["material"];
        let each = |list: &Value| list.as_array().cloned().unwrap_or_default();
        let connection = |value: &Value| Connection {
            generation: value["generation"].as_u64().unwrap_or_default(),
            peer: name_of(&value[peer]),
            peer_fingerprint: text(&value[peer]["fingerprint"]),
            anchor: text(&value["anchor"]),
        };
        Self {
            posture: text(&page["posture"]),
            reloads: material["reloads"].as_u64().unwrap_or_default(),
            fingerprint: text(&material["fingerprint"]),
            expires: text(&material["leaf_not_after"]),
            roots: each(&material["roots"])
                .iter()
                .map(|root| text(&root["fingerprint"]))
                .collect(),
            calls: 0,
            calls_refused: 0,
            connections: each(connections).iter().map(connection).collect(),
        }
    }

    /// Whether there are connections and all are to this certificate.
    pub(crate) fn all_to(&self, fingerprint: &str) -> bool {
        self.all(|connection| connection.peer_fingerprint == fingerprint)
    }

    /// Whether there are connections and all rest on this root.
    pub(crate) fn all_under(&self, anchor: &str) -> bool {
        self.all(|connection| connection.anchor == anchor)
    }

    fn all(&self, fits: impl Fn(&Connection) -> bool) -> bool {
        !self.connections.is_empty() && self.connections.iter().all(fits)
    }

    /// Who is at the other end, each once, by the first label of its name.
    pub(crate) fn peers(&self) -> String {
        let label = |connection: &Connection| {
            let name = connection.peer.split('.').next().unwrap_or_default();
            name.to_owned()
        };
        let names: BTreeSet<String> = self.connections.iter().map(label).collect();
        if names.is_empty() {
            "nobody".to_owned()
        } else {
            names.into_iter().collect::<Vec<_>>().join(", ")
        }
    }
}

fn name_of(peer: &Value) -> String {
    let first = peer["dns_names"].as_array().and_then(|names| names.first());
    text(first.unwrap_or_else(|| &peer["subject"]))
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
