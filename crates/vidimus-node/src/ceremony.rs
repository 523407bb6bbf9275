//! The first steps of a node's life: key and own certificate of a root; key and request, then the signed chain, of a
//! subordinate; its administrator.
//!
//! Every file is written once and whole, and the store learns of the identity last: a run that was cut short leaves files
//! that the next run takes up. Only a run that finds a certificate in the store refuses to start over.

mod admin;
mod error;

use std::sync::Arc;

use aws_lc_rs::rand::SystemRandom;
use tokio::task;
use vidimus_audit::entry::Outcome;
use vidimus_daemon::clock::Clock;
use vidimus_fs::{Mode, dir, durable, lock::DirLock};
use vidimus_keys::{Secret, file::FileKey};
use vidimus_store::{IdentityRow, IdentityState, Store};
use vidimus_x509::{
    issue::{self, RequestNames},
    pem,
    serial::Serial,
    signer::Signer as _,
};

pub use admin::AdminError;
pub use error::{CompleteError, InitError};

pub(crate) use admin::{read_pin, write_anchor};

use crate::{
    call::Call,
    config::{AdminPin, Config, Role},
    data::{DataDir, Missing},
    identity::{CaChain, fingerprint_hex},
    node::Node,
};

/// The method names of the ceremony in the audit log.
const INIT: &str = "ceremony/Init";
const COMPLETE: &str = "ceremony/Complete";

/// What a ceremony left behind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Initialised {
    /// The administrator's pin.
    pub admin: AdminPin,
    /// What was reached.
    pub outcome: Ceremony,
}

/// How far the node is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ceremony {
    /// It waits for its chain; this is its request, PEM.
    AwaitingCertificate {
        /// PKCS#10, PEM.
        csr_pem: String,
    },
    /// It has its certificate, PEM.
    Established {
        /// The CA's own certificate, PEM.
        certificate_pem: String,
    },
}

/// Makes a node in `data`: its key, locked by `secret`; its own certificate if it is a root, else its request; its
/// administrator, unless the config names one.
///
/// Repeating it after a crash goes on where it stopped; repeating it on a node that waits for its chain answers the same
/// request again.
///
/// # Errors
/// The node has its certificate already, the secret doesn't open the key that an earlier run left, or a file or the
/// store can't be written.
pub async fn init(
    data: &DataDir,
    config: &Config,
    secret: &Arc<Secret>,
    clock: &Arc<dyn Clock>,
) -> Result<Initialised, InitError> {
    dir::create_private(data.path())?;
    let _lock = DirLock::acquire(data.path())?;
    let seed = data.audit_seed_or(Missing::Create)?;
    let public_key = format!("{}\n", seed.key().public());
    durable::write(data.audit_public_key(), public_key.as_bytes(), Mode::Public)?;
    let store = Store::open(data.database(), seed.key())?;
    let admin = if let Some(pin) = &config.bootstrap {
        pin.clone()
    } else {
        let name = &config.pki.subject.common_name;
        admin::ensure(data, &store, &Call::local(INIT), name, clock.now()).await?
    };
    match store.identities().await?.into_iter().next() {
        None => {}
        Some(row) if row.state == IdentityState::Awaiting && config.role != Role::Root => {
            return Ok(Initialised {
                admin,
                outcome: Ceremony::AwaitingCertificate {
                    csr_pem: pem::encode("CERTIFICATE REQUEST", &row.csr_der.unwrap_or_default()),
                },
            });
        }
        Some(_) => {
            return Err(InitError::Established {
                path: data.path().to_owned(),
            });
        }
    }
    let key = first_key(data, config, secret).await?;
    let outcome = match config.role {
        Role::Root => root(config, &key, &store, &admin, clock.as_ref()).await?,
        Role::Intermediate | Role::Issuing => request(config, &key, &store, &admin).await?,
    };
    if let Ceremony::Established { certificate_pem } = &outcome {
        write_anchor(data, certificate_pem)?;
    }
    Ok(Initialised { admin, outcome })
}

