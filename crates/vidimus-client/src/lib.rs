//! A typed client of a node's management API.
//!
//! [`NodeClient`] speaks to a node over mutual TLS, over its UNIX socket, or to one in this process, with the same methods.
//! It knows nothing of certificates: what it sends and gets are the messages of `vidimus.node.v1`.

mod endpoint;
mod error;
mod transport;

use std::time::Duration;

use http::{Request, Response};
pub use tonic;
use tonic::body::Body;
use tower::Service;
pub use vidimus_proto::node::v1 as pb;
use vidimus_proto::node::v1::node_service_client::NodeServiceClient;
use vidimus_tls::channel::Channel;

pub use endpoint::{Endpoint, EndpointError};
pub use error::{CallError, ClientError};

use transport::{BoxError, Transport};

/// How long a call may take.
const DEADLINE: Duration = Duration::from_secs(30);

/// A node's management API. Cheap to clone; clones share the connection.
#[derive(Debug, Clone)]
pub struct NodeClient {
    inner: NodeServiceClient<Transport>,
    channel: Option<Channel>,
}

type Called<T> = Result<T, CallError>;

impl NodeClient {
    /// Connects to a node.
    ///
    /// # Errors
    /// The identity folder can't be used, or the node can't be reached or refuses the connection.
    pub async fn connect(endpoint: Endpoint) -> Result<Self, ClientError> {
        let channel = endpoint.channel()?;
        channel.ready().await.map_err(CallError::from)?;
        Ok(Self {
            inner: NodeServiceClient::new(Transport::new(channel.clone())),
            channel: Some(channel),
        })
    }

    /// A client of a service in this process.
    pub fn over<S, B>(service: S) -> Self
    where
        S: Service<Request<Body>, Response = Response<B>> + Clone + Send + Sync + 'static,
        S::Future: Send + 'static,
        S::Error: Into<BoxError> + 'static,
        B: http_body::Body<Data = bytes::Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        Self {
            inner: NodeServiceClient::new(Transport::new(service)),
            channel: None,
        }
    }

    /// The connection, unless the service is in this process.
    #[must_use]
    pub fn channel(&self) -> Option<&Channel> {
        self.channel.as_ref()
    }

    /// What the node is and how it is doing.
    ///
    /// # Errors
    /// The status that came back, with a hint.
    pub async fn status(&self) -> Called<pb::GetStatusResponse> {
        let request = timed(pb::GetStatusRequest {});
        answer(self.inner.clone().get_status(request).await)
    }

    /// The node's CA certificate, the chain above it, and the audit log's public key.
    ///
    /// # Errors
    /// The status that came back, with a hint.
    pub async fn identity(&self) -> Called<pb::GetIdentityResponse> {
        let request = timed(pb::GetIdentityRequest {});
        answer(self.inner.clone().get_identity(request).await)
    }

    /// The machine config in force.
    ///
    /// # Errors
    /// The status that came back, with a hint.
    pub async fn config(&self) -> Called<pb::GetConfigResponse> {
        let request = timed(pb::GetConfigRequest {});
        answer(self.inner.clone().get_config(request).await)
    }

    /// Checks and stores a machine config.
    ///
    /// # Errors
    /// The status that came back, with a hint.
    pub async fn apply_config(&self, yaml: &str) -> Called<pb::ApplyConfigResponse> {
        let request = timed(pb::ApplyConfigRequest {
            config_yaml: yaml.to_owned(),
        });
        answer(self.inner.clone().apply_config(request).await)
    }

    /// Certifies a leaf.
    ///
    /// # Errors
    /// The status that came back, with a hint.
    pub async fn issue_leaf(&self, request: pb::IssueLeafRequest) -> Called<pb::IssueLeafResponse> {
        answer(self.inner.clone().issue_leaf(timed(request)).await)
    }

    /// Certifies a CA below the node's.
    ///
    /// # Errors
    /// The status that came back, with a hint.
    pub async fn sign_subordinate(
        &self,
        request: pb::SignSubordinateCsrRequest,
    ) -> Called<pb::SignSubordinateCsrResponse> {
        answer(
            self.inner
                .clone()
                .sign_subordinate_csr(timed(request))
                .await,
        )
    }

    /// One page of what the node issued, oldest first.
    ///
    /// # Errors
    /// The status that came back, with a hint.
    pub async fn list_issued(
        &self,
        request: pb::ListIssuedRequest,
    ) -> Called<pb::ListIssuedResponse> {
        answer(self.inner.clone().list_issued(timed(request)).await)
    }

    /// One issued certificate with its chain, by its serial number in hex.
    ///
    /// # Errors
    /// The status that came back, with a hint.
    pub async fn issued_certificate(
        &self,
        serial: &str,
    ) -> Called<pb::GetIssuedCertificateResponse> {
        let request = timed(pb::GetIssuedCertificateRequest {
            serial: serial.to_owned(),
        });
        answer(self.inner.clone().get_issued_certificate(request).await)
    }

    /// Makes a new CA key and answers the request for it.
    ///
    /// # Errors
    /// The status that came back, with a hint.
    pub async fn begin_key_rotation(&self) -> Called<pb::BeginKeyRotationResponse> {
        let request = timed(pb::BeginKeyRotationRequest {});
        answer(self.inner.clone().begin_key_rotation(request).await)
    }

    /// Brings the signed chain for the new CA key, PEM; from then on that key signs.
    ///
    /// # Errors
    /// The status that came back, with a hint.
    pub async fn complete_key_rotation(
        &self,
        chain_pem: &str,
    ) -> Called<pb::CompleteKeyRotationResponse> {
        let request = timed(pb::CompleteKeyRotationRequest {
            chain_pem: chain_pem.to_owned(),
        });
        answer(self.inner.clone().complete_key_rotation(request).await)
    }

    /// One page of the audit log, oldest first.
    ///
    /// # Errors
    /// The status that came back, with a hint.
    pub async fn audit_events(
        &self,
        request: pb::ListAuditEventsRequest,
    ) -> Called<pb::ListAuditEventsResponse> {
        answer(self.inner.clone().list_audit_events(timed(request)).await)
    }
}

fn timed<T>(message: T) -> tonic::Request<T> {
    let mut request = tonic::Request::new(message);
    request.set_timeout(DEADLINE);
    request
}

fn answer<T>(result: Result<tonic::Response<T>, tonic::Status>) -> Called<T> {
    result
        .map(tonic::Response::into_inner)
        .map_err(CallError::from)
}
