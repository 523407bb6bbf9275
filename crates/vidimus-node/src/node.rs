//! A node: its data directory, opened; whoever holds it is the only one.

use std::{error::Error, path::PathBuf, sync::Arc, time::Duration};

use tokio::{
    sync::{Mutex, watch},
    task,
    time::timeout,
};
use vidimus_audit::{entry::Outcome, seed::AuditPublicKey};
use vidimus_daemon::{clock::Clock, telemetry};
use vidimus_fs::{
    dir::{self, DirError},
    lock::{DirLock, LockError},
};
use vidimus_keys::{
    Secret,
    file::{FileKey, KeyError},
};
use vidimus_store::{Identity, IdentityId, IdentityState, Store, StoreError, StoredConfig};
use vidimus_x509::key::KeyAlgorithm;

use crate::{
    call::Call,
    ceremony::{self, AdminError, InitError},
    config::{self, AdminPin, Config, ConfigErrors, Role},
    data::{AuditSeedError, DataDir, Missing},
    identity::{CaChain, CaIdentity, ChainRefused},
    issuing::{IssuingService, Snapshot},
};

/// How long a new identity waits for the listener's certificate of it.
const RENEWAL: Duration = Duration::from_secs(10);

/// A node whose data directory is open.
#[derive(Debug)]
pub struct Node {
    data: DataDir,
    secret: Arc<Secret>,
    admin: AdminPin,
    boot_config: Arc<Config>,
    service: IssuingService,
    store: Store,
    audit_key: AuditPublicKey,
    /// One change of config or identity at a time.
    changes: Mutex<()>,
    /// The identity that signs; `None` before the first.
    identities: watch::Sender<Option<IdentityId>>,
    /// The identity that issued the server certificate in use; `None` without a listener.
    served: watch::Sender<Option<IdentityId>>,
    _lock: DirLock,
}

