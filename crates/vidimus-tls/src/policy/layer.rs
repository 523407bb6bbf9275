//! The policy as a tower layer, for services that are not served by [`crate::server::Server`], which applies it by itself.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use http::{Request, Response, header};
use pin_project_lite::pin_project;
use tower::{Layer, Service};

use super::{PolicyWatch, Refused, respond};
use crate::identity::PeerIdentity;

/// Refuses calls by the [`PeerIdentity`] in their extensions: unary, client-, server- and bidirectional streaming alike.
///
/// Each call is judged when it begins. A policy that becomes stricter ends no call here, and no connection, and refusals
/// are logged and not counted: only [`crate::server::Server`] knows connections and keeps counters.
#[derive(Clone, Debug)]
pub struct PolicyLayer(PolicyWatch);

impl PolicyLayer {
    /// Applies this policy, an [`super::AllowList`] for one.
    #[must_use]
    pub fn new(policy: impl Into<PolicyWatch>) -> Self {
        Self(policy.into())
    }
}

impl<S> Layer<S> for PolicyLayer {
    type Service = PolicyService<S>;

    fn layer(&self, inner: S) -> Self::Service {
        PolicyService {
            inner,
            policy: self.0.clone(),
        }
    }
}

/// A service behind a policy.
#[derive(Clone, Debug)]
pub struct PolicyService<S> {
    inner: S,
    policy: PolicyWatch,
}

impl<S, ReqBody, ResBody> Service<Request<ReqBody>> for PolicyService<S>
where
    S: Service<Request<ReqBody>, Response = Response<ResBody>>,
    ResBody: Default,
{
    type Response = Response<ResBody>;
    type Error = S::Error;
    type Future = PolicyFuture<S::Future, ResBody>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<ReqBody>) -> Self::Future {
        let policy = self.policy.current();
        let peer = request.extensions().get::<PeerIdentity>();
        let path = request.uri().path();
        if let Err(refusal) = policy.check(peer, path) {
            let refused = Refused {
                refusal,
                peer,
                remote: "",
                path,
                policy: &policy,
            };
            refused.log();
            if policy.enforces(refusal) {
                let response = respond(refusal, request.headers().get(header::CONTENT_TYPE));
                return PolicyFuture {
                    state: State::Refused {
                        response: Some(response),
                    },
                };
            }
        }
        PolicyFuture {
            state: State::Passed {
                future: self.inner.call(request),
            },
        }
    }
}

pin_project! {
    /// The response of an [`PolicyService`].
    #[derive(Debug)]
    pub struct PolicyFuture<F, B> {
        #[pin]
        state: State<F, B>,
    }
}

pin_project! {
    #[derive(Debug)]
    #[project = Projected]
    enum State<F, B> {
        Passed {
            #[pin]
            future: F,
        },
        Refused {
            response: Option<Response<B>>,
        },
    }
}

impl<F, B, E> Future for PolicyFuture<F, B>
where
    F: Future<Output = Result<Response<B>, E>>,
{
    type Output = Result<Response<B>, E>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        match self.project().state.project() {
            Projected::Passed { future } => Poll::Ready(ready!(future.poll(context))),
            Projected::Refused { response } => match response.take() {
                Some(response) => Poll::Ready(Ok(response)),
                None => Poll::Pending,
            },
        }
    }
}
