//! One type for every way to a node.

use std::{
    fmt,
    task::{Context, Poll},
};

use http::{Request, Response};
use tonic::body::Body;
use tower::{Service, ServiceExt as _, util::BoxCloneSyncService};

pub(crate) type BoxError = Box<dyn std::error::Error + Send + Sync>;

type Boxed = BoxCloneSyncService<Request<Body>, Response<Body>, BoxError>;

/// Carries calls over whatever it was made of.
#[derive(Clone)]
pub(crate) struct Transport(Boxed);

impl Transport {
    pub(crate) fn new<S, B>(service: S) -> Self
    where
        S: Service<Request<Body>, Response = Response<B>> + Clone + Send + Sync + 'static,
        S::Future: Send + 'static,
        S::Error: Into<BoxError> + 'static,
        B: http_body::Body<Data = bytes::Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        let service = service
            .map_response(|response: Response<B>| response.map(Body::new))
            .map_err(Into::into);
        Self(BoxCloneSyncService::new(service))
    }
}

impl fmt::Debug for Transport {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Transport").finish_non_exhaustive()
    }
}

impl Service<Request<Body>> for Transport {
    type Response = Response<Body>;
    type Error = BoxError;
    type Future = <Boxed as Service<Request<Body>>>::Future;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.0.poll_ready(cx)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        self.0.call(request)
    }
}
