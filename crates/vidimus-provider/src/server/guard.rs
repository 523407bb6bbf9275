//! What stands around every handler: a panic becomes `INTERNAL`, the caller's deadline is kept,
//! and the end of each call is logged.

use std::{
    convert::Infallible,
    panic::AssertUnwindSafe,
    pin::Pin,
    task::{Context, Poll},
    time::{Duration, Instant},
};

use futures::FutureExt as _;
use http::{HeaderMap, Request, Response};
use tonic::{Code, Status};
use tower::Service;
use vidimus_daemon::tasks::panic_text;

/// gRPC over HTTP/2, "Timeout": at most 8 digits and a unit.
const MAX_TIMEOUT_DIGITS: usize = 8;
/// Longer than any process runs.
const NO_DEADLINE: Duration = Duration::from_secs(30 * 365 * 24 * 3_600);

/// The service with its guard.
#[derive(Clone, Debug)]
pub(super) struct Guarded<S>(pub(super) S);

impl<S, Q, B> Service<Request<Q>> for Guarded<S>
where
    S: Service<Request<Q>, Response = Response<B>, Error = Infallible>,
    S::Future: Send + 'static,
    B: Default,
{
    type Response = Response<B>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<B>, Infallible>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.0.poll_ready(context)
    }

    fn call(&mut self, request: Request<Q>) -> Self::Future {
        let path = request.uri().path().to_owned();
        let deadline = deadline(request.headers());
        let begin = Instant::now();
        let handler = AssertUnwindSafe(self.0.call(request)).catch_unwind();
        Box::pin(async move {
            // without a deadline the handler takes as long as it takes
            let limited = tokio::time::timeout(deadline.unwrap_or(NO_DEADLINE), handler);
            let outcome = limited.await.unwrap_or_else(|_| {
                Ok(Ok(Status::deadline_exceeded(
                    "the call's deadline has passed",
                )
                .into_http()))
            });
            let response = match outcome {
                Ok(Ok(response)) => response,
                Ok(Err(never)) => match never {},
                Err(panic) => {
                    let panic = panic_text(panic.as_ref());
                    tracing::error!(path, panic, "a handler panicked");
                    // callers learn nothing about the inside
                    Status::internal("internal error").into_http()
                }
            };
            log(&path, &response, begin.elapsed());
            Ok(response)
        })
    }
}

/// A refusal comes as a response without a body, whose status is among the headers; a call that
/// went well says so in its trailers, which are still to come.
fn log<B>(path: &str, response: &Response<B>, took: Duration) {
    let code = Status::from_header_map(response.headers()).map_or(Code::Ok, |status| status.code());
    match code {
        Code::Ok => tracing::debug!(path, ?took, "call answered"),
        Code::Internal | Code::Unknown | Code::DataLoss => {
            tracing::error!(path, ?took, ?code, "call failed");
        }
        _ => tracing::info!(path, ?took, ?code, "call refused"),
    }
}

/// `grpc-timeout`: a number and one of `H`, `M`, `S`, `m`, `u`, `n`. What can't be read is no
/// deadline.
fn deadline(headers: &HeaderMap) -> Option<Duration> {
    let text = headers.get("grpc-timeout")?.to_str().ok()?;
    let (digits, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    if digits.len() > MAX_TIMEOUT_DIGITS || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let number: u64 = digits.parse().ok()?;
    match unit {
        "H" => Some(Duration::from_secs(number * 3_600)),
        "M" => Some(Duration::from_secs(number * 60)),
        "S" => Some(Duration::from_secs(number)),
        "m" => Some(Duration::from_millis(number)),
        "u" => Some(Duration::from_micros(number)),
        "n" => Some(Duration::from_nanos(number)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;
    use tower::ServiceExt as _;

    use super::*;

    fn timeout(text: &'static str) -> Option<Duration> {
        let mut headers = HeaderMap::new();
        headers.insert("grpc-timeout", HeaderValue::from_static(text));
        deadline(&headers)
    }

    #[test]
    fn the_deadline_is_read_in_every_unit_and_nonsense_is_none() {
        assert_eq!(timeout("2H"), Some(Duration::from_secs(7_200)));
        assert_eq!(timeout("3M"), Some(Duration::from_secs(180)));
        assert_eq!(timeout("4S"), Some(Duration::from_secs(4)));
        assert_eq!(timeout("5m"), Some(Duration::from_millis(5)));
        assert_eq!(timeout("6u"), Some(Duration::from_micros(6)));
        assert_eq!(timeout("99999999n"), Some(Duration::from_nanos(99_999_999)));
        for nonsense in ["", "S", "5", "999999999S", "-1S", "+1S", "1.5S", "1s"] {
            assert_eq!(timeout(nonsense), None, "{nonsense:?}");
        }
    }

    #[tokio::test]
    async fn a_panic_becomes_internal_and_the_text_stays_inside() {
        let service = tower::service_fn(|panics: Request<bool>| async move {
            assert!(!panics.into_body(), "the secret of the machine room");
            Ok(Response::new(String::new()))
        });
        let guarded = Guarded(service);
        let good = guarded.clone().oneshot(Request::new(false)).await.unwrap();
        assert!(Status::from_header_map(good.headers()).is_none());
        let bad = guarded.oneshot(Request::new(true)).await.unwrap();
        let status = Status::from_header_map(bad.headers()).unwrap();
        assert_eq!(
            (status.code(), status.message()),
            (Code::Internal, "internal error")
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_handler_that_outlasts_the_callers_deadline_is_ended() {
        let service = tower::service_fn(|request: Request<Duration>| async move {
            tokio::time::sleep(request.into_body()).await;
            Ok(Response::new(String::new()))
        });
        for (seconds, expected) in [(1, None), (3, Some(Code::DeadlineExceeded))] {
            let mut request = Request::new(Duration::from_secs(seconds));
            request
                .headers_mut()
                .insert("grpc-timeout", HeaderValue::from_static("2S"));
            let response = Guarded(service).oneshot(request).await.unwrap();
            let code = Status::from_header_map(response.headers()).map(|status| status.code());
            assert_eq!(code, expected);
        }
    }
}
