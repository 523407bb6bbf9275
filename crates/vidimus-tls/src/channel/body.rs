//! A request's body, kept as long as the request may have to be sent again.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use bytes::{Buf as _, Bytes};
use http_body::{Body, Frame};
use tonic::Status;

/// The compression flag and the length before each gRPC message.
const MESSAGE_HEADER: usize = 5;

/// Where the bodies of a call's attempts come from.
#[derive(Debug)]
pub(super) enum BodySource {
    /// One message and nothing more: unary and server-streaming calls.
    Whole {
        message: Bytes,
        /// Whether it may be kept for another attempt.
        kept: bool,
        sent: bool,
    },
    /// Messages that come one by one.
    Stream {
        stream: Arc<Mutex<Stream>>,
        attempts: u64,
    },
}

/// A stream of messages, lent to one attempt at a time.
#[derive(Debug)]
pub(super) struct Stream {
    /// Read ahead to find out what kind of call it is.
    ahead: VecDeque<Frame<Bytes>>,
    rest: tonic::body::Body,
    /// The attempt that may read.
    attempt: u64,
    /// Whether any of it was handed over to be written.
    written: bool,
}

impl BodySource {
    /// Finds out whether the call has one message that is there already. Waits for nothing.
    ///
    /// # Errors
    ///
    /// The caller's own, when it cannot encode its message.
    pub(super) async fn new(mut body: tonic::body::Body, limit: usize) -> Result<Self, Status> {
        let mut ahead = VecDeque::new();
        while ahead.len() < 2 {
            match read_ahead(&mut body).await? {
                Ahead::End => match one_message(&ahead) {
                    Some(message) => {
                        let kept = message.len() <= limit;
                        return Ok(Self::Whole {
                            message,
                            kept,
                            sent: false,
                        });
                    }
                    None => break,
                },
                Ahead::Frame(frame) => ahead.push_back(frame),
                Ahead::Later => break,
            }
        }
        let stream = Stream {
            ahead,
            rest: body,
            attempt: 0,
            written: false,
        };
        Ok(Self::Stream {
            stream: Arc::new(Mutex::new(stream)),
            attempts: 0,
        })
    }

    /// The body for the next attempt; `None` if too much of it is gone.
    pub(super) fn next(&mut self) -> Option<CallBody> {
        match self {
            Self::Whole {
                message,
                kept: true,
                ..
            } => Some(CallBody(Inner::Whole(message.clone()))),
            Self::Whole { sent: true, .. } => None,
            Self::Whole { message, sent, .. } => {
                *sent = true;
                Some(CallBody(Inner::Whole(std::mem::take(message))))
            }
            Self::Stream { stream, attempts } => {
                let mut state = lock(stream);
                if state.written {
                    return None;
                }
                *attempts = attempts.saturating_add(1);
                state.attempt = *attempts;
                Some(CallBody(Inner::Stream {
                    stream: Arc::clone(stream),
                    attempt: *attempts,
                }))
            }
        }
    }

    /// Takes back a body that hyper never touched.
    pub(super) fn give_back(&mut self, body: CallBody) {
        if let (
            Self::Whole {
                message,
                kept: false,
                sent,
            },
            CallBody(Inner::Whole(returned)),
        ) = (self, body)
        {
            *message = returned;
            *sent = false;
        }
    }
}

/// The body of one attempt.
#[derive(Debug)]
pub(super) struct CallBody(Inner);

#[derive(Debug)]
enum Inner {
    Whole(Bytes),
    Stream {
        stream: Arc<Mutex<Stream>>,
        attempt: u64,
    },
}

impl Body for CallBody {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        match &mut self.0 {
            Inner::Whole(message) if message.is_empty() => Poll::Ready(None),
            Inner::Whole(message) => Poll::Ready(Some(Ok(Frame::data(std::mem::take(message))))),
            Inner::Stream { stream, attempt } => lock(stream).poll_frame(*attempt, cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            Inner::Whole(message) => message.is_empty(),
            Inner::Stream { stream, .. } => {
                let stream = lock(stream);
                stream.ahead.is_empty() && stream.rest.is_end_stream()
            }
        }
    }
}

