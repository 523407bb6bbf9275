//! The administrator's client certificate: made at `init` unless the config brings one, pinned by its SHA-256.

use std::time::SystemTime;

use aws_lc_rs::rand::SystemRandom;
use vidimus_audit::entry::Outcome;
use vidimus_fs::{
    Mode,
    dir::{self, DirError},
    durable::{self, WriteError},
    read::ReadError,
};
use vidimus_keys::file::{FileKey, KeyError};
use vidimus_store::{Store, StoreError};
use vidimus_x509::{
    issue::{self, PlanError},
    key::KeyAlgorithm,
    pem,
    profile::SubjectFields,
    serial::{Serial, SerialError},
    signer::{SignError, Signer as _},
};

use crate::{call::Call, config::AdminPin, data::DataDir};

/// How long the administrator's certificate is valid.
const VALIDITY_DAYS: u32 = 5 * 365;

/// The pin's name in the store.
const PIN: &str = "admin_certificate_sha256";

/// Why there is no administrator.
#[derive(Debug, thiserror::Error)]
pub enum AdminError {
    /// The folder can't be used.
    #[error(transparent)]
    Dir(#[from] DirError),
    /// The key can't be made.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// What the store has as the pin is none.
    #[error("the administrator's pin in the store is not 64 hex digits")]
    Pin,
    /// The certificate can't be made.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// A file can't be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// No serial number.
    #[error(transparent)]
    Serial(#[from] SerialError),
    /// The key failed.
    #[error(transparent)]
    Sign(#[from] SignError),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A file can't be written.
    #[error(transparent)]
    Write(#[from] WriteError),
}

/// The pin of the administrator that `init` made, if it made one.
pub(crate) async fn read_pin(store: &Store) -> Result<Option<AdminPin>, AdminError> {
    let Some(bytes) = store.meta(PIN).await? else {
        return Ok(None);
    };
    match str::from_utf8(&bytes).ok().and_then(AdminPin::from_hex) {
        Some(pin) => Ok(Some(pin)),
        None => Err(AdminError::Pin),
    }
}

/// Makes the administrator, or finds the one that an earlier run made.
///
/// The pin is recorded last: without it the files are leftovers of a crash and made anew.
pub(super) async fn ensure(
    data: &DataDir,
    store: &Store,
    call: &Call,
    name: &str,
    now: SystemTime,
) -> Result<AdminPin, AdminError> {
    if let Some(pin) = read_pin(store).await? {
        return Ok(pin);
    }
    let key = FileKey::generate(KeyAlgorithm::EcdsaP384)?;
    let certificate = self_signed(&key, name, now)?;
    let folder = data.admin();
    dir::create_private(&folder)?;
    durable::write(
        folder.join("tls.key"),
        key.plaintext_pem().as_bytes(),
        Mode::Private,
    )?;
    let certificate_pem = pem::encode("CERTIFICATE", &certificate);
    durable::write(
        folder.join("tls.crt"),
        certificate_pem.as_bytes(),
        Mode::Public,
    )?;
    let pin = AdminPin::of_certificate(&certificate);
    let draft = call.draft(Outcome::Ok).with("admin_sha256", pin.to_hex());
    store.put_meta(PIN, pin.to_hex(), draft).await?;
    Ok(pin)
}

/// Puts what clients verify this CA against beside the administrator's certificate.
pub(crate) fn write_anchor(data: &DataDir, anchor_pem: &str) -> Result<(), AdminError> {
    let folder = data.admin();
    if !folder.is_dir() {
        return Ok(());
    }
    let path = folder.join("ca.crt");
    let current = DataDir::read_small(&path)?;
    if current.is_none_or(|text| text.as_str() != anchor_pem) {
        durable::write(path, anchor_pem.as_bytes(), Mode::Public)?;
    }
    Ok(())
}

fn self_signed(key: &FileKey, name: &str, now: SystemTime) -> Result<Vec<u8>, AdminError> {
    let subject = SubjectFields {
        common_name: format!("{name} administrator").chars().take(64).collect(),
        ..SubjectFields::default()
    };
    let serial = Serial::random(&SystemRandom::new())?;
    let spki = key.spki_der();
    let plan = issue::self_signed_client_plan(&subject, spki, VALIDITY_DAYS, now, serial)?;
    Ok(plan.sign(key)?.der().to_vec())
}
