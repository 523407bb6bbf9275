//! The methods: who calls, what they want, one call of the node, one answer.

use prost::Message;
use tonic::{Request, Response, Status};
use vidimus_audit::entry::Outcome;
use vidimus_proto::node::v1::{self as pb, node_service_server::NodeService};
use vidimus_x509::pem;

use super::{Rpc, RpcError, convert};
use crate::{
    call::Call,
    issuing::{IssueError, Issued, LeafRequest},
};

/// The full name of a method, as it stands in the audit log.
macro_rules! method {
    ($name:literal) => {
        concat!("/vidimus.node.v1.NodeService/", $name)
    };
}

type Answer<T> = Result<Response<T>, Status>;

#[tonic::async_trait]
impl NodeService for Rpc {
    async fn get_status(
        &self,
        request: Request<pb::GetStatusRequest>,
    ) -> Answer<pb::GetStatusResponse> {
        self.admit_unaudited(&request)?;
        answer(self.status().await)
    }

    async fn get_identity(
        &self,
        request: Request<pb::GetIdentityRequest>,
    ) -> Answer<pb::GetIdentityResponse> {
        self.admit_unaudited(&request)?;
        answer(self.identity())
    }

    async fn get_config(
        &self,
        request: Request<pb::GetConfigRequest>,
    ) -> Answer<pb::GetConfigResponse> {
        let call = self.admit(method!("GetConfig"), &request).await?;
        let config = self.config();
        self.answer_read(&call, Ok(config)).await
    }

    async fn apply_config(
        &self,
        request: Request<pb::ApplyConfigRequest>,
    ) -> Answer<pb::ApplyConfigResponse> {
        let call = self.admit(method!("ApplyConfig"), &request).await?;
        let applied = self
            .node
            .apply_config(&call, &request.get_ref().config_yaml)
            .await;
        answer(
            applied
                .map_err(RpcError::from)
                .map(|applied| pb::ApplyConfigResponse {
                    generation: applied.generation,
                    requires_reboot: applied.requires_reboot,
                    digest_sha256: applied.digest_sha256,
                    warnings: applied.warnings,
                }),
        )
    }

    async fn issue_leaf(
        &self,
        request: Request<pb::IssueLeafRequest>,
    ) -> Answer<pb::IssueLeafResponse> {
        let call = self.admit(method!("IssueLeaf"), &request).await?;
        let message = request.get_ref();
        let leaf = LeafRequest {
            csr: &message.csr,
            profile: &message.profile,
            dns_names: &message.dns_names,
            ip_addresses: &message.ip_addresses,
        };
        let issued = self.node.service().issue_leaf(&call, &leaf).await;
        answer(issued.map_err(RpcError::from).map(|issued| {
            let chain_pem = chain_pem(&issued);
            let certificate = issued.certificate.into_inner();
            pb::IssueLeafResponse {
                serial_hex: certificate.serial.to_string(),
                not_after: convert::timestamp(certificate.not_after),
                certificate_der: certificate.der,
                chain_pem,
                warnings: issued.warnings,
            }
        }))
    }

    async fn sign_subordinate_csr(
        &self,
        request: Request<pb::SignSubordinateCsrRequest>,
    ) -> Answer<pb::SignSubordinateCsrResponse> {
        let call = self.admit(method!("SignSubordinateCSR"), &request).await?;
        let message = request.get_ref();
        let signed: Result<Issued, IssueError> = self
            .node
            .service()
            .sign_subordinate(&call, &message.csr, &message.profile)
            .await;
        answer(signed.map_err(RpcError::from).map(|issued| {
            let above = issued.issuer.below_root_der().map(<[u8]>::to_vec);
            let chain_der = std::iter::once(issued.certificate.der.clone())
                .chain(above)
                .collect();
            pb::SignSubordinateCsrResponse {
                chain_der,
                chain_pem: chain_pem(&issued),
                serial_hex: issued.certificate.serial.to_string(),
                not_after: convert::timestamp(issued.certificate.not_after),
                warnings: issued.warnings,
            }
        }))
    }

    async fn list_issued(
        &self,
        request: Request<pb::ListIssuedRequest>,
    ) -> Answer<pb::ListIssuedResponse> {
        let call = self.admit(method!("ListIssued"), &request).await?;
        let page = self.page_of_issued(request.into_inner()).await;
        self.answer_read(&call, page).await
    }

    async fn get_issued_certificate(
        &self,
        request: Request<pb::GetIssuedCertificateRequest>,
    ) -> Answer<pb::GetIssuedCertificateResponse> {
        let call = self
            .admit(method!("GetIssuedCertificate"), &request)
            .await?;
        let found = self.issued_certificate(&request.get_ref().serial).await;
        self.answer_read(&call, found).await
    }

    async fn begin_key_rotation(
        &self,
        request: Request<pb::BeginKeyRotationRequest>,
    ) -> Answer<pb::BeginKeyRotationResponse> {
        let call = self.admit(method!("BeginKeyRotation"), &request).await?;
        let csr = self.node.begin_rotation(&call).await;
        answer(
            csr.map_err(RpcError::from)
                .map(|csr_der| pb::BeginKeyRotationResponse {
                    csr_pem: pem::encode("CERTIFICATE REQUEST", &csr_der),
                    csr_der,
                }),
        )
    }

    async fn complete_key_rotation(
        &self,
        request: Request<pb::CompleteKeyRotationRequest>,
    ) -> Answer<pb::CompleteKeyRotationResponse> {
        let call = self.admit(method!("CompleteKeyRotation"), &request).await?;
        let chain_pem = request.get_ref().chain_pem.as_bytes();
        let identity = self.node.complete_rotation(&call, chain_pem).await;
        answer(
            identity
                .map_err(RpcError::from)
                .map(|identity| pb::CompleteKeyRotationResponse {
                    serial_hex: identity.serial_hex().to_owned(),
                    not_after: convert::timestamp(identity.issuer().not_after()),
                }),
        )
    }

    async fn list_audit_events(
        &self,
        request: Request<pb::ListAuditEventsRequest>,
    ) -> Answer<pb::ListAuditEventsResponse> {
        let call = self.admit(method!("ListAuditEvents"), &request).await?;
        let page = self.page_of_audit(request.into_inner()).await;
        self.answer_read(&call, page).await
    }
}

impl Rpc {
    /// Answers a call that changes nothing, after its audit entry.
    async fn answer_read<T: Message>(&self, call: &Call, result: Result<T, RpcError>) -> Answer<T> {
        if result.is_ok() {
            let recorded = self
                .node
                .store()
                .append_audit(call.draft(Outcome::Ok))
                .await;
            return answer(recorded.map_err(RpcError::from).and(result));
        }
        answer(self.node.recorded(call, result).await)
    }
}

fn answer<T>(result: Result<T, RpcError>) -> Answer<T> {
    result.map(Response::new).map_err(RpcError::into_status)
}

fn chain_pem(issued: &Issued) -> String {
    let mut chain = pem::encode("CERTIFICATE", &issued.certificate.der);
    chain.push_str(issued.issuer.below_root_pem());
    chain
}