impl Stream {
    fn poll_frame(
        &mut self,
        attempt: u64,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        if attempt != self.attempt {
            // The connection of an earlier attempt; its stream is closed already.
            return Poll::Ready(Some(Err(Status::cancelled(
                "the call was sent again elsewhere",
            ))));
        }
        let frame = match self.ahead.pop_front() {
            Some(frame) => Poll::Ready(Some(Ok(frame))),
            None => Pin::new(&mut self.rest).poll_frame(cx),
        };
        self.written |= frame.is_ready();
        frame
    }
}

fn lock(stream: &Mutex<Stream>) -> MutexGuard<'_, Stream> {
    stream.lock().unwrap_or_else(PoisonError::into_inner)
}

enum Ahead {
    End,
    Frame(Frame<Bytes>),
    Later,
}

async fn read_ahead(body: &mut tonic::body::Body) -> Result<Ahead, Status> {
    if body.is_end_stream() {
        return Ok(Ahead::End);
    }
    poll_fn(|cx| {
        Poll::Ready(match Pin::new(&mut *body).poll_frame(cx) {
            Poll::Pending => Ok(Ahead::Later),
            Poll::Ready(None) => Ok(Ahead::End),
            Poll::Ready(Some(Ok(frame))) => Ok(Ahead::Frame(frame)),
            Poll::Ready(Some(Err(status))) => Err(status),
        })
    })
    .await
}

/// The content of a body that has ended, if it is exactly one gRPC message.
fn one_message(frames: &VecDeque<Frame<Bytes>>) -> Option<Bytes> {
    let (1, Some(data)) = (frames.len(), frames.front().and_then(Frame::data_ref)) else {
        return None;
    };
    let mut header = data.get(..MESSAGE_HEADER)?;
    header.advance(1);
    let length = usize::try_from(header.get_u32()).ok()?;
    (data.len().checked_sub(MESSAGE_HEADER)? == length).then(|| data.clone())
}

#[cfg(test)]
mod tests {
    use futures::stream;
    use http_body_util::{BodyExt as _, StreamBody};

    use super::*;

    fn message(text: &str) -> Bytes {
        let length = u32::try_from(text.len()).expect("a short text");
        [&[0], length.to_be_bytes().as_slice(), text.as_bytes()]
            .concat()
            .into()
    }

    fn body(frames: Vec<Bytes>) -> tonic::body::Body {
        tonic::body::Body::new(StreamBody::new(stream::iter(
            frames
                .into_iter()
                .map(|data| Ok::<_, Status>(Frame::data(data))),
        )))
    }

    async fn content(body: CallBody) -> Bytes {
        body.collect()
            .await
            .expect("a body without errors")
            .to_bytes()
    }

    #[tokio::test]
    async fn one_message_can_be_sent_again_as_long_as_it_is_small_enough() {
        let mut source = BodySource::new(body(vec![message("hello")]), 10)
            .await
            .expect("a body");
        for _ in 0..3 {
            assert_eq!(
                content(source.next().expect("a body for each attempt")).await,
                message("hello")
            );
        }
        let mut source = BodySource::new(body(vec![message("hello")]), 9)
            .await
            .expect("a body");
        assert_eq!(
            content(source.next().expect("a body for the first attempt")).await,
            message("hello")
        );
        assert!(source.next().is_none());
    }

    #[tokio::test]
    async fn a_message_too_large_to_keep_can_be_sent_again_if_it_comes_back_untouched() {
        let mut source = BodySource::new(body(vec![message("hello")]), 1)
            .await
            .expect("a body");
        let untouched = source.next().expect("a body for the first attempt");
        source.give_back(untouched);
        assert_eq!(
            content(source.next().expect("the same body")).await,
            message("hello")
        );
    }

    #[tokio::test]
    async fn a_stream_of_messages_is_sent_again_only_if_nothing_was_written() {
        let frames = vec![message("a"), message("b"), message("c")];
        let mut source = BodySource::new(body(frames.clone()), 1000)
            .await
            .expect("a body");
        let mut first = source.next().expect("a body");
        let second = source.next().expect("nothing was written");
        assert!(
            first.frame().await.expect("an answer").is_err(),
            "only the last attempt may read"
        );
        assert_eq!(content(second).await, frames.concat());
        assert!(source.next().is_none());
    }

    #[tokio::test]
    async fn two_messages_in_one_frame_are_a_stream() {
        let both = Bytes::from([message("a"), message("b")].concat());
        let mut source = BodySource::new(body(vec![both.clone()]), 1000)
            .await
            .expect("a body");
        assert_eq!(content(source.next().expect("a body")).await, both);
        assert!(source.next().is_none());
    }
}
