//! A new key for a subordinate: request out, chain in, then it signs. The first certificate of a node comes the same way.

use std::sync::Arc;

use vidimus_audit::entry::Outcome;
use vidimus_store::{IdentityRow, IdentityState, StoreError};
use vidimus_x509::{
    issue::{self, RequestError, RequestNames},
    signer::Signer as _,
};

use crate::{
    call::Call,
    ceremony::{self, AdminError, InitError},
    config::Role,
    data::DataDir,
    identity::{CaChain, CaIdentity, ChainRefused, fingerprint_hex},
    node::Node,
};

/// Why a key was not rotated. The present one signs on.
#[derive(Debug, thiserror::Error)]
pub enum RotationError {
    /// The chain isn't for the waiting key, or doesn't lead to the pinned parent.
    #[error(transparent)]
    Chain(#[from] ChainRefused),
    /// The new key can't be made or opened.
    #[error("new CA key")]
    Key(#[from] InitError),
    /// There is no key that waits for a chain.
    #[error("no key of this node waits for a chain; accepted: a chain after the request was made")]
    NothingWaits,
    /// A root has no parent to sign its next key.
    #[error("a root's key is not rotated; accepted: a new root beside this one")]
    Root,
    /// The new identity is in force, but the administrator's copy of the anchor is not.
    #[error("write the anchor for the administrator")]
    Anchor(#[from] AdminError),
    /// The request can't be made.
    #[error(transparent)]
    Request(#[from] RequestError),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Node {
    /// Makes a new CA key and answers the request for it, DER; the present key signs on. Asking again answers the same.
    ///
    /// # Errors
    /// This is a root, or key or store fail.
    pub async fn begin_rotation(&self, call: &Call) -> Result<Vec<u8>, RotationError> {
        let begun = self.begin(call).await;
        self.recorded(call, begun).await
    }

    /// Takes the chain of the key that waits; from then on that key signs.
    ///
    /// # Errors
    /// No key waits, the chain isn't for it, or doesn't lead to the parent in force.
    pub async fn complete_rotation(
        &self,
        call: &Call,
        chain_pem: &[u8],
    ) -> Result<Arc<CaIdentity>, RotationError> {
        let completed = self.complete(call, chain_pem).await;
        self.recorded(call, completed).await
    }

    async fn begin(&self, call: &Call) -> Result<Vec<u8>, RotationError> {
        let _change = self.changes().lock().await;
        let config = Arc::clone(self.service().snapshot().config());
        if config.role == Role::Root {
            return Err(RotationError::Root);
        }
        let rows = self.store().identities().await?;
        if let Some(waiting) = rows.iter().find(|row| row.state == IdentityState::Awaiting) {
            let csr = waiting.csr_der.clone().unwrap_or_default();
            let draft = call
                .draft(Outcome::Ok)
                .with("csr_sha256", fingerprint_hex(&csr));
            self.store().append_audit(draft).await?;
            return Ok(csr);
        }
        let key_file = DataDir::ca_key_name(rows.len() + 1);
        let key = self.new_key(&key_file, config.pki.key_algorithm).await?;
        let csr = issue::request(&config.pki.subject, &RequestNames::default(), &key)?;
        let draft = call
            .draft(Outcome::Ok)
            .with("key_file", &*key_file)
            .with("csr_sha256", fingerprint_hex(&csr));
        let row = IdentityRow {
            key_file,
            csr_der: Some(csr.clone()),
            chain_pem: None,
        };
        self.store().put_identity(row, draft).await?;
        Ok(csr)
    }

    async fn complete(
        &self,
        call: &Call,
        chain_pem: &[u8],
    ) -> Result<Arc<CaIdentity>, RotationError> {
        let _change = self.changes().lock().await;
        let snapshot = self.service().snapshot();
        let Some(parent) = &snapshot.config().pki.parent else {
            return Err(RotationError::Root);
        };
        let rows = self.store().identities().await?;
        let waiting = rows
            .into_iter()
            .find(|row| row.state == IdentityState::Awaiting);
        let row = waiting.ok_or(RotationError::NothingWaits)?;
        let key = self.open_key(&row.key_file).await?;
        let chain = CaChain::accept(chain_pem, key.spki_der(), parent, self.service().now())?;
        let chain_pem = chain.to_pem();
        let identity = Arc::new(CaIdentity::new(row.id, chain, Arc::new(key))?);
        let draft = call.draft(Outcome::Ok).with("key_file", row.key_file).with(
            "ca_certificate_sha256",
            fingerprint_hex(identity.certificate_der()),
        );
        self.store()
            .activate_identity(row.id, chain_pem, draft)
            .await?;
        self.service()
            .replace(snapshot.with_identity(Arc::clone(&identity)));
        self.announce_identity(identity.id()).await;
        ceremony::write_anchor(self.data(), &identity.anchor_pem())?;
        Ok(identity)
    }
}
