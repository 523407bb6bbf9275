//! What the methods that change nothing answer.

use vidimus_proto::node::v1 as pb;
use vidimus_store::{Cursor, IdentityState, IssuedFilter};
use vidimus_x509::{cert::Certificate, pem, serial::Serial};

use super::{Rpc, RpcError, convert};
use crate::{
    config::Role,
    identity::{CaChain, issued_by},
};

/// How many rows a page has when nobody says.
const DEFAULT_PAGE: u32 = 100;

/// The most rows of a page.
const MAX_PAGE: u32 = 1000;

impl Rpc {
    pub(super) async fn status(&self) -> Result<pb::GetStatusResponse, RpcError> {
        let snapshot = self.node.service().snapshot();
        let config = snapshot.config();
        let identity = snapshot.identity();
        let store = self.node.store();
        let waiting = store
            .identities()
            .await?
            .iter()
            .any(|i| i.state == IdentityState::Awaiting);
        let state = match (identity.is_some(), waiting) {
            (true, _) => pb::IdentityState::Established,
            (false, true) => pb::IdentityState::AwaitingCert,
            (false, false) => pb::IdentityState::None,
        };
        Ok(pb::GetStatusResponse {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            role: convert::role(config.role).into(),
            identity: state.into(),
            subject: identity
                .map(|i| i.issuer().subject_text().to_owned())
                .unwrap_or_default(),
            not_after: identity.and_then(|i| convert::timestamp(i.issuer().not_after())),
            issued: store.issued_count().await?,
            audit_entries: store.audit_head().await?.seq,
            config_generation: snapshot.config_generation(),
            config_digest_sha256: config.digest_sha256().to_owned(),
            rotation_pending: identity.is_some() && waiting,
            profiles: config.pki.profiles.iter().map(|p| p.name.clone()).collect(),
            started_at: convert::timestamp(self.started_at),
            config_reboot_pending: self.node.reboot_pending(),
            name: config.name.clone(),
            subject_key_id: identity
                .map(|i| data_encoding::HEXLOWER.encode(i.issuer().key_id()))
                .unwrap_or_default(),
        })
    }

    pub(super) fn identity(&self) -> Result<pb::GetIdentityResponse, RpcError> {
        let snapshot = self.node.service().snapshot();
        let identity = snapshot.identity().ok_or(RpcError::NoIdentity)?;
        let chain: Vec<Vec<u8>> = match snapshot.config().role {
            Role::Root => vec![identity.certificate_der().to_vec()],
            Role::Intermediate | Role::Issuing => {
                identity.below_root_der().map(<[u8]>::to_vec).collect()
            }
        };
        Ok(pb::GetIdentityResponse {
            chain_pem: chain
                .iter()
                .map(|der| pem::encode("CERTIFICATE", der))
                .collect(),
            chain_der: chain,
            anchor_pem: identity.anchor_pem(),
            audit_public_key: self.node.audit_key().0.to_vec(),
        })
    }

    pub(super) fn config(&self) -> pb::GetConfigResponse {
        let snapshot = self.node.service().snapshot();
        pb::GetConfigResponse {
            config_yaml: snapshot.config().yaml().to_owned(),
            generation: snapshot.config_generation(),
            digest_sha256: snapshot.config().digest_sha256().to_owned(),
        }
    }

    pub(super) async fn page_of_issued(
        &self,
        request: pb::ListIssuedRequest,
    ) -> Result<pb::ListIssuedResponse, RpcError> {
        let after = page_token(&request.page_token, |token| token.parse::<Cursor>().ok())?;
        let filter = IssuedFilter {
            profile: Some(request.profile).filter(|profile| !profile.is_empty()),
        };
        let size = page_size(request.page_size);
        let page = self.node.store().list_issued(filter, size, after).await?;
        let now = self.node.service().now();
        Ok(pb::ListIssuedResponse {
            certificates: page
                .items
                .iter()
                .map(|row| convert::issued(row, now))
                .collect(),
            next_page_token: page.next.map(|next| next.to_string()).unwrap_or_default(),
        })
    }

    pub(super) async fn issued_certificate(
        &self,
        serial: &str,
    ) -> Result<pb::GetIssuedCertificateResponse, RpcError> {
        let serial = Serial::parse_hex(serial)?;
        let found = self.node.store().find_issued(&serial).await?;
        let found = found.ok_or_else(|| RpcError::NotFound {
            serial: serial.to_string(),
        })?;
        let mut chain_pem = pem::encode("CERTIFICATE", &found.der);
        chain_pem.push_str(&self.issuers_of(&found.der).await?);
        Ok(pb::GetIssuedCertificateResponse {
            certificate: Some(convert::issued(&found, self.node.service().now())),
            certificate_der: found.der,
            chain_pem,
        })
    }

    pub(super) async fn page_of_audit(
        &self,
        request: pb::ListAuditEventsRequest,
    ) -> Result<pb::ListAuditEventsResponse, RpcError> {
        let from = page_token(&request.page_token, |token| token.parse::<u64>().ok())?;
        let size = page_size(request.page_size);
        let lines = self
            .node
            .store()
            .audit_lines(from.unwrap_or(1), size)
            .await?;
        let full = lines.len() == size as usize;
        let next = lines
            .last()
            .filter(|_| full)
            .map(|last| (last.seq + 1).to_string());
        Ok(pb::ListAuditEventsResponse {
            events: lines
                .iter()
                .map(convert::audit_event)
                .collect::<Result<_, _>>()?,
            next_page_token: next.unwrap_or_default(),
        })
    }

    /// The CAs above a certificate that this node issued, perhaps with a key it no longer signs with.
    async fn issuers_of(&self, der: &[u8]) -> Result<String, RpcError> {
        let Ok(certificate) = Certificate::parse(der) else {
            return Ok(String::new());
        };
        let identities = self.node.store().identities().await?;
        let chains = identities
            .iter()
            .filter_map(|identity| identity.chain_pem.as_deref());
        let mut chains = chains.filter_map(|pem| CaChain::from_pem(pem).ok());
        let issuer = chains.find(|chain| issued_by(&certificate, chain));
        Ok(issuer
            .map(|chain| chain.below_root_pem())
            .unwrap_or_default())
    }
}

fn page_size(asked: u32) -> u32 {
    match asked {
        0 => DEFAULT_PAGE,
        asked => asked.min(MAX_PAGE),
    }
}

fn page_token<T>(token: &str, parse: impl Fn(&str) -> Option<T>) -> Result<Option<T>, RpcError> {
    if token.is_empty() {
        return Ok(None);
    }
    match parse(token) {
        Some(place) => Ok(Some(place)),
        None => Err(RpcError::PageToken {
            found: token.chars().take(64).collect(),
        }),
    }
}
