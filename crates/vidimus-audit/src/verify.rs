//! How a log is checked, offline, with its public key alone.

#![warn(clippy::indexing_slicing, clippy::arithmetic_side_effects)]

use std::fmt;
use std::io::{self, BufRead, Read};

use data_encoding::BASE64_NOPAD;

use crate::chain::{Head, MAX_LINE_BYTES};
use crate::entry::Entry;
use crate::seed::AuditPublicKey;

/// What is wrong with the first bad entry.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Reason {
    /// The signature is not the key's over this entry.
    #[error("the signature is not this key's over the entry")]
    BadSignature,
    /// The entry does not follow the one before it.
    #[error("it does not carry the hash of the entry before it")]
    BrokenLink,
    /// Entries are missing, repeated or in another order.
    #[error(
        "the entry found here is number {found}: entries are missing, repeated or out of order"
    )]
    Gap {
        /// The number that the entry has.
        found: u64,
    },
    /// The log has an entry of the expected number, but it is another one.
    #[error("its hash is not the expected one: the log was written anew")]
    OtherHead,
    /// The line is longer than any that is written.
    #[error("the line is longer than {MAX_LINE_BYTES} bytes")]
    TooLong,
    /// The last line of a file is incomplete.
    #[error("the line is incomplete: writing it was interrupted, or its end was cut off")]
    Torn,
    /// The log ends before the expected entry.
    #[error("the log ends at entry {found}: its end is missing")]
    Truncated {
        /// The number of the last entry.
        found: u64,
    },
    /// The line is no entry with a signature.
    #[error("the line is not an entry with a signature ({what})")]
    Unparsable {
        /// What could not be read.
        what: String,
    },
}

/// Where a line was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Position {
    /// The file, as the caller names it.
    pub file: String,
    /// The line, from 1.
    pub line: u64,
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.line)
    }
}

/// The first bad entry. A broken log is a result, not a failure of the check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Broken {
    /// Where it was found, if the lines came from files.
    pub position: Option<Position>,
    /// The number of the entry that should be here.
    pub seq: u64,
    /// What is wrong.
    pub reason: Reason,
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(position) = &self.position {
            write!(f, "{position}: ")?;
        }
        write!(f, "entry {}: {}", self.seq, self.reason)
    }
}

impl std::error::Error for Broken {}

/// Why [`Verifier::read`] stopped before the end.
#[derive(Debug, thiserror::Error)]
pub enum ReadLogError {
    /// The log is broken.
    #[error(transparent)]
    Broken(#[from] Broken),
    /// It could not be read.
    #[error("read {file}")]
    Read {
        /// The file, as the caller names it.
        file: String,
        /// What the reader said.
        #[source]
        source: io::Error,
    },
}

/// A log that was found whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verified {
    /// How many entries were checked.
    pub entries: u64,
    /// The place before the first of them.
    pub start: Head,
    /// The place of the last. Keep it elsewhere: given to [`Verifier::expect`] later, it shows
    /// whether the log still holds everything up to here.
    pub head: Head,
}

/// Checks lines one after the other, and stops at the first bad one.
#[derive(Debug)]
pub struct Verifier {
    key: AuditPublicKey,
    start: Option<Head>,
    head: Head,
    entries: u64,
    expected: Option<Head>,
    position: Option<Position>,
    broken: Option<Broken>,
}

impl Verifier {
    /// Checks a log from its first entry on.
    #[must_use]
    pub fn new(key: AuditPublicKey) -> Self {
        Self::starting_at(key, Head::genesis())
    }

    /// Checks the entries after `start`.
    #[must_use]
    pub fn starting_at(key: AuditPublicKey, start: Head) -> Self {
        Self {
            start: Some(start),
            head: start,
            ..Self::excerpt(key)
        }
    }

    /// Checks a part of a log that may start anywhere (one daily file): the first line's own word
    /// for what is before it is taken, and [`Verified::start`] says what that was.
    #[must_use]
    pub fn excerpt(key: AuditPublicKey) -> Self {
        Self {
            key,
            start: None,
            head: Head::genesis(),
            entries: 0,
            expected: None,
            position: None,
            broken: None,
        }
    }

    /// Demands that the log contains the entry `expected` (a place kept elsewhere): a log that ends
    /// before it was cut off, one with another entry of that number was written anew.
    #[must_use]
    pub fn expect(mut self, expected: Head) -> Self {
        self.expected = Some(expected);
        self
    }

    /// Says that the lines to come are those of `file`, from its first line on; only for
    /// [`Broken::position`].
    pub fn in_file(&mut self, file: impl Into<String>) {
        self.position = Some(Position {
            file: file.into(),
            line: 0,
        });
    }

    /// Checks the next line, given without its line feed.
    ///
    /// # Errors
    /// [`Broken`]: the line is the first bad one. So is every later call's answer.
    pub fn line(&mut self, line: &str) -> Result<Entry, Broken> {
        self.raw_line(line.as_bytes())
    }

