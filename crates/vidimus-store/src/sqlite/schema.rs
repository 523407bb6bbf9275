//! The tables, and how an older form becomes the newest.

use std::path::Path;

use rusqlite::{Connection, OptionalExtension, TransactionBehavior};
use vidimus_audit::AuditPublicKey;

use super::read_error;
use crate::error::{Cause, OpenError};

/// "VIDM" in ASCII: `file` and we tell our databases from others by it.
const APPLICATION_ID: i64 = 0x5649_444d;

/// The name under which the audit log's public key is kept.
pub(super) const AUDIT_PUBLIC_KEY: &str = "vidimus.audit_public_key";

/// One entry takes the tables from the version that is its index to the next. Entries are only
/// ever added.
const MIGRATIONS: &[&str] = &[include_str!("schema/1.sql")];

/// Refuses what is not ours and what a newer program wrote; touches nothing.
pub(super) fn check(connection: &Connection, path: &Path) -> Result<i64, OpenError> {
    let database = |source| OpenError::Database {
        path: path.to_owned(),
        source: Cause::new(source),
    };
    let pragma = |name: &str| {
        connection.query_row(&format!("PRAGMA {name}"), [], |row| row.get::<_, i64>(0))
    };
    let application = match pragma("application_id") {
        Ok(id) => id,
        Err(error) if error.sqlite_error_code() == Some(rusqlite::ErrorCode::NotADatabase) => {
            return Err(OpenError::NotAStore {
                path: path.to_owned(),
            });
        }
        Err(error) => return Err(database(error)),
    };
    let tables: i64 = connection
        .query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))
        .map_err(database)?;
    if application != APPLICATION_ID && (application != 0 || tables != 0) {
        return Err(OpenError::NotAStore {
            path: path.to_owned(),
        });
    }
    let found = pragma("user_version").map_err(database)?;
    let supported = newest();
    if found > supported {
        return Err(OpenError::NewerSchema {
            path: path.to_owned(),
            found,
            supported,
        });
    }
    Ok(found)
}

/// Brings the tables to the newest form, one transaction a step.
pub(super) fn migrate(connection: &Connection, path: &Path) -> Result<(), OpenError> {
    let found = check(connection, path)?;
    for (version, step) in (1..)
        .zip(MIGRATIONS)
        .skip(usize::try_from(found).unwrap_or(0))
    {
        apply(connection, version, step).map_err(|source| OpenError::Migrate {
            path: path.to_owned(),
            from: found,
            to: newest(),
            source: Cause::new(source),
        })?;
    }
    Ok(())
}

fn apply(connection: &Connection, version: i64, step: &str) -> rusqlite::Result<()> {
    let transaction =
        rusqlite::Transaction::new_unchecked(connection, TransactionBehavior::Immediate)?;
    transaction.execute_batch(step)?;
    transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
    transaction.pragma_update(None, "user_version", version)?;
    transaction.commit()
}

/// A store belongs to one audit key from its first opening on: a second one would make a log that
/// verifies with neither.
pub(super) fn bind_audit_key(
    connection: &Connection,
    path: &Path,
    given: &AuditPublicKey,
) -> Result<(), OpenError> {
    let given = given.to_string();
    let stored: Option<Vec<u8>> = connection
        .query_row(
            "SELECT value FROM meta WHERE name = ?1",
            [AUDIT_PUBLIC_KEY],
            |row| row.get(0),
        )
        .optional()
        .map_err(read_error("the audit key"))?;
    match stored {
        Some(stored) if stored == given.as_bytes() => Ok(()),
        Some(stored) => Err(OpenError::AuditKey {
            path: path.to_owned(),
            stored: String::from_utf8_lossy(&stored).into_owned(),
            given,
        }),
        None => {
            connection
                .execute(
                    "INSERT INTO meta (name, value) VALUES (?1, ?2)",
                    (AUDIT_PUBLIC_KEY, given.as_bytes()),
                )
                .map_err(|source| OpenError::Database {
                    path: path.to_owned(),
                    source: Cause::new(source),
                })?;
            Ok(())
        }
    }
}

fn newest() -> i64 {
    i64::try_from(MIGRATIONS.len()).expect("there are few migrations")
}
