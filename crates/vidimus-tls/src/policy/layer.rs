//! The allow-list as a tower layer, for services that are not served by [`crate::server::Server`], which applies the list
//! by itself.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use http::{Request, Response, header};
use pin_project_lite::pin_project;
use tower::{Layer, Service};

use super::{AllowList, log_refusal, respond};
use crate::identity::PeerIdentity;

/// Refuses calls by the [`PeerIdentity`] in their extensions: unary, client-, server- and bidirectional streaming alike.
#[derive(Clone, Debug)]
pub struct AllowListLayer(Arc<AllowList>);

impl AllowListLayer {
    /// Applies this list.
    #[must_use]
    pub fn new(list: AllowList) -> Self {
        Self(Arc::new(list))
    }
}

impl<S> Layer<S> for AllowListLayer {
    type Service = AllowListService<S>;

    fn layer(&self, inner: S) -> Self::Service {
        AllowListService {
            inner,
            list: Arc::clone(&self.0),
        }
    }
}

/// A service behind an allow-list.
#[derive(Clone, Debug)]
pub struct AllowListService<S> {
    inner: S,
    list: Arc<AllowList>,
}

impl<S, ReqBody, ResBody> Service<Request<ReqBody>> for AllowListService<S>
where
    S: Service<Request<ReqBody>, Response = Response<ResBody>>,
    ResBody: Default,
{
    type Response = Response<ResBody>;
    type Error = S::Error;
    type Future = AllowListFuture<S::Future, ResBody>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<ReqBody>) -> Self::Future {
        let peer = request.extensions().get::<PeerIdentity>();
        match self.list.check(peer) {
            Ok(()) => {
                let future = self.inner.call(request);
                AllowListFuture {
                    state: State::Passed { future },
                }
            }
            Err(refusal) => {
                log_refusal(refusal, peer, "", request.uri().path(), &self.list);
                let response = respond(refusal, request.headers().get(header::CONTENT_TYPE));
                AllowListFuture {
                    state: State::Refused {
                        response: Some(response),
                    },
                }
            }
        }
    }
}

pin_project! {
    /// The response of an [`AllowListService`].
    #[derive(Debug)]
    pub struct AllowListFuture<F, B> {
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

impl<F, B, E> Future for AllowListFuture<F, B>
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