    /// [`Verifier::line`] for a line that may not even be text.
    ///
    /// # Errors
    /// As [`Verifier::line`].
    pub fn raw_line(&mut self, line: &[u8]) -> Result<Entry, Broken> {
        if let Some(broken) = &self.broken {
            return Err(broken.clone());
        }
        if let Some(position) = &mut self.position {
            position.line = position.line.saturating_add(1);
        }
        self.check(line).map_err(|reason| self.stop(reason))
    }

    /// Checks all lines of `reader`, which the caller calls `file`.
    ///
    /// # Errors
    /// [`ReadLogError`].
    pub fn read(&mut self, file: &str, mut reader: impl BufRead) -> Result<(), ReadLogError> {
        self.in_file(file);
        let mut line = Vec::new();
        loop {
            line.clear();
            // Bounded: a file that is no log may be one line of any length.
            let limit = u64::try_from(MAX_LINE_BYTES)
                .unwrap_or(u64::MAX)
                .saturating_add(1);
            let read = reader.by_ref().take(limit).read_until(b'\n', &mut line);
            let length = read.map_err(|source| ReadLogError::Read {
                file: file.to_owned(),
                source,
            })?;
            if length == 0 {
                return Ok(());
            }
            let complete = line.pop_if(|last| *last == b'\n').is_some();
            let torn = !complete && line.len() <= MAX_LINE_BYTES;
            if let Err(mut broken) = self.raw_line(&line) {
                let unreadable = matches!(
                    broken.reason,
                    Reason::BadSignature | Reason::Unparsable { .. }
                );
                if torn && unreadable {
                    broken.reason = Reason::Torn;
                    self.broken = Some(broken.clone());
                }
                return Err(broken.into());
            }
        }
    }

    /// The place reached so far.
    #[must_use]
    pub fn head(&self) -> Head {
        self.head
    }

    /// Ends the check.
    ///
    /// # Errors
    /// The [`Broken`] entry that was met, or that the log ends before the expected one.
    pub fn finish(mut self) -> Result<Verified, Broken> {
        if let Some(broken) = self.broken {
            return Err(broken);
        }
        if let Some(expected) = self.expected {
            if self.head.seq < expected.seq {
                let found = self.head.seq;
                return Err(Broken {
                    position: self.position.take(),
                    seq: found.saturating_add(1),
                    reason: Reason::Truncated { found },
                });
            }
            // An expected place before the first line is answered by that line's link alone.
            if self
                .start
                .is_some_and(|start| start.seq == expected.seq && start != expected)
            {
                return Err(Broken {
                    position: None,
                    seq: expected.seq,
                    reason: Reason::OtherHead,
                });
            }
        }
        Ok(Verified {
            entries: self.entries,
            start: self.start.unwrap_or_else(Head::genesis),
            head: self.head,
        })
    }

    fn stop(&mut self, reason: Reason) -> Broken {
        let broken = Broken {
            position: self.position.clone(),
            seq: self.head.seq.saturating_add(1),
            reason,
        };
        self.broken = Some(broken.clone());
        broken
    }

    fn check(&mut self, line: &[u8]) -> Result<Entry, Reason> {
        if line.len() > MAX_LINE_BYTES {
            return Err(Reason::TooLong);
        }
        // The object may hold spaces, the signature can't.
        let mut parts = line.rsplitn(2, |byte| *byte == b' ');
        let (Some(signature), Some(json)) = (parts.next(), parts.next()) else {
            return Err(unparsable("there is no signature"));
        };
        let signature = BASE64_NOPAD
            .decode(signature)
            .map_err(|_| unparsable("the signature is not unpadded base64"))?;
        if !self.key.verifies(json, &signature) {
            return Err(Reason::BadSignature);
        }
        let entry: Entry =
            serde_json::from_slice(json).map_err(|error| unparsable(error.to_string()))?;
        self.follow(&entry, json)?;
        Ok(entry)
    }

    fn follow(&mut self, entry: &Entry, json: &[u8]) -> Result<(), Reason> {
        let before = *self.start.get_or_insert_with(|| Head {
            seq: entry.seq.saturating_sub(1),
            hash: entry.prev_entry_sha256,
        });
        if self.entries == 0 {
            self.head = before;
        }
        if Some(entry.seq) != self.head.seq.checked_add(1) {
            return Err(Reason::Gap { found: entry.seq });
        }
        if entry.prev_entry_sha256 != self.head.hash {
            return Err(Reason::BrokenLink);
        }
        let head = Head::of(entry.seq, json);
        if self
            .expected
            .is_some_and(|expected| expected.seq == head.seq && expected != head)
        {
            return Err(Reason::OtherHead);
        }
        self.head = head;
        self.entries = self.entries.saturating_add(1);
        Ok(())
    }
}

fn unparsable(what: impl Into<String>) -> Reason {
    Reason::Unparsable { what: what.into() }
}
