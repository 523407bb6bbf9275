//! The suite that every back end passes, on SQLite.

use tempfile::TempDir;
use vidimus_audit::AuditKey;
use vidimus_store::suite::Database;
use vidimus_store::{OpenError, Store};

/// A store in a folder of its own.
struct Sqlite(TempDir);

impl Sqlite {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }
}

impl Database for Sqlite {
    fn open(&self, key: AuditKey) -> Result<Store, OpenError> {
        Store::open(self.0.path().join("vidimus.db"), key)
    }
}

vidimus_store::store_suite!(Sqlite::new());
