//! What a request may do inside the writer's transaction.

use std::fmt;
use std::path::Path;
use std::time::SystemTime;

use rusqlite::{Connection, Params};
use vidimus_audit::{AuditKey, Draft, Head, chain};

use super::{read, write_error};
use crate::certificate::detail;
use crate::error::StoreError;
use crate::store::Clock;

/// A request that changes something. It is applied within a transaction that other requests share,
/// under a savepoint of its own: when it fails, what it did is taken back, and nothing else.
pub(crate) trait Write: Send + 'static {
    /// What the caller gets once the transaction is committed.
    type Reply: Send + 'static;

    fn apply(self, tx: &mut Tx<'_>) -> Result<Self::Reply, StoreError>;
}

/// The end of the audit log, as the transaction sees it, and what is needed to make it longer.
pub(super) struct Chain {
    key: AuditKey,
    clock: Clock,
    head: Head,
}

impl Chain {
    pub(super) fn load(
        connection: &Connection,
        key: AuditKey,
        clock: Clock,
    ) -> Result<Self, StoreError> {
        let head = read::audit_head(connection)?;
        Ok(Self { key, clock, head })
    }

    /// Goes back to what the database holds, after a transaction was lost.
    pub(super) fn reload(&mut self, connection: &Connection) -> Result<(), StoreError> {
        self.head = read::audit_head(connection)?;
        Ok(())
    }

    pub(super) fn head(&self) -> Head {
        self.head
    }

    pub(super) fn rewind(&mut self, head: Head) {
        self.head = head;
    }
}

impl fmt::Debug for Chain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Chain")
            .field("head", &self.head)
            .finish_non_exhaustive()
    }
}

/// One request's view of the open transaction.
pub(crate) struct Tx<'a> {
    pub(super) connection: &'a Connection,
    pub(super) chain: &'a mut Chain,
    pub(super) path: &'a Path,
}

impl Tx<'_> {
    pub(super) fn now(&self) -> SystemTime {
        (self.chain.clock)()
    }

    /// Runs one statement; `what` is being written.
    pub(super) fn execute(
        &self,
        what: &'static str,
        sql: &str,
        params: impl Params,
    ) -> Result<usize, StoreError> {
        self.connection
            .prepare_cached(sql)
            .and_then(|mut statement| statement.execute(params))
            .map_err(|error| self.failed(what, error))
    }

    /// Appends to the audit log; returns the entry's number.
    pub(super) fn audit(&mut self, mut draft: Draft, now: SystemTime) -> Result<u64, StoreError> {
        // An entry without a certificate doesn't tell of one, whatever its author wrote.
        draft.details.remove(detail::CERTIFICATE_SHA256);
        self.append(draft, now)
    }

    /// Appends the entry of a certificate that is recorded under the same savepoint.
    pub(super) fn audit_issuance(
        &mut self,
        draft: Draft,
        now: SystemTime,
    ) -> Result<u64, StoreError> {
        self.append(draft, now)
    }

    fn append(&mut self, draft: Draft, now: SystemTime) -> Result<u64, StoreError> {
        let line = chain::append(&self.chain.head, draft, now, &self.chain.key);
        self.execute(
            "an audit entry",
            "INSERT INTO audit (seq, ts, json, signature) VALUES (?1, ?2, ?3, ?4)",
            (
                line.seq,
                line.ts.as_millisecond(),
                &line.json,
                &line.signature,
            ),
        )?;
        self.chain.head = line.head();
        Ok(line.seq)
    }

    pub(super) fn failed(&self, what: &'static str, error: rusqlite::Error) -> StoreError {
        write_error(what, self.path, error)
    }
}
