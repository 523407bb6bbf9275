//! The allow-list: V6 for all four kinds of call.

use std::time::Duration;

use tokio_stream::StreamExt;
use tonic::{Code, Status};
use vidimus_proto::testkit::v1::echo_client::EchoClient;
use vidimus_testkit::Credential;
use vidimus_tls::policy::AllowList;

use crate::support::{Client, LogCapture, Running, Setup, World, request, soon};

pub(crate) type Echo = EchoClient<tonic::transport::Channel>;

/// Makes one call of each kind.
pub(crate) async fn each_kind(client: &mut Echo) -> [Result<String, Status>; 4] {
    let requests = || tokio_stream::iter(["a", "b"].map(request));
    let unary = client
        .unary(request("a"))
        .await
        .map(|r| r.into_inner().message);
    let client_stream = client
        .client_stream(requests())
        .await
        .map(|r| r.into_inner().message);
    let server_stream = match client.server_stream(counted("a", 2)).await {
        Ok(answers) => collect(answers.into_inner()).await,
        Err(status) => Err(status),
    };
    let bidi = match client.bidi_stream(requests()).await {
        Ok(answers) => collect(answers.into_inner()).await,
        Err(status) => Err(status),
    };
    [unary, client_stream, server_stream, bidi]
}

pub(crate) fn counted(message: &str, count: u32) -> vidimus_proto::testkit::v1::EchoRequest {
    vidimus_proto::testkit::v1::EchoRequest {
        count,
        ..request(message)
    }
}

async fn collect(
    mut answers: tonic::Streaming<vidimus_proto::testkit::v1::EchoResponse>,
) -> Result<String, Status> {
    let mut text = String::new();
    while let Some(answer) = answers.next().await {
        text.push_str(&answer?.message);
    }
    Ok(text)
}

fn leaf(world: &World) -> Credential {
    let leaf = world
        .pki
        .leaf("the-cn")
        .dns("Client.test")
        .dns("second.test");
    leaf.uri("spiffe://example/manager")
        .email("ops@client.test")
        .ip([192, 0, 2, 1].into())
        .client()
        .issue()
}

/// V6, T14. Every name form and every kind of call.
#[tokio::test]
async fn the_list_decides_for_all_four_kinds_of_call() {
    let world = World::new();
    let client = Client::new(&world.pki.root).with(&leaf(&world));
    for (allow, allowed) in [
        ("", true),
        (" , ,", true),
        ("Client.test", true),
        ("client.TEST", true),
        ("nobody.test, second.test", true),
        ("spiffe://example/manager", true),
        ("the-cn", true),
        ("nobody.test", false),
        ("*.test", false),
        ("test", false),
        ("client.test.", true),
        ("spiffe://example/Manager", false),
        ("THE-CN", false),
        ("192.0.2.1", false),
        ("ops@client.test", false),
    ] {
        let setup = Setup {
            allow,
            ..Setup::default()
        };
        let (running, _watch) = Running::follow(world.dir.path(), setup).await;
        let mut echo = client.echo(running.address).await;
        let outcomes = soon("four calls", each_kind(&mut echo)).await;
        let expected = ["a", "ab", "aa", "ab"];
        for (outcome, expected) in outcomes.into_iter().zip(expected) {
            match outcome {
                Ok(message) => assert!(allowed && message == expected, "{allow:?}: {message}"),
                Err(status) => {
                    assert!(!allowed, "{allow:?}: {status:?}");
                    assert_eq!(status.code(), Code::PermissionDenied, "{allow:?}");
                }
            }
        }
        let refused = running.server.stats().refused_by_policy;
        assert_eq!(refused, if allowed { 0 } else { 4 }, "{allow:?}");
        assert_eq!(
            running.log.total() > 0,
            allowed,
            "{allow:?}: a refused call was executed"
        );
        running.stop().await;
    }
}

