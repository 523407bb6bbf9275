//! The management API inside this process: what offline commands call.

use std::{
    convert::Infallible,
    sync::Arc,
    task::{Context, Poll},
};

use http::{Request, Response};
use tonic::{body::Body, codegen::BoxFuture};
use tower::Service;
use vidimus_proto::node::v1::node_service_server::NodeServiceServer;

use super::{InProcess, Rpc};
use crate::node::Node;

/// A tower service with the node's whole API, for a client in this process.
#[derive(Debug, Clone)]
pub struct LocalService(NodeServiceServer<Rpc>);

impl Node {
    /// The management API without a listener: the same methods, the same audit entries.
    #[must_use]
    pub fn local_service(self) -> LocalService {
        LocalService::new(Arc::new(self))
    }
}

impl LocalService {
    /// The API of a node that others hold too.
    #[must_use]
    pub fn new(node: Arc<Node>) -> Self {
        Self(NodeServiceServer::new(Rpc::new(node)))
    }
}

impl Service<Request<Body>> for LocalService {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<Self::Response, Infallible>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Service::<Request<Body>>::poll_ready(&mut self.0, cx)
    }

    fn call(&mut self, mut request: Request<Body>) -> Self::Future {
        request.extensions_mut().insert(InProcess);
        self.0.call(request)
    }
}
