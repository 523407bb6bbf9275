//! An answer's body: ends with the call's deadline, and holds its connection until it has ended.

use std::future::Future as _;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use tokio::time::Sleep;
use tonic::Status;

use super::connection::CallGuard;
use super::failure;

/// The body of an answer. Dropping it cancels the call.
#[derive(Debug)]
pub struct ResponseBody {
    /// `None` once it has ended.
    open: Option<Open>,
}

#[derive(Debug)]
struct Open {
    incoming: Incoming,
    deadline: Option<Pin<Box<Sleep>>>,
    call: CallGuard,
}

impl ResponseBody {
    pub(super) fn new(
        incoming: Incoming,
        deadline: Option<Pin<Box<Sleep>>>,
        call: CallGuard,
    ) -> Self {
        Self {
            open: Some(Open {
                incoming,
                deadline,
                call,
            }),
        }
    }
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let Some(open) = &mut self.open else {
            return Poll::Ready(None);
        };
        let expired = open
            .deadline
            .as_mut()
            .is_some_and(|sleep| sleep.as_mut().poll(cx).is_ready());
        let outcome = if expired {
            // A stream that always has something ready must not outlast the deadline.
            Some(Err(failure::deadline_exceeded(
                open.call.core().target(),
                "the answer was not complete",
            )))
        } else {
            match Pin::new(&mut open.incoming).poll_frame(cx) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Some(Ok(frame))) => return Poll::Ready(Some(Ok(frame))),
                Poll::Ready(None) => None,
                Poll::Ready(Some(Err(error))) => Some(Err(failure::broken_off(
                    open.call.core().target(),
                    open.call.connection(),
                    error,
                ))),
            }
        };
        self.open = None;
        Poll::Ready(outcome)
    }

    fn is_end_stream(&self) -> bool {
        self.open
            .as_ref()
            .is_none_or(|open| open.incoming.is_end_stream())
    }

    fn size_hint(&self) -> SizeHint {
        self.open
            .as_ref()
            .map_or_else(|| SizeHint::with_exact(0), |open| open.incoming.size_hint())
    }
}
