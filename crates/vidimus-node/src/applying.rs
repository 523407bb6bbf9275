//! Taking a machine config into force: whole or not at all.

use std::{sync::Arc, time::Duration};

use vidimus_audit::entry::Outcome;
use vidimus_store::StoreError;
use vidimus_x509::profile::Profile;

use crate::{
    call::Call,
    config::{self, Config, ConfigErrors, Role},
    identity::CaIdentity,
    issuing::Snapshot,
    node::Node,
    time,
};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// What an apply did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Applied {
    /// The generation in force.
    pub generation: u64,
    /// The config differs from the running one in a field that is read at the start only.
    pub requires_reboot: bool,
    /// The config's digest, lower-case hex.
    pub digest_sha256: String,
    /// Advice: nothing is wrong, but somebody may be surprised.
    pub warnings: Vec<String>,
}

/// Why a config was not taken. The one in force stays.
#[derive(Debug, thiserror::Error)]
pub enum ApplyError {
    /// It has problems; all of them are here.
    #[error(transparent)]
    Config(#[from] ConfigErrors),
    /// The role is fixed by the identity.
    #[error("role.kind is {found}; accepted: {accepted}, as this node was made")]
    Role {
        /// What the config says.
        found: Role,
        /// What the node is.
        accepted: Role,
    },
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Node {
    /// Checks and stores a config; profiles, `pki.root_leaf_issuance` and `pki.parent` are in force when this returns.
    ///
    /// # Errors
    /// The config has problems or changes the role; the one in force stays.
    pub async fn apply_config(&self, call: &Call, yaml: &str) -> Result<Applied, ApplyError> {
        let applied = self.apply(call, yaml).await;
        self.recorded(call, applied).await
    }

    /// Whether the config in force differs from the running one in a field that is read at the start only.
    #[must_use]
    pub fn reboot_pending(&self) -> bool {
        self.boot_config()
            .requires_reboot_for(self.service().snapshot().config())
    }

    async fn apply(&self, call: &Call, yaml: &str) -> Result<Applied, ApplyError> {
        let config = config::parse("config", yaml)?;
        let _change = self.changes().lock().await;
        let snapshot = self.service().snapshot();
        let role = snapshot.config().role;
        if config.role != role {
            return Err(ApplyError::Role {
                found: config.role,
                accepted: role,
            });
        }
        let digest_sha256 = config.digest_sha256().to_owned();
        let warnings = self.advice(&config, snapshot.identity());
        if digest_sha256 == snapshot.config().digest_sha256() {
            let generation = snapshot.config_generation();
            let draft = call
                .draft(Outcome::Ok)
                .with("config_generation", generation.to_string())
                .with("config_digest_sha256", &*digest_sha256)
                .with("requires_reboot", "false")
                .with("unchanged", "true");
            self.store().append_audit(draft).await?;
            return Ok(Applied {
                generation,
                requires_reboot: false,
                digest_sha256,
                warnings,
            });
        }
        let requires_reboot = self.boot_config().requires_reboot_for(&config);
        let draft = call
            .draft(Outcome::Ok)
            .with("requires_reboot", requires_reboot.to_string());
        let generation = self
            .store()
            .put_config(yaml, &*digest_sha256, draft)
            .await?;
        let identity = snapshot.identity().cloned();
        self.service()
            .replace(Snapshot::new(Arc::new(config), generation, identity));
        Ok(Applied {
            generation,
            requires_reboot,
            digest_sha256,
            warnings,
        })
    }

    fn advice(&self, config: &Config, identity: Option<&Arc<CaIdentity>>) -> Vec<String> {
        let Some(identity) = identity else {
            return Vec::new();
        };
        let end = identity.issuer().not_after();
        let overruns = |profile: &&Profile| {
            let end_of_new = self
                .service()
                .now()
                .checked_add(DAY * profile.validity_days);
            end_of_new.is_none_or(|new| new > end)
        };
        let profiles = config.pki.profiles.iter().filter(overruns).map(|profile| {
            format!(
                "profile {}: {} days from now are past this CA's own end on {}",
                profile.name,
                profile.validity_days,
                time::rfc3339(end)
            )
        });
        let parent = config.pki.parent.as_ref();
        let strays = parent.filter(|parent| !identity.leads_to(parent)).map(|_| {
            "pki.parent: this CA's present chain leads elsewhere; rotate its key to move below the new parent".to_owned()
        });
        profiles.chain(strays).collect()
    }
}