/// Takes the signed chain of a node that waits for it, or of a key rotation that waits; the node must not be running.
///
/// # Errors
/// Nothing waits, or the chain isn't for the key, or doesn't lead to the pinned parent.
pub async fn complete(
    data: &DataDir,
    chain_pem: &[u8],
    secret: &Arc<Secret>,
    clock: &Arc<dyn Clock>,
) -> Result<Initialised, CompleteError> {
    let node = Node::open(data.clone(), Arc::clone(secret), Arc::clone(clock)).await?;
    let identity = node
        .complete_rotation(&Call::local(COMPLETE), chain_pem)
        .await?;
    Ok(Initialised {
        admin: node.admin().clone(),
        outcome: Ceremony::Established {
            certificate_pem: pem::encode("CERTIFICATE", identity.certificate_der()),
        },
    })
}

async fn root(
    config: &Config,
    key: &FileKey,
    store: &Store,
    admin: &AdminPin,
    clock: &dyn Clock,
) -> Result<Ceremony, InitError> {
    let years = config.pki.root_validity_years.unwrap_or(1);
    let serial = Serial::random(&SystemRandom::new())?;
    let plan = issue::root_plan(
        &config.pki.subject,
        key.spki_der(),
        years,
        clock.now(),
        serial,
    )?;
    let certificate = plan.sign(key)?;
    put_config(config, store).await?;
    let draft = Call::local(INIT)
        .draft(Outcome::Ok)
        .with("role", config.role.word())
        .with("ca_serial_hex", certificate.serial().to_string())
        .with("ca_certificate_sha256", fingerprint_hex(certificate.der()))
        .with("admin_sha256", admin.to_hex());
    let row = IdentityRow {
        key_file: DataDir::ca_key_name(1),
        csr_der: None,
        chain_pem: Some(CaChain::of_root(certificate.der()).to_pem()),
    };
    store.put_identity(row, draft).await?;
    Ok(Ceremony::Established {
        certificate_pem: pem::encode("CERTIFICATE", certificate.der()),
    })
}

async fn request(
    config: &Config,
    key: &FileKey,
    store: &Store,
    admin: &AdminPin,
) -> Result<Ceremony, InitError> {
    let csr = issue::request(&config.pki.subject, &RequestNames::default(), key)?;
    put_config(config, store).await?;
    let draft = Call::local(INIT)
        .draft(Outcome::Ok)
        .with("role", config.role.word())
        .with("csr_sha256", fingerprint_hex(&csr))
        .with("admin_sha256", admin.to_hex());
    let row = IdentityRow {
        key_file: DataDir::ca_key_name(1),
        csr_der: Some(csr.clone()),
        chain_pem: None,
    };
    store.put_identity(row, draft).await?;
    Ok(Ceremony::AwaitingCertificate {
        csr_pem: pem::encode("CERTIFICATE REQUEST", &csr),
    })
}

async fn put_config(config: &Config, store: &Store) -> Result<(), InitError> {
    let draft = Call::local(INIT).draft(Outcome::Ok);
    store
        .put_config(config.yaml(), config.digest_sha256(), draft)
        .await?;
    Ok(())
}

/// The key of the first identity: the one that a run before this left, or a new one.
async fn first_key(
    data: &DataDir,
    config: &Config,
    secret: &Arc<Secret>,
) -> Result<FileKey, InitError> {
    let path = data.path().join(DataDir::ca_key_name(1));
    let algorithm = config.pki.key_algorithm;
    let secret = Arc::clone(secret);
    let key = task::spawn_blocking(move || new_or_left_key(&path, algorithm, &secret));
    key.await.map_err(|source| InitError::Worker { source })?
}

/// Takes up a key that a run before this left, if it is of the right kind; else makes one and saves it.
pub(crate) fn new_or_left_key(
    path: &std::path::Path,
    algorithm: vidimus_x509::key::KeyAlgorithm,
    secret: &Secret,
) -> Result<FileKey, InitError> {
    if !path.exists() {
        let key = FileKey::generate(algorithm)?;
        key.save_new(path, secret)?;
        return Ok(key);
    }
    let key = FileKey::open(path, secret).map_err(|source| InitError::LeftKey {
        path: path.to_owned(),
        source,
    })?;
    if key.key_algorithm() == algorithm {
        Ok(key)
    } else {
        Err(InitError::LeftKeyAlgorithm {
            path: path.to_owned(),
            found: key.key_algorithm(),
            accepted: algorithm,
        })
    }
}
