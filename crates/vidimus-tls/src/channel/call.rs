//! One call: finds a connection, sends, and sends again what was never processed.

use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;

use futures::future::{Either, select};
use http::header::{HeaderValue, USER_AGENT};
use http::uri::PathAndQuery;
use http::{HeaderMap, Method, Request, Response, Uri, Version};
use hyper::body::Incoming;
use hyper::client::conn::http2::SendRequest;
use tokio::time::Sleep;
use tonic::Status;

use super::answer::ResponseBody;
use super::body::{BodySource, CallBody};
use super::connection::CallGuard;
use super::core::Core;
use super::deadline;
use super::failure::{self, Fate};
use super::status::Counting;

/// How often a request is sent again at most.
const MAX_RESENDS: u32 = 2;

/// What a call lacks that has passed its deadline.
const NO_CONNECTION: &str = "no connection yet";

/// Runs a call up to its answer's headers.
pub(super) async fn run(
    core: Arc<Core>,
    request: Request<tonic::body::Body>,
) -> Result<Response<ResponseBody>, Status> {
    Counting::add(&core.counting().calls);
    let timeout = deadline::timeout(request.headers());
    let mut expiry = timeout.map(|timeout| Box::pin(tokio::time::sleep(timeout)));
    let mut missing = NO_CONNECTION;
    let (response, guard) = before(&mut expiry, attempts(&core, request, &mut missing))
        .await
        .unwrap_or_else(|_expired| {
            if missing == NO_CONNECTION && core.is_connected() {
                missing = "every connection carries as many calls as the server allows";
            }
            Err(failure::deadline_exceeded(core.target(), missing))
        })?;
    if let Some(status) = failure::not_grpc(core.target(), guard.connection(), &response) {
        return Err(status);
    }
    Ok(response.map(|incoming| ResponseBody::new(incoming, expiry, guard)))
}

struct Expired;

/// Runs `work` until it is done or the deadline has passed.
async fn before<T>(
    expiry: &mut Option<Pin<Box<Sleep>>>,
    work: impl Future<Output = T>,
) -> Result<T, Expired> {
    let Some(expiry) = expiry else {
        return Ok(work.await);
    };
    match select(pin!(work), expiry.as_mut()).await {
        Either::Left((done, _)) => Ok(done),
        Either::Right(((), _)) => Err(Expired),
    }
}

async fn attempts(
    core: &Arc<Core>,
    request: Request<tonic::body::Body>,
    missing: &mut &'static str,
) -> Result<(Response<Incoming>, CallGuard), Status> {
    let (parts, body) = request.into_parts();
    let mut source = BodySource::new(body, core.config().resend_limit).await?;
    let head = Head::new(core, parts.method, &parts.uri, parts.headers)?;
    let mut body = source.next();
    let mut resends: u32 = 0;
    let mut refused_by = Vec::new();
    loop {
        let Some(attempt_body) = body else {
            return Err(Status::internal(
                "the request's body is gone before it was sent",
            ));
        };
        *missing = NO_CONNECTION;
        let (guard, mut sender) = open(core, &refused_by).await?;
        *missing = "no answer yet";
        let sending = sender.try_send_request(head.request(attempt_body));
        drop(sender);
        let mut error = match sending.await {
            Ok(response) => return Ok((response, guard)),
            Err(error) => error,
        };
        let given_back = error.take_message().map(Request::into_body);
        let error = error.into_error();
        let connection = guard.connection();
        let fate = failure::fate(&error, given_back.is_some());
        match fate {
            Fate::Ended => core.retire(connection),
            Fate::Refused => {
                // A server that sheds load refuses now and then, and a new handshake would only be more load: a
                // connection is left if it refuses the same call again, and not as soon as it was opened, whatever the
                // server does.
                let again = refused_by.contains(&connection.id());
                if again && connection.age() >= core.config().backoff.0 {
                    core.retire(connection);
                }
                refused_by.push(connection.id());
            }
            Fate::Unknown => {}
        }
        if let Some(untouched) = given_back {
            source.give_back(untouched);
        }
        body = match fate {
            Fate::Ended | Fate::Refused if resends < MAX_RESENDS => source.next(),
            Fate::Ended | Fate::Refused | Fate::Unknown => None,
        };
        if body.is_none() {
            return Err(failure::broken_off(core.target(), connection, error));
        }
        resends = resends.saturating_add(1);
        Counting::add(&core.counting().resends);
        tracing::debug!(target = %core.target(), error = %error, "sending a call again that was not processed");
    }
}

/// A connection that takes a request now, if possible none that refused it before.
async fn open(
    core: &Arc<Core>,
    refused_by: &[u64],
) -> Result<(CallGuard, SendRequest<CallBody>), Status> {
    loop {
        let connection = core
            .take(refused_by)
            .await
            .map_err(|error| core.unavailable(&error))?;
        let guard = CallGuard::new(Arc::clone(core), connection);
        match guard.connection().sender() {
            Some(sender) => return Ok((guard, sender)),
            // It ended between the two looks.
            None => core.retire(guard.connection()),
        }
    }
}

/// What every attempt's request begins with.
struct Head {
    method: Method,
    uri: Uri,
    headers: HeaderMap,
}

impl Head {
    fn new(core: &Core, method: Method, uri: &Uri, mut headers: HeaderMap) -> Result<Self, Status> {
        let config = core.config();
        let mut parts = http::uri::Parts::default();
        parts.scheme = Some(config.scheme.clone());
        parts.authority = Some(config.authority.clone());
        parts.path_and_query = Some(
            uri.path_and_query()
                .cloned()
                .unwrap_or_else(|| PathAndQuery::from_static("/")),
        );
        let uri = Uri::from_parts(parts)
            .map_err(|error| Status::internal(format!("cannot make the call's URI: {error}")))?;
        headers
            .entry(USER_AGENT)
            .or_insert(HeaderValue::from_static(concat!(
                "vidimus-tls/",
                env!("CARGO_PKG_VERSION")
            )));
        Ok(Self {
            method,
            uri,
            headers,
        })
    }

    fn request(&self, body: CallBody) -> Request<CallBody> {
        let mut request = Request::new(body);
        *request.method_mut() = self.method.clone();
        *request.uri_mut() = self.uri.clone();
        *request.version_mut() = Version::HTTP_2;
        request.headers_mut().clone_from(&self.headers);
        request
    }
}
