//! The server under test.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use hyper::Request;
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tonic::service::Routes;
use tower::ServiceExt as _;
use vidimus_testkit::echo::EchoLog;
use vidimus_testkit::{EchoService, try_wait_until_async};
use vidimus_tls::config::Protocols;
use vidimus_tls::identity::PeerIdentity;
use vidimus_tls::material::{MaterialFiles, Usage};
use vidimus_tls::policy::AllowList;
use vidimus_tls::server::{Connection, Security, Server};
use vidimus_tls::watch::MaterialWatch;

use super::calling::End;
use super::{Certificates, Leaf, pipe};
use crate::support::{quick, soon};

/// Our server, with a service that knows who calls.
pub(crate) struct OurServer {
    pub(crate) address: SocketAddr,
    pub(crate) server: Server,
    pub(crate) log: EchoLog,
    shutdown: CancellationToken,
    tasks: JoinSet<()>,
}

impl OurServer {
    pub(crate) async fn start(
        certificates: &Certificates,
        leaf: Leaf,
        allow: &str,
        protocols: Protocols,
    ) -> Self {
        let folder = certificates.folder("our server", &certificates.server(leaf));
        let watch = material(&folder).await;
        let server = Server::builder(Security::mutual(watch))
            .protocols(protocols)
            .allow_list(AllowList::parse(allow).expect("a list"))
            .build();
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let service = EchoService::new(|extensions| {
            extensions
                .get::<PeerIdentity>()
                .map_or_else(String::new, PeerIdentity::label)
        });
        let log = service.log();
        let shutdown = CancellationToken::new();
        let mut tasks = JoinSet::new();
        let (serving, token) = (server.clone(), shutdown.clone());
        tasks.spawn(async move {
            let routes = Routes::new(service.into_server()).prepare();
            let listener = listener.into();
            let served = match protocols {
                Protocols::None => {
                    let handler = move |one: Connection| {
                        let routes = routes.clone().map_request(move |mut request: Request<_>| {
                            request.extensions_mut().insert(one.peer.clone());
                            request
                        });
                        pipe::serve(one.stream, routes)
                    };
                    serving.serve_raw(listener, handler, token).await
                }
                Protocols::H2 | Protocols::H2AndHttp1 => {
                    serving.serve(listener, routes, token).await
                }
            };
            served.unwrap();
        });
        Self {
            address,
            server,
            log,
            shutdown,
            tasks,
        }
    }

    /// Whether our side saw what it should; a counter may come a moment after the client's end.
    pub(super) async fn check(&self, end: End) -> Result<(), String> {
        let looked = try_wait_until_async(Duration::from_secs(5), || {
            let stats = self.server.stats();
            let failed = |word: &str| stats.failures.get(word).is_some_and(|count| *count > 0);
            let calls = (stats.refused_by_policy, self.log.total());
            let good = match end {
                End::Served => calls == (0, 1) && stats.failures.is_empty(),
                End::Closed | End::Denied => calls == (1, 0) && stats.failures.is_empty(),
                End::LeavesUs => calls == (0, 0) && stats.handshakes_ok > 0,
                End::Refused(_, word) | End::RefusesUs(word) => {
                    calls == (0, 0) && failed(word) && stats.handshakes_ok == 0
                }
            };
            std::future::ready(if good {
                Ok(())
            } else {
                Err(format!("{stats:?}"))
            })
        });
        looked
            .await
            .map_err(|late| format!("our server counted {}", late.last))
    }

    pub(crate) async fn stop(mut self) {
        self.shutdown.cancel();
        while let Some(ended) = soon("the server's end", self.tasks.join_next()).await {
            ended.unwrap();
        }
    }
}

async fn material(folder: &Path) -> MaterialWatch {
    let files = MaterialFiles::in_dir(folder);
    let started = MaterialWatch::start(files, Usage::Server, quick());
    let (watch, _nothing_changes) = soon("the material", started).await.unwrap();
    watch
}