/// V6. The caller learns nothing about the list; the log has everything.
#[tokio::test]
async fn the_caller_learns_nothing_and_the_log_everything() {
    let world = World::new();
    let setup = Setup {
        allow: "somebody-else, spiffe://example/other",
        ..Setup::default()
    };
    let (running, _watch) = Running::follow(world.dir.path(), setup).await;
    let log = LogCapture::start();
    let mut echo = Client::new(&world.pki.root)
        .with(&leaf(&world))
        .echo(running.address)
        .await;
    let status = soon("a call", echo.unary(request("a")))
        .await
        .expect_err("refused");
    assert_eq!(status.code(), Code::PermissionDenied);
    assert_eq!(
        status.message(),
        "client certificate is not on the configured allow-list"
    );
    let lines = log.lines_with(&["WARN", "audit=true", "call refused"]);
    assert_eq!(lines.len(), 1, "{}", log.text());
    for part in [
        "127.0.0.1:",
        "the-cn",
        "Client.test, second.test",
        "spiffe://example/manager",
        "somebody-else, spiffe://example/other",
        "/vidimus.testkit.v1.Echo/Unary",
    ] {
        assert!(lines[0].contains(part), "{} lacks {part}", lines[0]);
    }
    running.stop().await;
}

/// V6. A refused stream whose client keeps sending ends at once, and the connection goes on.
#[tokio::test]
async fn a_refused_stream_leaves_the_connection_usable() {
    let world = World::new();
    let setup = Setup {
        allow: "nobody",
        ..Setup::default()
    };
    let (running, _watch) = Running::follow(world.dir.path(), setup).await;
    let mut echo = Client::new(&world.pki.root)
        .with(&leaf(&world))
        .echo(running.address)
        .await;
    for _ in 0..3 {
        let endless = tokio_stream::iter(0..u32::MAX)
            .map(|_| request("more"))
            .throttle(Duration::from_millis(1));
        let refused = soon("the refusal", echo.bidi_stream(endless)).await;
        assert_eq!(refused.expect_err("refused").code(), Code::PermissionDenied);
    }
    assert_eq!(
        running.server.stats().accepted,
        1,
        "one connection for all of them"
    );
    running.stop().await;
}

/// V6. Without a verified peer it is UNAUTHENTICATED, whatever the list says, and the text says what is required.
#[tokio::test]
async fn without_a_verified_peer_it_is_unauthenticated() {
    use http::{Request, Response};
    use tower::{Layer, Service};
    use vidimus_tls::identity::{PeerIdentity, UnixPeer};
    use vidimus_tls::policy::PolicyLayer;

    let handler = tower::service_fn(|_: Request<()>| async {
        Ok::<_, std::convert::Infallible>(Response::new(tonic::body::Body::empty()))
    });
    let unix = UnixPeer {
        uid: 0,
        gid: 0,
        pid: None,
    };
    for list in ["", "somebody"] {
        let mut service = PolicyLayer::new(AllowList::parse(list).expect("a list")).layer(handler);
        for (peer, cause) in [
            (None, "peer is unknown"),
            (Some(PeerIdentity::Unauthenticated), "is not TLS"),
            (Some(PeerIdentity::Unix(unix)), "UNIX socket"),
        ] {
            let mut request = Request::post("/a.B/C")
                .header("content-type", "application/grpc")
                .body(())
                .expect("a request");
            if let Some(peer) = peer {
                request.extensions_mut().insert(peer);
            }
            let response = service.call(request).await.expect("a response");
            let status = Status::from_header_map(response.headers()).expect("trailers only");
            assert_eq!(status.code(), Code::Unauthenticated);
            assert!(
                status.message().contains("mutual TLS is required"),
                "{status:?}"
            );
            assert!(status.message().contains(cause), "{status:?}");
            assert_eq!(response.status(), http::StatusCode::OK);
            assert_eq!(response.headers()["content-type"], "application/grpc");
        }
    }
}
