//! UNIX sockets: the kernel's word about the peer instead of a certificate.

use hyper_util::rt::TokioIo;
use tokio::net::{UnixListener, UnixStream};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tonic::service::Routes;
use tonic::transport::Endpoint;
use vidimus_proto::testkit::v1::echo_client::EchoClient;
use vidimus_testkit::EchoService;
use vidimus_tls::identity::PeerIdentity;
use vidimus_tls::server::{LocalPeers, Security, ServeError, Server};

use crate::support::{LogCapture, call, soon};

fn own_uid() -> u32 {
    rustix::process::geteuid().as_raw()
}

async fn try_call(peers: LocalPeers) -> (Result<String, tonic::Status>, String) {
    let log = LogCapture::start();
    let dir = tempfile::tempdir().expect("a folder");
    let path = dir.path().join("socket");
    let listener = UnixListener::bind(&path).expect("a socket");
    let server = Server::builder(Security::Local(peers)).build();
    let service = EchoService::new(|extensions| {
        extensions
            .get::<PeerIdentity>()
            .map_or_else(|| "none".to_owned(), PeerIdentity::label)
    });
    let routes = Routes::new(service.into_server());
    let stop = CancellationToken::new();
    let mut tasks = JoinSet::new();
    let token = stop.clone();
    tasks.spawn(async move { server.serve(listener.into(), routes, token).await });
    let connector = tower::service_fn(move |_| {
        let path = path.clone();
        async move { UnixStream::connect(path).await.map(TokioIo::new) }
    });
    let channel = Endpoint::from_static("http://local").connect_with_connector_lazy(connector);
    let answer = call(&mut EchoClient::new(channel))
        .await
        .map(|answer| answer.peer);
    stop.cancel();
    soon("the end", tasks.join_next())
        .await
        .expect("a task")
        .expect("no panic")
        .expect("served");
    (answer, log.text())
}

/// K15. The owner's uid is let in, known to the service and logged.
#[tokio::test]
async fn the_owner_is_served_and_logged() {
    let (answer, log) = try_call(LocalPeers::owner()).await;
    assert_eq!(answer.expect("an answer"), format!("uid={}", own_uid()));
    let pid = format!("pid={}", std::process::id());
    let logged = log.lines().any(|line| {
        line.contains("local connection accepted") && line.contains("uid=") && line.contains(&pid)
    });
    assert!(logged, "{log}");
}

/// K15. Another uid is refused before a byte of its request is read.
#[tokio::test]
async fn another_user_is_refused_and_logged() {
    let (answer, log) = try_call(LocalPeers::users([own_uid() + 1])).await;
    answer.expect_err("refused");
    assert!(log.contains("local connection refused"), "{log}");
}

/// Peer credentials don't exist on TCP, so such a server never starts.
#[tokio::test]
async fn a_local_server_refuses_a_tcp_listener() {
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0))
        .await
        .expect("a port");
    let server = Server::builder(Security::Local(LocalPeers::owner())).build();
    let routes = Routes::new(EchoService::anonymous().into_server());
    let served = server
        .serve(listener.into(), routes, CancellationToken::new())
        .await;
    assert!(
        matches!(served, Err(ServeError::LocalOverTcp)),
        "{served:?}"
    );
}
