//! How entries are chained.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::time::SystemTime;

use data_encoding::{HEXLOWER, HEXLOWER_PERMISSIVE};

use crate::entry::{Draft, Entry, sha256};
use crate::seed::AuditKey;

/// The longest line, without its line feed, that is written or accepted: 64 KiB.
pub const MAX_LINE_BYTES: usize = 64 << 10;

/// Room for the space and the signature (64 bytes in unpadded base64) after the JSON object.
const SIGNATURE_BYTES: usize = 1 + 86;

/// A place in the chain: the number and the hash of an entry. Its text form is `<seq>:<hex hash>`.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Head {
    /// The entry's number; 0 before the first.
    pub seq: u64,
    /// SHA-256 of its JSON bytes; of nothing before the first.
    pub hash: [u8; 32],
}

impl Head {
    /// The place before the first entry.
    #[must_use]
    pub fn genesis() -> Self {
        Self {
            seq: 0,
            hash: sha256(b""),
        }
    }

    /// The place of the entry with these JSON bytes.
    #[must_use]
    pub fn of(seq: u64, json: &[u8]) -> Self {
        Self {
            seq,
            hash: sha256(json),
        }
    }
}

impl fmt::Display for Head {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.seq, HEXLOWER.encode(&self.hash))
    }
}

impl fmt::Debug for Head {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Head({self})")
    }
}

/// A text that is no [`Head`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("expected an entry's number, a colon and its SHA-256 in 64 hex digits")]
pub struct HeadError;

impl FromStr for Head {
    type Err = HeadError;

    fn from_str(text: &str) -> Result<Self, HeadError> {
        let (seq, hash) = text.trim().split_once(':').ok_or(HeadError)?;
        let hash = HEXLOWER_PERMISSIVE
            .decode(hash.as_bytes())
            .map_err(|_| HeadError)?;
        Ok(Self {
            seq: seq.parse().map_err(|_| HeadError)?,
            hash: hash.try_into().map_err(|_| HeadError)?,
        })
    }
}

/// An entry in its written form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// The entry's number.
    pub seq: u64,
    /// When it was recorded, as the entry says.
    pub ts: jiff::Timestamp,
    /// The JSON object.
    pub json: String,
    /// Its signature, in unpadded base64.
    pub signature: String,
    /// SHA-256 of the JSON object: the next entry's `prev_entry_sha256`.
    pub hash: [u8; 32],
}

impl Line {
    /// The line of the log, without a line feed.
    #[must_use]
    pub fn text(&self) -> String {
        format!("{} {}", self.json, self.signature)
    }

    /// The place of this entry in the chain.
    #[must_use]
    pub fn head(&self) -> Head {
        Head {
            seq: self.seq,
            hash: self.hash,
        }
    }
}

/// Gives `draft` the place after `head`, the time `now` (cut to milliseconds) and a signature.
///
/// There is always a line: one that would be longer than [`MAX_LINE_BYTES`] has its longest texts
/// cut, with a mark that says how long they were, so that nobody escapes the log by being
/// verbose.
#[must_use]
pub fn append(head: &Head, draft: Draft, now: SystemTime, key: &AuditKey) -> Line {
    let seq = head.seq.saturating_add(1);
    let ts = timestamp(now);
    let json = bounded_json(seq, ts, head.hash, draft);
    Line {
        seq,
        ts,
        signature: key.sign(json.as_bytes()),
        hash: sha256(json.as_bytes()),
        json,
    }
}

fn bounded_json(seq: u64, ts: jiff::Timestamp, prev: [u8; 32], draft: Draft) -> String {
    let whole = Entry {
        seq,
        ts,
        actor_subject: draft.actor_subject,
        rpc_method: draft.rpc_method,
        request_digest_sha256: draft.request_digest_sha256,
        outcome: draft.outcome,
        prev_entry_sha256: prev,
        details: draft.details,
    };
    let mut json = to_json(&whole);
    let mut max = MAX_LINE_BYTES / 2;
    while json.len() + SIGNATURE_BYTES > MAX_LINE_BYTES {
        let mut entry = whole.clone();
        if max < 64 {
            // So many details that even short ones don't fit: only their number is kept.
            let count = entry.details.len().to_string();
            entry.details = BTreeMap::from([("details_cut".to_owned(), count)]);
        }
        entry.cut(max);
        max /= 2;
        json = to_json(&entry);
    }
    json
}

fn to_json(entry: &Entry) -> String {
    serde_json::to_string(entry).expect("texts and numbers are always JSON")
}

/// Milliseconds are enough to read, and times outside the years that RFC 3339 can say are no times.
fn timestamp(now: SystemTime) -> jiff::Timestamp {
    let latest = jiff::Timestamp::MAX;
    let exact =
        jiff::Timestamp::try_from(now).unwrap_or_else(|_| match now < SystemTime::UNIX_EPOCH {
            true => jiff::Timestamp::UNIX_EPOCH,
            false => latest,
        });
    jiff::Timestamp::from_millisecond(exact.as_millisecond()).unwrap_or(exact)
}