/// Why a node could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The administrator's pin can't be read.
    #[error(transparent)]
    Admin(#[from] AdminError),
    /// The audit log can't go on.
    #[error(transparent)]
    AuditSeed(#[from] AuditSeedError),
    /// The stored certificates don't fit the key.
    #[error("stored CA identity {id}")]
    Chain {
        /// Which one.
        id: IdentityId,
        /// Why.
        #[source]
        source: ChainRefused,
    },
    /// The stored config isn't accepted by this version.
    #[error("stored machine config")]
    Config(#[from] ConfigErrors),
    /// The data directory can't be used.
    #[error(transparent)]
    Dir(#[from] DirError),
    /// The CA's key can't be opened.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// Another process uses it.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// Nobody administers this node.
    #[error(
        "neither the config nor the store of {path} names an administrator; accepted: a `bootstrap` block"
    )]
    NoAdmin {
        /// The data directory.
        path: PathBuf,
    },
    /// `init` was never done, or was cut short.
    #[error("{path} holds no node; accepted: a folder that `vidimus node init` made")]
    NotInitialised {
        /// The data directory.
        path: PathBuf,
    },
    /// The role is fixed by the identity.
    #[error("role.kind is {found}; accepted: {accepted}, as this node was made")]
    Role {
        /// What the config says.
        found: Role,
        /// What the node is.
        accepted: Role,
    },
    /// The store can't be opened.
    #[error(transparent)]
    OpenStore(#[from] vidimus_store::OpenError),
    /// The store can't be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The thread that opened the key ended.
    #[error("open the key")]
    Worker {
        /// How it ended.
        #[source]
        source: task::JoinError,
    },
}

impl Node {
    /// Opens the node in `data`; fails if another process has it open.
    ///
    /// # Errors
    /// There is no node, it is in use, the secret doesn't open its key, or something in it is damaged.
    pub async fn open(
        data: DataDir,
        secret: Arc<Secret>,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, OpenError> {
        Self::open_with(data, secret, clock, None).await
    }

    /// As [`Self::open`], after `config`, if there is one that differs from the stored one, was stored.
    pub(crate) async fn open_with(
        data: DataDir,
        secret: Arc<Secret>,
        clock: Arc<dyn Clock>,
        config: Option<&Config>,
    ) -> Result<Self, OpenError> {
        if !data.database().exists() {
            return Err(OpenError::NotInitialised {
                path: data.path().to_owned(),
            });
        }
        dir::require_private(data.path())?;
        let lock = DirLock::acquire(data.path())?;
        let key = data.audit_seed_or(Missing::Refuse)?.key();
        let audit_key = key.public();
        let store = Store::open(data.database(), key)?;
        let (Some(stored), rows) = (store.config().await?, store.identities().await?) else {
            return Err(OpenError::NotInitialised {
                path: data.path().to_owned(),
            });
        };
        if rows.is_empty() {
            return Err(OpenError::NotInitialised {
                path: data.path().to_owned(),
            });
        }
        let (config, generation) = match config {
            Some(config) => take_config(&store, &stored, config).await?,
            None => (
                config::parse("the stored config", &stored.yaml)?,
                stored.generation,
            ),
        };
        let config = Arc::new(config);
        let identity = match rows
            .into_iter()
            .find(|row| row.state == IdentityState::Current)
        {
            Some(row) => Some(Arc::new(open_identity(&data, &secret, row).await?)),
            None => None,
        };
        if let Some(identity) = &identity {
            ceremony::write_anchor(&data, &identity.anchor_pem())?;
        }
        let admin = admin_of(&data, &store, &config).await?;
        let id = identity.as_ref().map(|identity| identity.id());
        let snapshot = Snapshot::new(Arc::clone(&config), generation, identity);
        Ok(Self {
            data,
            secret,
            admin,
            boot_config: config,
            service: IssuingService::new(snapshot, store.clone(), clock),
            store,
            audit_key,
            changes: Mutex::new(()),
            identities: watch::Sender::new(id),
            served: watch::Sender::new(None),
            _lock: lock,
        })
    }

    /// Issues and records.
    #[must_use]
    pub fn service(&self) -> &IssuingService {
        &self.service
    }

    /// Certificates, audit log, config.
    #[must_use]
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// Where its files are.
    #[must_use]
    pub fn data(&self) -> &DataDir {
        &self.data
    }

    /// The one administrator, as it was at the start.
    #[must_use]
    pub fn admin(&self) -> &AdminPin {
        &self.admin
    }

    /// The config that this node was started with.
    #[must_use]
    pub fn boot_config(&self) -> &Arc<Config> {
        &self.boot_config
    }

    /// What the audit log's signatures are checked with.
    #[must_use]
    pub fn audit_key(&self) -> AuditPublicKey {
        self.audit_key
    }

    /// Follows which identity signs.
    #[must_use]
    pub fn subscribe_identities(&self) -> watch::Receiver<Option<IdentityId>> {
        self.identities.subscribe()
    }

    pub(crate) fn changes(&self) -> &Mutex<()> {
        &self.changes
    }

    /// Makes the identity in force known, and waits until the listener, if there is one, presents a certificate of it.
    pub(crate) async fn announce_identity(&self, identity: IdentityId) {
        self.identities.send_replace(Some(identity));
        let mut served = self.served.subscribe();
        if served.borrow().is_none() {
            return;
        }
        let renewed = served.wait_for(|served| *served == Some(identity));
        if timeout(RENEWAL, renewed).await.is_err() {
            tracing::warn!("the own server certificate is still of the CA key before");
        }
    }

    /// Says which identity issued the server certificate in use.
    pub(crate) fn now_serves(&self, identity: IdentityId) {
        self.served.send_replace(Some(identity));
    }

    /// Opens the key of an identity.
    pub(crate) async fn open_key(&self, key_file: &str) -> Result<FileKey, InitError> {
        let (path, secret) = (self.data.path().join(key_file), Arc::clone(&self.secret));
        let key = task::spawn_blocking(move || FileKey::open(&path, &secret));
        Ok(key.await.map_err(|source| InitError::Worker { source })??)
    }

    /// Makes the key of a new identity.
    pub(crate) async fn new_key(
        &self,
        key_file: &str,
        algorithm: KeyAlgorithm,
    ) -> Result<FileKey, InitError> {
        let (path, secret) = (self.data.path().join(key_file), Arc::clone(&self.secret));
        let key =
            task::spawn_blocking(move || ceremony::new_or_left_key(&path, algorithm, &secret));
        key.await.map_err(|source| InitError::Worker { source })?
    }

    /// Passes a result on, after a refusal was written into the audit log.
    pub(crate) async fn recorded<T, E>(&self, call: &Call, result: Result<T, E>) -> Result<T, E>
    where
        E: Error + From<StoreError> + 'static,
    {
        if let Err(error) = &result {
            let reason = telemetry::chain(error).to_string();
            let draft = call.draft(Outcome::Error).with("reason", reason);
            self.store.append_audit(draft).await?;
        }
        result
    }
}

/// Stores the config that a start brings, if it says something new; the role is fixed by the identity.
async fn take_config(
    store: &Store,
    stored: &StoredConfig,
    config: &Config,
) -> Result<(Config, u64), OpenError> {
    if stored.digest == config.digest_sha256() {
        return Ok((config.clone(), stored.generation));
    }
    // The stored text may be of a version that accepted what this one doesn't; then there is nothing to compare.
    if let Ok(before) = config::parse("the stored config", &stored.yaml)
        && before.role != config.role
    {
        return Err(OpenError::Role {
            found: config.role,
            accepted: before.role,
        });
    }
    tracing::warn!(
        stored = stored.digest,
        given = config.digest_sha256(),
        "the config that this start brings takes the place of the stored one"
    );
    let draft = Call::local("internal/Start").draft(Outcome::Ok);
    let generation = store
        .put_config(config.yaml(), config.digest_sha256(), draft)
        .await?;
    Ok((config.clone(), generation))
}

async fn admin_of(data: &DataDir, store: &Store, config: &Config) -> Result<AdminPin, OpenError> {
    if let Some(pin) = &config.bootstrap {
        return Ok(pin.clone());
    }
    let pin = ceremony::read_pin(store).await?;
    pin.ok_or_else(|| OpenError::NoAdmin {
        path: data.path().to_owned(),
    })
}

async fn open_identity(
    data: &DataDir,
    secret: &Arc<Secret>,
    row: Identity,
) -> Result<CaIdentity, OpenError> {
    let (path, secret) = (data.path().join(&row.key_file), Arc::clone(secret));
    let key = task::spawn_blocking(move || FileKey::open(&path, &secret));
    let key = key.await.map_err(|source| OpenError::Worker { source })??;
    let chain = CaChain::from_pem(&row.chain_pem.unwrap_or_default());
    chain
        .and_then(|chain| CaIdentity::new(row.id, chain, Arc::new(key)))
        .map_err(|source| OpenError::Chain { id: row.id, source })
}
