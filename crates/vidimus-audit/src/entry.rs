//! What one entry says.

use std::collections::BTreeMap;

use aws_lc_rs::digest;
use data_encoding::HEXLOWER;
use serde::{Deserialize, Serialize};

/// How the call that an entry tells of ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Outcome {
    /// The caller was not allowed to do it (`PERMISSION_DENIED` alone).
    Denied,
    /// It was refused or failed for any other reason.
    Error,
    /// It was done.
    Ok,
}

/// An entry before it has its place in the chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Draft {
    /// The caller's verified subject; empty on the local socket.
    pub actor_subject: String,
    /// The full method name (`/vidimus.node.v1.Node/IssueLeaf`), or a name of ours for what is
    /// not a call.
    pub rpc_method: String,
    /// SHA-256 of the request's deterministic encoding; absent for streams.
    pub request_digest_sha256: Option<[u8; 32]>,
    /// How it ended.
    pub outcome: Outcome,
    /// What else there is to say, by key (`serial_hex`, `effective_not_after`).
    pub details: BTreeMap<String, String>,
}

impl Draft {
    /// A draft without request digest and details.
    pub fn new(
        actor_subject: impl Into<String>,
        rpc_method: impl Into<String>,
        outcome: Outcome,
    ) -> Self {
        Self {
            actor_subject: actor_subject.into(),
            rpc_method: rpc_method.into(),
            request_digest_sha256: None,
            outcome,
            details: BTreeMap::new(),
        }
    }

    /// The same draft with the digest of `request`.
    #[must_use]
    pub fn with_request(mut self, request: &[u8]) -> Self {
        self.request_digest_sha256 = Some(sha256(request));
        self
    }

    /// The same draft with one detail more (or another value for a key that is there).
    #[must_use]
    pub fn with(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.details.insert(key.into(), value.into());
        self
    }
}

/// An entry as it stands in the log. The fields' order is the order in the JSON object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// Its number: 1 for the first, without gaps.
    pub seq: u64,
    /// When it was recorded: RFC 3339, UTC, milliseconds.
    pub ts: jiff::Timestamp,
    /// See [`Draft::actor_subject`].
    pub actor_subject: String,
    /// See [`Draft::rpc_method`].
    pub rpc_method: String,
    /// See [`Draft::request_digest_sha256`]; lower-case hex, or empty.
    #[serde(with = "optional_digest")]
    pub request_digest_sha256: Option<[u8; 32]>,
    /// See [`Draft::outcome`].
    pub outcome: Outcome,
    /// SHA-256 of the JSON object before this one, of nothing for the first; lower-case hex.
    #[serde(with = "hex_digest")]
    pub prev_entry_sha256: [u8; 32],
    /// See [`Draft::details`].
    pub details: BTreeMap<String, String>,
}

impl Entry {
    /// The UTC day of the entry, `YYYY-MM-DD`: the name of the daily file that it belongs to.
    #[must_use]
    pub fn utc_date(&self) -> String {
        self.ts.strftime("%Y-%m-%d").to_string()
    }

    /// Cuts every text longer than `max` bytes, and says so in its place.
    pub(crate) fn cut(&mut self, max: usize) {
        cut(&mut self.actor_subject, max);
        cut(&mut self.rpc_method, max);
        for value in self.details.values_mut() {
            cut(value, max);
        }
    }
}

/// SHA-256 of `bytes` in lower-case hex, as details give it.
#[must_use]
pub fn sha256_hex(bytes: &[u8]) -> String {
    HEXLOWER.encode(&sha256(bytes))
}

pub(crate) fn sha256(bytes: &[u8]) -> [u8; 32] {
    let mut hash = [0; 32];
    hash.copy_from_slice(digest::digest(&digest::SHA256, bytes).as_ref());
    hash
}

fn cut(text: &mut String, max: usize) {
    if text.len() > max {
        let length = text.len();
        text.truncate(floor_char_boundary(text, max));
        text.push_str(&format!("...[cut, {length} bytes]"));
    }
}

/// `str::floor_char_boundary`, which the oldest supported compiler doesn't have yet.
fn floor_char_boundary(text: &str, max: usize) -> usize {
    (0..=max)
        .rev()
        .find(|end| text.is_char_boundary(*end))
        .unwrap_or(0)
}

fn decode_digest(text: &str) -> Option<[u8; 32]> {
    HEXLOWER.decode(text.as_bytes()).ok()?.try_into().ok()
}

mod hex_digest {
    use super::{Deserialize, HEXLOWER, decode_digest};
    use serde::{Deserializer, Serializer, de::Error};
    use std::borrow::Cow;

    pub(super) fn serialize<S: Serializer>(hash: &[u8; 32], to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&HEXLOWER.encode(hash))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<[u8; 32], D::Error> {
        let text = Cow::<'de, str>::deserialize(from)?;
        decode_digest(&text).ok_or_else(|| Error::custom("not 64 lower-case hex digits"))
    }
}

mod optional_digest {
    use super::{Deserialize, decode_digest, hex_digest};
    use serde::{Deserializer, Serializer, de::Error};
    use std::borrow::Cow;

    #[expect(clippy::ref_option, reason = "the signature that serde's `with` calls")]
    pub(super) fn serialize<S: Serializer>(
        hash: &Option<[u8; 32]>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        match hash {
            Some(hash) => hex_digest::serialize(hash, to),
            None => to.serialize_str(""),
        }
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Option<[u8; 32]>, D::Error> {
        let text = Cow::<'de, str>::deserialize(from)?;
        if text.is_empty() {
            return Ok(None);
        }
        decode_digest(&text)
            .map(Some)
            .ok_or_else(|| Error::custom("neither empty nor 64 lower-case hex digits"))
    }
}
