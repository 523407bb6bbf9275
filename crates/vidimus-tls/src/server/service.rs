//! The service of one connection: the caller's service with the peer's identity, the allow-list and the count of calls
//! in flight around it.

use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll, ready};
use std::time::Instant;

use bytes::Bytes;
use http::{HeaderValue, Request, Response, Version, header};
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use hyper::service::Service as HyperService;
use pin_project_lite::pin_project;
use tower::Service;
use tower::util::Oneshot;

use super::registry::Entry;
use super::{BoxError, Inner, Security};
use crate::policy::{PolicyRefusal, log_refusal, respond};

/// The client's address, in the extensions of every request that came over TCP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RemoteAddr(pub SocketAddr);

/// The service of one connection. Cloned by nobody; hyper calls it by reference.
#[derive(Debug)]
pub(super) struct PeerService<S> {
    inner: S,
    server: Arc<Inner>,
    entry: Arc<Entry>,
    /// Decided once: neither the peer nor the list changes while the connection lives.
    verdict: Result<(), PolicyRefusal>,
}

impl<S> PeerService<S> {
    pub(super) fn new(inner: S, server: Arc<Inner>, entry: Arc<Entry>) -> Self {
        let verdict = verdict(&server, &entry);
        Self {
            inner,
            server,
            entry,
            verdict,
        }
    }

    fn refusal(&self) -> Option<PolicyRefusal> {
        if self.entry.is_withdrawn() {
            return Some(PolicyRefusal::Withdrawn);
        }
        self.verdict.err()
    }
}

/// What the allow-list says of a connection's peer.
pub(super) fn verdict(server: &Inner, entry: &Entry) -> Result<(), PolicyRefusal> {
    match &server.security {
        Security::Mutual { .. } => server.allow_list.check(Some(&entry.peer)),
        Security::Plaintext(_) | Security::Local(_) => Ok(()),
    }
}

/// Counts, reports and logs a refused call; for a whole connection `path` is empty.
pub(super) fn report(server: &Inner, entry: &Entry, refusal: PolicyRefusal, path: &str) {
    server.counters.refused_by_policy.add();
    server.report_call_refused(entry, path, &refusal);
    if let Some(suppressed) = server.refusal_log.permit(Instant::now()) {
        if suppressed > 0 {
            tracing::warn!(suppressed, "refused calls were not logged one by one");
        }
        log_refusal(
            refusal,
            Some(&entry.peer),
            &entry.remote,
            path,
            &server.allow_list,
        );
    }
}

impl<S, B> HyperService<Request<Incoming>> for PeerService<S>
where
    S: Service<Request<Incoming>, Response = Response<B>> + Clone,
    S::Error: Into<BoxError>,
    B: Body<Data = Bytes> + Default,
    B::Error: Into<BoxError>,
{
    type Response = Response<CountedBody<B>>;
    type Error = BoxError;
    type Future = PeerFuture<S, B>;

    fn call(&self, mut request: Request<Incoming>) -> Self::Future {
        if let Some(refusal) = self.refusal() {
            report(&self.server, &self.entry, refusal, request.uri().path());
            if refusal == PolicyRefusal::Withdrawn && request.version() == Version::HTTP_2 {
                // A client that has other material by now sends it again over a connection of its own.
                return PeerFuture::NotProcessed;
            }
            let content_type = request.headers().get(header::CONTENT_TYPE);
            let mut response = respond(refusal, content_type);
            if refusal == PolicyRefusal::Withdrawn {
                let close = HeaderValue::from_static("close");
                response.headers_mut().insert(header::CONNECTION, close);
            }
            return PeerFuture::Refused {
                response: Some(response),
            };
        }
        self.server.counters.calls.add();
        let extensions = request.extensions_mut();
        extensions.insert(self.entry.peer.clone());
        extensions.insert(self.entry.id);
        if let Some(address) = self.entry.address {
            extensions.insert(RemoteAddr(address));
            #[cfg(feature = "tonic")]
            // Where tonic's `Request::remote_addr` looks.
            extensions.insert(tonic::transport::server::TcpConnectInfo {
                local_addr: None,
                remote_addr: Some(address),
            });
        }
        PeerFuture::Passed {
            future: Oneshot::new(self.inner.clone(), request),
            call: Some(Call::begin(&self.entry)),
        }
    }
}

pin_project! {
    /// The response of a [`PeerService`].
    #[project = Projected]
    pub(super) enum PeerFuture<S: Service<Request<Incoming>>, B> {
        Passed {
            #[pin]
            future: Oneshot<S, Request<Incoming>>,
            call: Option<Call>,
        },
        Refused {
            response: Option<Response<B>>,
        },
        /// Ends with `REFUSED_STREAM`, which says that the request may be sent again (RFC 9113 §8.7).
        NotProcessed,
    }
}

impl<S, B> Future for PeerFuture<S, B>
where
    S: Service<Request<Incoming>, Response = Response<B>>,
    S::Error: Into<BoxError>,
{
    type Output = Result<Response<CountedBody<B>>, BoxError>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let (response, call) = match self.project() {
            Projected::Passed { future, call } => {
                let response = ready!(future.poll(context)).map_err(Into::into)?;
                (response, call.take())
            }
            Projected::NotProcessed => {
                return Poll::Ready(Err(h2::Error::from(h2::Reason::REFUSED_STREAM).into()));
            }
            Projected::Refused { response } => match response.take() {
                Some(response) => (response, None),
                None => return Poll::Pending,
            },
        };
        Poll::Ready(Ok(response.map(|body| CountedBody { body, _call: call })))
    }
}

/// A call in flight: counted from its request's headers to the end of its response.
#[derive(Debug)]
pub(super) struct Call(Arc<Entry>);

impl Call {
    fn begin(entry: &Arc<Entry>) -> Self {
        entry.streams.fetch_add(1, Ordering::Relaxed);
        entry.activity.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(entry))
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        self.0.streams.fetch_sub(1, Ordering::Relaxed);
        self.0.activity.fetch_add(1, Ordering::Relaxed);
    }
}

pin_project! {
    /// A response body that counts as a call in flight until it is dropped.
    #[derive(Debug)]
    pub(super) struct CountedBody<B> {
        #[pin]
        body: B,
        _call: Option<Call>,
    }
}

impl<B: Body> Body for CountedBody<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        self.project().body.poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
