//! `vidimus.testkit.v1.Echo`: one method of each kind of gRPC call, and a log of every request
//! that was executed.

use std::{
    collections::BTreeMap,
    fmt,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use tokio_stream::{Stream, StreamExt as _};
use tonic::{Extensions, Request, Response, Status, Streaming};
use vidimus_proto::testkit::v1::{
    EchoRequest, EchoResponse,
    echo_server::{Echo, EchoServer},
};

/// What the log counts at most.
const MAX_MESSAGES: usize = 1_000_000;

type Answers = Pin<Box<dyn Stream<Item = Result<EchoResponse, Status>> + Send>>;

/// The service. Its clones share one log.
#[derive(Clone)]
pub struct EchoService {
    peer: Arc<dyn Fn(&Extensions) -> String + Send + Sync>,
    log: EchoLog,
}

impl fmt::Debug for EchoService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EchoService")
            .field("log", &self.log)
            .finish_non_exhaustive()
    }
}

impl EchoService {
    /// A service that reports as `peer` what the closure makes of a request's extensions.
    pub fn new(peer: impl Fn(&Extensions) -> String + Send + Sync + 'static) -> Self {
        Self {
            peer: Arc::new(peer),
            log: EchoLog::default(),
        }
    }

    /// A service that reports no peer.
    #[must_use]
    pub fn anonymous() -> Self {
        Self::new(|_| String::new())
    }

    /// What has been executed, also after the service was handed to a server.
    #[must_use]
    pub fn log(&self) -> EchoLog {
        self.log.clone()
    }

    /// As tonic takes it.
    #[must_use]
    pub fn into_server(self) -> EchoServer<Self> {
        EchoServer::new(self)
    }
}

/// How often each message was executed, over all kinds of call.
#[derive(Clone, Debug, Default)]
pub struct EchoLog(Arc<Mutex<BTreeMap<String, u64>>>);

impl EchoLog {
    /// How often this message was executed.
    #[must_use]
    pub fn count(&self, message: &str) -> u64 {
        self.counts().get(message).copied().unwrap_or_default()
    }

    /// Every message with how often it was executed.
    #[must_use]
    pub fn counts(&self) -> BTreeMap<String, u64> {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// How many messages were executed in all.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.counts().values().sum()
    }

    fn executed(&self, message: &str) {
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if counts.len() < MAX_MESSAGES {
            *counts.entry(message.to_owned()).or_default() += 1;
        }
    }
}

#[tonic::async_trait]
impl Echo for EchoService {
    type ServerStreamStream = Answers;
    type BidiStreamStream = Answers;

    async fn unary(&self, request: Request<EchoRequest>) -> Result<Response<EchoResponse>, Status> {
        let peer = (self.peer)(request.extensions());
        let request = request.into_inner();
        self.log.executed(&request.message);
        rest(&request).await;
        Ok(Response::new(EchoResponse {
            message: request.message,
            sequence: 0,
            peer,
        }))
    }

    async fn server_stream(
        &self,
        request: Request<EchoRequest>,
    ) -> Result<Response<Answers>, Status> {
        let peer = (self.peer)(request.extensions());
        let request = request.into_inner();
        self.log.executed(&request.message);
        let last = if request.count == 0 {
            u64::MAX
        } else {
            u64::from(request.count)
        };
        let answers = tokio_stream::iter(0..last).then(move |sequence| {
            let (request, peer) = (request.clone(), peer.clone());
            async move {
                rest(&request).await;
                // An endless stream without a delay must let others run, too.
                tokio::task::yield_now().await;
                Ok(EchoResponse {
                    message: request.message,
                    sequence,
                    peer,
                })
            }
        });
        Ok(Response::new(Box::pin(answers)))
    }

    async fn client_stream(
        &self,
        request: Request<Streaming<EchoRequest>>,
    ) -> Result<Response<EchoResponse>, Status> {
        let peer = (self.peer)(request.extensions());
        let mut requests = request.into_inner();
        let mut message = String::new();
        let mut sequence = 0;
        while let Some(request) = requests.message().await? {
            self.log.executed(&request.message);
            rest(&request).await;
            message.push_str(&request.message);
            sequence += 1;
        }
        Ok(Response::new(EchoResponse {
            message,
            sequence,
            peer,
        }))
    }

    async fn bidi_stream(
        &self,
        request: Request<Streaming<EchoRequest>>,
    ) -> Result<Response<Answers>, Status> {
        let peer = (self.peer)(request.extensions());
        let log = self.log.clone();
        let mut next = 0;
        let answers = request.into_inner().then(move |request| {
            let (peer, log, sequence) = (peer.clone(), log.clone(), next);
            next += 1;
            async move {
                let request = request?;
                log.executed(&request.message);
                rest(&request).await;
                Ok(EchoResponse {
                    message: request.message,
                    sequence,
                    peer,
                })
            }
        });
        Ok(Response::new(Box::pin(answers)))
    }
}

async fn rest(request: &EchoRequest) {
    if request.delay_milliseconds > 0 {
        let delay = Duration::from_millis(u64::from(request.delay_milliseconds));
        tokio::time::sleep(delay).await;
    }
}
