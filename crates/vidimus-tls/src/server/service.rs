//! The service of one connection: the caller's service with the peer's identity, the allow-list and the count of calls
//! in flight around it.

use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::{HeaderValue, Request, Response, Version, header};
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use hyper::service::Service as HyperService;
use pin_project_lite::pin_project;
use tower::Service;
use tower::util::Oneshot;

use super::leash::Leash;
use super::registry::Entry;
use super::verdict::{Verdict, report};
use super::{BoxError, Inner};
use crate::policy::{PolicyRefusal, is_grpc, respond, trailers};

/// The client's address, in the extensions of every request that came over TCP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RemoteAddr(pub SocketAddr);

/// The service of one connection. Cloned by nobody; hyper calls it by reference.
#[derive(Debug)]
pub(super) struct PeerService<S> {
    inner: S,
    server: Arc<Inner>,
    entry: Arc<Entry>,
}

impl<S> PeerService<S> {
    pub(super) fn new(inner: S, server: Arc<Inner>, entry: Arc<Entry>) -> Self {
        Self {
            inner,
            server,
            entry,
        }
    }

    /// Why a call is refused. What a policy that only reports doesn't permit passes, but not unnoticed.
    fn refusal(&self, verdict: &Verdict, path: &str) -> Option<PolicyRefusal> {
        let refusal = verdict.permit(path).err();
        if let Some(refusal) = refusal {
            report(&self.server, &self.entry, refusal, path);
            if verdict.enforces(refusal) {
                return Some(refusal);
            }
        }
        if self.entry.is_refusing() {
            report(&self.server, &self.entry, PolicyRefusal::Withdrawn, path);
            return Some(PolicyRefusal::Withdrawn);
        }
        None
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
        let verdict = self.entry.verdict(&self.server);
        let content_type = request.headers().get(header::CONTENT_TYPE);
        if let Some(refusal) = self.refusal(&verdict, request.uri().path()) {
            if refusal == PolicyRefusal::Withdrawn && request.version() == Version::HTTP_2 {
                // A client that has other material by now sends it again over a connection of its own.
                return PeerFuture::NotProcessed;
            }
            let mut response = respond(refusal, content_type);
            if self.entry.is_refusing() && request.version() < Version::HTTP_2 {
                close_after(&mut response);
            }
            return PeerFuture::Refused {
                response: Some(response),
            };
        }
        self.server.counters.calls.add();
        let http1 = request.version() < Version::HTTP_2;
        let grpc = is_grpc(content_type);
        let leash = Leash::new(&self.server, &self.entry, &request, &verdict);
        let extensions = request.extensions_mut();
        extensions.insert(verdict.peer.clone());
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
            leash,
            grpc,
            http1,
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
            #[pin]
            leash: Option<Leash>,
            grpc: bool,
            http1: bool,
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
    B: Default,
{
    type Output = Result<Response<CountedBody<B>>, BoxError>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let (future, call, mut leash, grpc, http1) = match this {
            Projected::Passed {
                future,
                call,
                leash,
                grpc,
                http1,
            } => (future, call, leash, *grpc, *http1),
            Projected::NotProcessed => {
                return Poll::Ready(Err(h2::Error::from(h2::Reason::REFUSED_STREAM).into()));
            }
            Projected::Refused { response } => {
                return match response.take() {
                    Some(response) => Poll::Ready(Ok(response.map(CountedBody::uncounted))),
                    None => Poll::Pending,
                };
            }
        };
        let refused = leash.as_mut().as_pin_mut().and_then(Leash::refusal);
        if refused.is_none()
            && let Poll::Ready(mut response) = future.poll(context).map_err(Into::into)?
        {
            // The connection itself may not have got to it yet.
            if http1 && call.as_ref().is_some_and(|call| call.0.is_draining()) {
                close_after(&mut response);
            }
            let (call, leash) = (
                call.take(),
                leash.as_ref().get_ref().as_ref().map(Leash::renewed),
            );
            return Poll::Ready(Ok(response.map(|body| CountedBody {
                body: Some(body),
                call,
                leash,
                grpc,
            })));
        }
        let refused = match (refused, leash.as_pin_mut()) {
            (Some(refusal), _) => refusal,
            (None, Some(leash)) => ready!(leash.poll_refusal(context)),
            (None, None) => return Poll::Pending,
        };
        let grpc = grpc.then_some(HeaderValue::from_static("application/grpc"));
        Poll::Ready(Ok(
            respond(refused, grpc.as_ref()).map(CountedBody::uncounted)
        ))
    }
}

/// Tells a client of HTTP/1.1 that no other request will be answered on its connection.
fn close_after<B>(response: &mut Response<B>) {
    let close = HeaderValue::from_static("close");
    response.headers_mut().insert(header::CONNECTION, close);
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
    /// A response body that counts as a call in flight until it is dropped, and that ends with the call's permission.
    #[derive(Debug)]
    pub(super) struct CountedBody<B> {
        // `None` once the call was ended.
        #[pin]
        body: Option<B>,
        call: Option<Call>,
        #[pin]
        leash: Option<Leash>,
        grpc: bool,
    }
}

impl<B> CountedBody<B> {
    fn uncounted(body: B) -> Self {
        Self {
            body: Some(body),
            call: None,
            leash: None,
            grpc: false,
        }
    }
}

impl<B> Body for CountedBody<B>
where
    B: Body,
    B::Error: Into<BoxError>,
{
    type Data = B::Data;
    type Error = BoxError;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        let mut this = self.project();
        let Some(body) = this.body.as_mut().as_pin_mut() else {
            return Poll::Ready(None);
        };
        let refused = this.leash.as_mut().as_pin_mut().and_then(Leash::refusal);
        if refused.is_none()
            && let Poll::Ready(frame) = body.poll_frame(context)
        {
            return Poll::Ready(frame.map(|frame| frame.map_err(Into::into)));
        }
        let refused = match (refused, this.leash.as_pin_mut()) {
            (Some(refusal), _) => refusal,
            (None, Some(leash)) => ready!(leash.poll_refusal(context)),
            (None, None) => return Poll::Pending,
        };
        // What the handler still had to say is dropped, and the handler notices.
        this.body.set(None);
        *this.call = None;
        Poll::Ready(Some(if *this.grpc {
            Ok(Frame::trailers(trailers(refused)))
        } else {
            Err(refused.into())
        }))
    }

    fn is_end_stream(&self) -> bool {
        self.body.as_ref().is_none_or(Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.body
            .as_ref()
            .map_or_else(|| SizeHint::with_exact(0), Body::size_hint)
    }
}
