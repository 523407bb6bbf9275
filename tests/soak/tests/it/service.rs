//! A service that publishes numbers: every stream gets each of them from where it asks on, in order.

use std::pin::Pin;

use futures::Stream;
use tokio::sync::watch;
use tonic::{Request, Response, Status, Streaming};
use vidimus_proto::testkit::v1::echo_server::Echo;
use vidimus_proto::testkit::v1::{EchoRequest, EchoResponse};

type Answers = Pin<Box<dyn Stream<Item = Result<EchoResponse, Status>> + Send>>;

/// How far the numbers have come.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Published {
    /// The last number.
    pub(crate) last: u64,
    /// There will be no more.
    pub(crate) done: bool,
}

/// Streams the numbers after the one that a request names, and answers unary calls.
#[derive(Clone, Debug)]
pub(crate) struct Numbers(pub(crate) watch::Receiver<Published>);

#[tonic::async_trait]
impl Echo for Numbers {
    type ServerStreamStream = Answers;
    type BidiStreamStream = Answers;

    async fn unary(&self, request: Request<EchoRequest>) -> Result<Response<EchoResponse>, Status> {
        Ok(Response::new(EchoResponse {
            message: request.into_inner().message,
            ..EchoResponse::default()
        }))
    }

    async fn server_stream(
        &self,
        request: Request<EchoRequest>,
    ) -> Result<Response<Answers>, Status> {
        let text = request.into_inner().message;
        let first: u64 = text
            .parse()
            .map_err(|_| Status::invalid_argument("not a number"))?;
        let answers = futures::stream::unfold((first, self.0.clone()), |(next, mut numbers)| {
            let next_answer = async move {
                loop {
                    let published = *numbers.borrow_and_update();
                    if next <= published.last {
                        let answer = EchoResponse {
                            sequence: next,
                            ..EchoResponse::default()
                        };
                        return Some((Ok(answer), (next + 1, numbers)));
                    }
                    if published.done || numbers.changed().await.is_err() {
                        return None;
                    }
                }
            };
            Box::pin(next_answer)
        });
        Ok(Response::new(Box::pin(answers)))
    }

    async fn client_stream(
        &self,
        _request: Request<Streaming<EchoRequest>>,
    ) -> Result<Response<EchoResponse>, Status> {
        Err(Status::unimplemented("not part of this"))
    }

    async fn bidi_stream(
        &self,
        _request: Request<Streaming<EchoRequest>>,
    ) -> Result<Response<Answers>, Status> {
        Err(Status::unimplemented("not part of this"))
    }
}
