//! The questions, in SQL.

use std::time::{Duration, SystemTime};

use rusqlite::{Connection, OptionalExtension, Row};
use vidimus_audit::{AuditPublicKey, Head};
use vidimus_x509::serial::Serial;

use super::{read_error, schema};
use crate::certificate::{Cursor, IssuedCertificate, IssuedFilter, MAX_PAGE_SIZE, Page};
use crate::config::StoredConfig;
use crate::error::StoreError;
use crate::identity::{Identity, IdentityId, IdentityState};
use crate::reader::AuditLine;

/// The columns of an issued certificate, in the order that [`RawCertificate::read`] expects.
const CERTIFICATE: &str = "id, serial, der, subject, profile, requester, not_before, not_after, \
                           issued_at, ski_hex, names, audit_seq";

pub(crate) fn list_issued(
    connection: &Connection,
    filter: &IssuedFilter,
    page_size: u32,
    after: Option<Cursor>,
) -> Result<Page<IssuedCertificate>, StoreError> {
    let page_size = page_size.clamp(1, MAX_PAGE_SIZE);
    let after = after.map_or(0, |cursor| cursor.0);
    // One row more than asked for tells whether there is a next page. Both statements walk an
    // index from the cursor on: no row before it is looked at.
    let limit = page_size.saturating_add(1);
    let mut rows = match &filter.profile {
        None => certificates_after(connection, after, limit)?,
        Some(profile) => checked(collect(
            connection,
            &format!(
                "SELECT {CERTIFICATE} FROM certificate INDEXED BY certificate_by_profile
                 WHERE profile = ?3 AND id > ?1 ORDER BY id LIMIT ?2"
            ),
            (after, limit, profile),
        ))?,
    };
    let size = usize::try_from(page_size).unwrap_or(usize::MAX);
    let more = rows.len() > size;
    rows.truncate(size);
    let next = rows.last().filter(|_| more).map(|(cursor, _)| *cursor);
    let items = rows
        .into_iter()
        .map(|(_, certificate)| certificate)
        .collect();
    Ok(Page { items, next })
}

/// Certificates with a number greater than `after`, each with its place.
pub(crate) fn certificates_after(
    connection: &Connection,
    after: i64,
    limit: u32,
) -> Result<Vec<(Cursor, IssuedCertificate)>, StoreError> {
    checked(collect(
        connection,
        &format!("SELECT {CERTIFICATE} FROM certificate WHERE id > ?1 ORDER BY id LIMIT ?2"),
        (after, limit),
    ))
}

fn checked(
    rows: rusqlite::Result<Vec<RawCertificate>>,
) -> Result<Vec<(Cursor, IssuedCertificate)>, StoreError> {
    rows.map_err(read_error("certificates"))?
        .into_iter()
        .map(|row| Ok((Cursor(row.id), row.checked()?)))
        .collect()
}

fn collect(
    connection: &Connection,
    sql: &str,
    params: impl rusqlite::Params,
) -> rusqlite::Result<Vec<RawCertificate>> {
    connection
        .prepare_cached(sql)?
        .query_map(params, RawCertificate::read)?
        .collect()
}

pub(crate) fn find_issued(
    connection: &Connection,
    serial: Serial,
) -> Result<Option<IssuedCertificate>, StoreError> {
    connection
        .prepare_cached(&format!(
            "SELECT {CERTIFICATE} FROM certificate WHERE serial = ?1"
        ))
        .and_then(|mut statement| {
            statement
                .query_row([serial.as_bytes()], RawCertificate::read)
                .optional()
        })
        .map_err(read_error("a certificate"))?
        .map(RawCertificate::checked)
        .transpose()
}

pub(crate) fn issued_count(connection: &Connection) -> Result<u64, StoreError> {
    // Numbers are given without gaps and rows are never deleted: the greatest number is the count,
    // where count(*) would walk an index of millions.
    connection
        .query_row("SELECT coalesce(max(id), 0) FROM certificate", [], |row| {
            row.get(0)
        })
        .map_err(read_error("the number of certificates"))
}

pub(crate) fn config(connection: &Connection) -> Result<Option<StoredConfig>, StoreError> {
    connection
        .query_row(
            "SELECT generation, digest, yaml, stored_at FROM config ORDER BY generation DESC LIMIT 1",
            [],
            |row| {
                Ok(StoredConfig {
                    generation: row.get(0)?,
                    digest: row.get(1)?,
                    yaml: row.get(2)?,
                    stored_at: from_millis(row.get(3)?),
                })
            },
        )
        .optional()
        .map_err(read_error("the config"))
}

pub(crate) fn identities(connection: &Connection) -> Result<Vec<Identity>, StoreError> {
    let rows: Vec<(String, Identity)> = connection
        .prepare_cached(
            "SELECT id, state, key_file, csr_der, chain_pem, created_at, activated_at
             FROM identity ORDER BY id",
        )
        .and_then(|mut statement| statement.query_map([], identity)?.collect())
        .map_err(read_error("identities"))?;
    rows.into_iter()
        .map(|(state, identity)| {
            let state = match state.as_str() {
                "awaiting" => IdentityState::Awaiting,
                "current" => IdentityState::Current,
                "past" => IdentityState::Past,
                other => {
                    return Err(corrupt(format!(
                        "identity {}: state {other:?}",
                        identity.id
                    )));
                }
            };
            Ok(Identity { state, ..identity })
        })
        .collect()
}

fn identity(row: &Row<'_>) -> rusqlite::Result<(String, Identity)> {
    let identity = Identity {
        id: IdentityId(row.get(0)?),
        state: IdentityState::Past,
        key_file: row.get(2)?,
        csr_der: row.get(3)?,
        chain_pem: row.get(4)?,
        created_at: from_millis(row.get(5)?),
        activated_at: row.get::<_, Option<i64>>(6)?.map(from_millis),
    };
    Ok((row.get(1)?, identity))
}

