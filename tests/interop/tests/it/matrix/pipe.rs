//! HTTP/2 by hyper over any stream: what is left to do where a foreign program does TLS alone.

use std::convert::Infallible;

use hyper::body::Incoming;
use hyper::header::{self, HeaderValue};
use hyper::{Request, Response, Version};
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tonic::Code;
use tonic::body::Body;
use tonic::service::Routes;
use tower::Service;
use vidimus_proto::testkit::v1::echo_client::EchoClient;
use vidimus_testkit::EchoService;

use super::SERVER;
use super::calling::{Outcome, greeting};

/// One call over a stream whose other end speaks HTTP/2; the outcome, and what hyper or tonic say.
pub(crate) async fn call(
    stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
) -> (Outcome, String) {
    let started =
        hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await;
    let (sender, connection) = match started {
        Ok(started) => started,
        Err(error) => return (Outcome::Failed, error.to_string()),
    };
    let mut tasks = JoinSet::new();
    tasks.spawn(connection);
    let service = tower::service_fn(move |request| {
        let mut sender = sender.clone();
        async move { sender.send_request(request).await }
    });
    let (outcome, mut said) = ask(service).await;
    // the call hears only that the connection has ended, not how
    if matches!(outcome, Outcome::Failed)
        && let Some(Ok(Err(error))) = tasks.join_next().await
    {
        said += &format!("\n{error}: {error:?}");
    }
    (outcome, said)
}

/// One call over a stream whose other end speaks HTTP/1.1 and makes HTTP/2 of it.
pub(crate) async fn call_over_http1(
    stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
) -> (Outcome, String) {
    let started = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await;
    let (mut sender, connection) = started.unwrap();
    let mut tasks = JoinSet::new();
    tasks.spawn(async move { drop(connection.await) });
    let service = tower::service_fn(move |mut request: Request<Body>| {
        let host = HeaderValue::from_static(SERVER);
        request.headers_mut().insert(header::HOST, host);
        *request.version_mut() = Version::HTTP_11;
        sender.send_request(request)
    });
    ask(service).await
}

async fn ask(
    service: impl Service<Request<Body>, Response = Response<Incoming>, Error = hyper::Error>,
) -> (Outcome, String) {
    let origin = format!("https://{SERVER}").parse().unwrap();
    let mut client = EchoClient::with_origin(service, origin);
    match client.unary(greeting()).await {
        Ok(answer) => (Outcome::Answered(answer.into_inner()), String::new()),
        Err(status) if status.code() == Code::PermissionDenied => {
            (Outcome::Denied, status.to_string())
        }
        Err(status) => (Outcome::Failed, status.to_string()),
    }
}

/// Serves one stream until it ends.
pub(crate) async fn serve<S>(
    stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    service: S,
) where
    S: Service<Request<Incoming>, Response = Response<Body>, Error = Infallible>,
    S: Clone + Send + 'static,
    S::Future: Send,
{
    let connection = hyper::server::conn::http2::Builder::new(TokioExecutor::new())
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(service));
    // the caller hears how it ends
    drop(connection.await);
}

/// A service that doesn't know who calls.
pub(crate) fn anonymous() -> Routes {
    Routes::new(EchoService::anonymous().into_server()).prepare()
}

/// A server without TLS, for programs that do TLS in front of one.
pub(crate) async fn plaintext() -> (u16, JoinSet<()>) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        let mut connections = JoinSet::new();
        while let Ok((stream, _)) = listener.accept().await {
            connections.spawn(serve(stream, anonymous()));
        }
    });
    (port, tasks)
}
