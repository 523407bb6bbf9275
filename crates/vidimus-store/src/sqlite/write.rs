//! The requests that change something, in SQL.

use rusqlite::{OptionalExtension, ffi};
use vidimus_audit::entry::sha256_hex;
use vidimus_audit::{Draft, Outcome};

use super::read::{from_millis, to_millis};
use super::read_error;
use super::transaction::{Tx, Write};
use crate::certificate::{Issuance, IssuedCertificate, detail};
use crate::config::NewConfig;
use crate::error::StoreError;
use crate::identity::{Activation, IdentityId, NewIdentity};
use crate::store::NewMeta;

impl Write for Issuance {
    type Reply = IssuedCertificate;

    fn apply(self, tx: &mut Tx<'_>) -> Result<IssuedCertificate, StoreError> {
        let now = tx.now();
        let serial = self.signed.serial();
        let mut audit = self
            .audit
            .with(detail::SERIAL_HEX, serial.to_string())
            .with(detail::CERTIFICATE_SHA256, sha256_hex(self.signed.der()))
            .with(detail::PROFILE, self.profile.clone());
        audit.outcome = Outcome::Ok;
        let audit_seq = tx.audit_issuance(audit, now)?;
        let issued = IssuedCertificate {
            serial,
            der: self.signed.der().to_owned(),
            subject: self.signed.subject_text().to_owned(),
            profile: self.profile,
            requester: self.requester,
            not_before: self.signed.not_before(),
            not_after: self.signed.not_after(),
            issued_at: from_millis(to_millis(now)),
            ski_hex: self.signed.ski_hex(),
            names: self.signed.names().to_vec(),
            audit_seq,
        };
        insert_certificate(tx, &issued)?;
        Ok(issued)
    }
}

fn insert_certificate(tx: &Tx<'_>, issued: &IssuedCertificate) -> Result<(), StoreError> {
    let names = serde_json::to_string(&issued.names).expect("a list of texts is always JSON");
    let inserted = tx
        .connection
        .prepare_cached(
            "INSERT INTO certificate (serial, audit_seq, issued_at, not_before, not_after,
                 profile, requester, subject, ski_hex, names, der)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
        )
        .and_then(|mut statement| {
            statement.execute((
                issued.serial.as_bytes(),
                issued.audit_seq,
                to_millis(issued.issued_at),
                to_millis(issued.not_before),
                to_millis(issued.not_after),
                &issued.profile,
                &issued.requester,
                &issued.subject,
                &issued.ski_hex,
                &names,
                &issued.der,
            ))
        });
    inserted.map(|_one| ()).map_err(|error| {
        let taken = error
            .sqlite_error()
            .is_some_and(|cause| cause.extended_code == ffi::SQLITE_CONSTRAINT_UNIQUE);
        if taken {
            StoreError::DuplicateSerial {
                serial: issued.serial,
            }
        } else {
            tx.failed("a certificate", error)
        }
    })
}

impl Write for Draft {
    type Reply = u64;

    fn apply(self, tx: &mut Tx<'_>) -> Result<u64, StoreError> {
        let now = tx.now();
        tx.audit(self, now)
    }
}

impl Write for NewConfig {
    type Reply = u64;

    fn apply(self, tx: &mut Tx<'_>) -> Result<u64, StoreError> {
        let now = tx.now();
        let generation: u64 = tx
            .connection
            .query_row(
                "SELECT coalesce(max(generation), 0) + 1 FROM config",
                [],
                |row| row.get(0),
            )
            .map_err(read_error("the config's generation"))?;
        let audit = self
            .audit
            .with("config_generation", generation.to_string())
            .with("config_digest_sha256", self.digest.clone());
        let audit_seq = tx.audit(audit, now)?;
        tx.execute(
            "a config",
            "INSERT INTO config (generation, audit_seq, stored_at, digest, yaml)
             VALUES (?1, ?2, ?3, ?4, ?5)",
            (
                generation,
                audit_seq,
                to_millis(now),
                &self.digest,
                &self.yaml,
            ),
        )?;
        Ok(generation)
    }
}

impl Write for NewIdentity {
    type Reply = IdentityId;

    fn apply(self, tx: &mut Tx<'_>) -> Result<IdentityId, StoreError> {
        let now = tx.now();
        let audit_seq = tx.audit(self.audit, now)?;
        let state = if self.row.chain_pem.is_some() {
            "current"
        } else {
            "awaiting"
        };
        retire(tx, state)?;
        tx.execute(
            "an identity",
            "INSERT INTO identity (audit_seq, state, key_file, csr_der, chain_pem, created_at, activated_at)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
            (
                audit_seq,
                state,
                &self.row.key_file,
                &self.row.csr_der,
                &self.row.chain_pem,
                to_millis(now),
                self.row.chain_pem.as_ref().map(|_| to_millis(now)),
            ),
        )?;
        Ok(IdentityId(tx.connection.last_insert_rowid()))
    }
}

impl Write for Activation {
    type Reply = ();

    fn apply(self, tx: &mut Tx<'_>) -> Result<(), StoreError> {
        let now = tx.now();
        let state: Option<String> = tx
            .connection
            .query_row(
                "SELECT state FROM identity WHERE id = ?1",
                [self.id.0],
                |row| row.get(0),
            )
            .optional()
            .map_err(read_error("an identity"))?;
        match state.as_deref() {
            Some("awaiting") => {}
            Some(_) => return Err(StoreError::NotAwaiting { id: self.id }),
            None => return Err(StoreError::UnknownIdentity { id: self.id }),
        }
        tx.audit(self.audit, now)?;
        retire(tx, "current")?;
        tx.execute(
            "an identity",
            "UPDATE identity SET state = 'current', chain_pem = ?2, activated_at = ?3 WHERE id = ?1",
            (self.id.0, &self.chain_pem, to_millis(now)),
        )?;
        Ok(())
    }
}

/// Makes room for another identity in `state`, of which there is at most one.
fn retire(tx: &Tx<'_>, state: &str) -> Result<(), StoreError> {
    tx.execute(
        "an identity",
        "UPDATE identity SET state = 'past' WHERE state = ?1",
        [state],
    )?;
    Ok(())
}

impl Write for NewMeta {
    type Reply = ();

    fn apply(self, tx: &mut Tx<'_>) -> Result<(), StoreError> {
        let now = tx.now();
        tx.audit(self.audit, now)?;
        tx.execute(
            "a value",
            "INSERT INTO meta (name, value) VALUES (?1, ?2)
             ON CONFLICT (name) DO UPDATE SET value = excluded.value",
            (&self.name, &self.value),
        )?;
        Ok(())
    }
}