pub(crate) fn meta(connection: &Connection, name: &str) -> Result<Option<Vec<u8>>, StoreError> {
    connection
        .query_row("SELECT value FROM meta WHERE name = ?1", [name], |row| {
            row.get(0)
        })
        .optional()
        .map_err(read_error("a value"))
}

pub(crate) fn audit_public_key(connection: &Connection) -> Result<AuditPublicKey, StoreError> {
    meta(connection, schema::AUDIT_PUBLIC_KEY)?
        .and_then(|key| String::from_utf8(key).ok()?.parse().ok())
        .ok_or_else(|| corrupt("there is no audit key"))
}

pub(crate) fn audit_lines(
    connection: &Connection,
    from_seq: u64,
    limit: u32,
) -> Result<Vec<AuditLine>, StoreError> {
    let from_seq = i64::try_from(from_seq).unwrap_or(i64::MAX);
    let rows: Vec<(u64, i64, String, String)> = connection
        .prepare_cached(
            "SELECT seq, ts, json, signature FROM audit WHERE seq >= ?1 ORDER BY seq LIMIT ?2",
        )
        .and_then(|mut statement| {
            statement
                .query_map((from_seq, limit), |row| {
                    Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?))
                })?
                .collect()
        })
        .map_err(read_error("the audit log"))?;
    rows.into_iter()
        .map(|(seq, ts, json, signature)| {
            let ts = jiff::Timestamp::from_millisecond(ts)
                .map_err(|_| corrupt(format!("audit entry {seq}: time {ts}")))?;
            Ok(AuditLine {
                seq,
                ts,
                json,
                signature,
            })
        })
        .collect()
}

pub(crate) fn audit_head(connection: &Connection) -> Result<Head, StoreError> {
    let last: Option<(u64, String)> = connection
        .prepare_cached("SELECT seq, json FROM audit ORDER BY seq DESC LIMIT 1")
        .and_then(|mut statement| {
            statement
                .query_row([], |row| Ok((row.get(0)?, row.get(1)?)))
                .optional()
        })
        .map_err(read_error("the end of the audit log"))?;
    Ok(last.map_or_else(Head::genesis, |(seq, json)| Head::of(seq, json.as_bytes())))
}

/// A certificate's columns, before they are looked into.
struct RawCertificate {
    id: i64,
    serial: Vec<u8>,
    der: Vec<u8>,
    subject: String,
    profile: String,
    requester: String,
    not_before: i64,
    not_after: i64,
    issued_at: i64,
    ski_hex: String,
    names: String,
    audit_seq: u64,
}

impl RawCertificate {
    fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            id: row.get(0)?,
            serial: row.get(1)?,
            der: row.get(2)?,
            subject: row.get(3)?,
            profile: row.get(4)?,
            requester: row.get(5)?,
            not_before: row.get(6)?,
            not_after: row.get(7)?,
            issued_at: row.get(8)?,
            ski_hex: row.get(9)?,
            names: row.get(10)?,
            audit_seq: row.get(11)?,
        })
    }

    fn checked(self) -> Result<IssuedCertificate, StoreError> {
        let wrong = |what: &str| corrupt(format!("certificate row {}: {what}", self.id));
        let serial: [u8; 16] = self
            .serial
            .as_slice()
            .try_into()
            .map_err(|_| wrong("serial number"))?;
        Ok(IssuedCertificate {
            serial: Serial::from_bytes(serial).map_err(|_| wrong("serial number"))?,
            names: serde_json::from_str(&self.names).map_err(|_| wrong("names"))?,
            der: self.der,
            subject: self.subject,
            profile: self.profile,
            requester: self.requester,
            not_before: from_millis(self.not_before),
            not_after: from_millis(self.not_after),
            issued_at: from_millis(self.issued_at),
            ski_hex: self.ski_hex,
            audit_seq: self.audit_seq,
        })
    }
}

/// Milliseconds since 1970, rounded down; times that don't fit become the nearest that does.
pub(super) fn to_millis(time: SystemTime) -> i64 {
    match time.duration_since(SystemTime::UNIX_EPOCH) {
        Ok(since) => i64::try_from(since.as_millis()).unwrap_or(i64::MAX),
        Err(before) => i64::try_from(before.duration().as_nanos().div_ceil(1_000_000))
            .map_or(i64::MIN, |millis| -millis),
    }
}

pub(super) fn from_millis(millis: i64) -> SystemTime {
    let distance = Duration::from_millis(millis.unsigned_abs());
    let time = if millis < 0 {
        SystemTime::UNIX_EPOCH.checked_sub(distance)
    } else {
        SystemTime::UNIX_EPOCH.checked_add(distance)
    };
    time.unwrap_or(SystemTime::UNIX_EPOCH)
}

fn corrupt(what: impl Into<String>) -> StoreError {
    StoreError::Corrupt { what: what.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// C13. Times before 1970 and between milliseconds are rounded down, never up.
    #[test]
    fn times_keep_their_milliseconds() {
        let since = |nanos| SystemTime::UNIX_EPOCH + Duration::from_nanos(nanos);
        let before = |nanos| SystemTime::UNIX_EPOCH - Duration::from_nanos(nanos);
        for (time, millis) in [
            (since(0), 0),
            (since(1_999_999), 1),
            (since(2_000_000), 2),
            (before(1), -1),
            (before(1_000_000), -1),
            (before(1_000_001), -2),
        ] {
            assert_eq!(to_millis(time), millis);
            assert_eq!(to_millis(from_millis(millis)), millis);
        }
    }
}
