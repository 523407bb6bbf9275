//! Whether the provider serves, as `grpc.health.v1` and for the HTTP pages.
//!
//! `tonic-health`'s own service would keep `Watch` streams open for ever, and a drain would wait
//! for them; these end by themselves once they have said `NOT_SERVING`.

use std::pin::Pin;

use futures::{Stream, stream};
use tokio::sync::watch;
use tonic::{Request, Response, Status};
use tonic_health::pb::{
    HealthCheckRequest, HealthCheckResponse,
    health_check_response::ServingStatus,
    health_server::{Health, HealthServer},
};

/// The names that answer: the whole server, VirtRigaud's short name, and the service's own.
pub const SERVICES: [&str; 3] = ["", "provider", "provider.v1.Provider"];

/// The switch that turns a provider's health to `NOT_SERVING`. Clones share it.
#[derive(Clone, Debug)]
pub struct Serving(watch::Sender<bool>);

/// The `grpc.health.v1` service.
#[derive(Clone, Debug)]
pub struct HealthService(watch::Receiver<bool>);

impl Serving {
    /// Serving, until told otherwise.
    #[must_use]
    pub fn new() -> Self {
        Self(watch::Sender::new(true))
    }

    /// From here on `NOT_SERVING`; it never serves again.
    pub fn stop(&self) {
        self.0.send_replace(false);
    }

    /// True until [`Self::stop`].
    #[must_use]
    pub fn is_serving(&self) -> bool {
        *self.0.borrow()
    }

    /// The service, to be added to a server's routes.
    #[must_use]
    pub fn service(&self) -> HealthServer<HealthService> {
        HealthServer::new(HealthService(self.0.subscribe()))
    }
}

impl Default for Serving {
    fn default() -> Self {
        Self::new()
    }
}

#[tonic::async_trait]
impl Health for HealthService {
    async fn check(
        &self,
        request: Request<HealthCheckRequest>,
    ) -> Result<Response<HealthCheckResponse>, Status> {
        if !is_known(&request.into_inner().service) {
            return Err(Status::not_found("the health check knows no such service"));
        }
        Ok(Response::new(response(status(*self.0.borrow()))))
    }

    type WatchStream = Pin<Box<dyn Stream<Item = Result<HealthCheckResponse, Status>> + Send>>;

    /// A service that isn't known is said to be unknown and the stream stays, as health.proto
    /// wants it.
    async fn watch(
        &self,
        request: Request<HealthCheckRequest>,
    ) -> Result<Response<Self::WatchStream>, Status> {
        let known = is_known(&request.into_inner().service);
        let states = stream::unfold(Step::First(self.0.clone()), move |step| async move {
            match step {
                Step::First(receiver) => {
                    let serving = *receiver.borrow();
                    let next = if serving {
                        Step::Wait(receiver)
                    } else {
                        Step::End
                    };
                    Some((
                        if known {
                            status(serving)
                        } else {
                            ServingStatus::ServiceUnknown
                        },
                        next,
                    ))
                }
                Step::Wait(mut receiver) => {
                    // a switch that is gone says the same as one that is off
                    drop(receiver.wait_for(|serving| !serving).await);
                    known.then_some((ServingStatus::NotServing, Step::End))
                }
                Step::End => None,
            }
        });
        let answers = futures::StreamExt::map(states, |status| Ok(response(status)));
        Ok(Response::new(Box::pin(answers)))
    }
}

enum Step {
    First(watch::Receiver<bool>),
    Wait(watch::Receiver<bool>),
    End,
}

fn is_known(service: &str) -> bool {
    SERVICES.contains(&service)
}

const fn status(serving: bool) -> ServingStatus {
    if serving {
        ServingStatus::Serving
    } else {
        ServingStatus::NotServing
    }
}

const fn response(status: ServingStatus) -> HealthCheckResponse {
    HealthCheckResponse {
        status: status as i32,
    }
}
