//! V17: which identities may call which method.

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use tokio::task::JoinSet;
use tokio_stream::StreamExt;
use tonic::Code;
use tower::{Layer, Service, ServiceExt};
use vidimus_testkit::{Credential, wait_until_async};
use vidimus_tls::identity::PeerIdentity;
use vidimus_tls::policy::{Policy, PolicyLayer, PolicyWatch};

use crate::policy::{counted, each_kind};
use crate::support::{
    Client, DEADLINE, LogCapture, Running, SERVER, Setup, World, call, put, request, soon,
};

const KINDS: [&str; 4] = ["Unary", "ClientStream", "ServerStream", "BidiStream"];

fn policy(text: &str) -> Policy {
    let dir = tempfile::tempdir().expect("a folder");
    let file = dir.path().join("policy.yaml");
    put(&file, text);
    Policy::load(&file).expect(text)
}

async fn serve(world: &World, policy: Policy) -> Running {
    let setup = Setup {
        policy: Some(PolicyWatch::fixed(policy)),
        ..Setup::default()
    };
    Running::follow(world.dir.path(), setup).await.0
}

fn client(world: &World, name: &str) -> Client {
    Client::new(&world.pki.root).with(&leaf(world, name))
}

fn leaf(world: &World, name: &str) -> Credential {
    world.pki.leaf(name).dns(name).client().issue()
}

/// The kinds of call that pass; the others are refused with `PERMISSION_DENIED`.
async fn passing(running: &Running, client: &Client) -> Vec<&'static str> {
    let mut echo = client.echo(running.address).await;
    let outcomes = soon("four calls", each_kind(&mut echo)).await;
    let mut passing = Vec::new();
    for (kind, outcome) in KINDS.into_iter().zip(outcomes) {
        match outcome {
            Ok(_) => passing.push(kind),
            Err(status) => {
                assert_eq!(status.code(), Code::PermissionDenied, "{kind}: {status:?}");
                assert_eq!(
                    status.message(),
                    "caller is not permitted to call this method",
                    "the caller learns nothing about the list"
                );
            }
        }
    }
    passing
}

/// V17. Each kind of call has its rule; what has none is refused to everybody.
#[tokio::test]
async fn each_method_has_its_callers_and_the_rest_nobody() {
    let world = World::new();
    let running = serve(
        &world,
        policy(
            "allow: [dns:*.test]\n\
             methods:\n\
             \x20 - {match: /vidimus.testkit.v1.Echo/Unary, allow: ['*']}\n\
             \x20 - {match: /vidimus.testkit.v1.Echo/ServerStream, allow: [dns:a.test]}\n\
             \x20 - {match: /vidimus.testkit.v1.Echo/ClientStream, allow: [dns:a.test, dns:b.test]}\n",
        ),
    )
    .await;
    for (name, expected) in [
        ("a.test", &["Unary", "ClientStream", "ServerStream"][..]),
        ("b.test", &["Unary", "ClientStream"]),
        ("c.test", &["Unary"]),
    ] {
        let passing = passing(&running, &client(&world, name)).await;
        assert_eq!(passing, expected, "{name}");
    }
    running.stop().await;
}

/// V17. The longest match decides, wherever it stands; an empty list under a rule is nobody.
#[tokio::test]
async fn the_longest_match_decides() {
    let world = World::new();
    let running = serve(
        &world,
        policy(
            "methods:\n\
             \x20 - {match: /, allow: [dns:a.test]}\n\
             \x20 - {match: /vidimus.testkit.v1.Echo/ClientStream, allow: []}\n\
             \x20 - {match: /vidimus.testkit.v1.Echo/BidiStream, allow: [dns:b.test]}\n\
             \x20 - {match: /vidimus.testkit.v1.Echo/, allow: [dns:a.test, dns:b.test]}\n",
        ),
    )
    .await;
    let a = passing(&running, &client(&world, "a.test")).await;
    assert_eq!(a, ["Unary", "ServerStream"]);
    let b = passing(&running, &client(&world, "b.test")).await;
    assert_eq!(b, ["Unary", "ServerStream", "BidiStream"]);
    assert_eq!(running.server.stats().refused_by_policy, 3);
    running.stop().await;
}

/// V17, V6. A rule can't let in whom the allow-list keeps out.
#[tokio::test]
async fn a_rule_opens_nothing_that_the_allow_list_closes() {
    let world = World::new();
    let text = "allow: [dns:a.test]\nmethods: [{match: /, allow: [dns:a.test, dns:b.test]}]\n";
    let running = serve(&world, policy(text)).await;
    assert_eq!(passing(&running, &client(&world, "a.test")).await, KINDS);
    let mut echo = client(&world, "b.test").echo(running.address).await;
    let status = call(&mut echo).await.expect_err("refused");
    assert_eq!(status.code(), Code::PermissionDenied);
    assert_eq!(
        status.message(),
        "client certificate is not on the configured allow-list"
    );
    running.stop().await;
}

/// V17. Health and reflection are methods like others: with rules present they need one.
#[tokio::test]
async fn health_and_reflection_need_a_rule_too() {
    let world = World::new();
    let none = "methods: [{match: /vidimus.testkit.v1.Echo/, allow: ['*']}]\n";
    let both = "methods:\n\
         \x20 - {match: /grpc.health.v1.Health/Check, allow: ['*']}\n\
         \x20 - {match: /grpc.reflection.v1.ServerReflection/, allow: ['*']}\n";
    // The server has the health service and nothing else of these.
    let refused = [Code::PermissionDenied; 3];
    let passed = [Code::Ok, Code::PermissionDenied, Code::Unimplemented];
    for (rules, expected) in [(none, refused), (both, passed)] {
        let running = serve(&world, policy(rules)).await;
        let channel = client(&world, "a.test").channel(running.address).await;
        let channel = channel.expect("a connection");
        let mut seen = Vec::new();
        for path in [
            "/grpc.health.v1.Health/Check",
            "/grpc.health.v1.Health/Watch",
            "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
        ] {
            seen.push(soon("an answer", code_of(channel.clone(), path)).await);
        }
        assert_eq!(seen, expected, "{rules}");
        running.stop().await;
    }
}

/// The status of a call with an empty message, which asks for a server's health as a whole.
async fn code_of(mut channel: tonic::transport::Channel, path: &str) -> Code {
    let request = Request::post(format!("http://{SERVER}{path}"))
        .header(http::header::CONTENT_TYPE, "application/grpc")
        .header(http::header::TE, "trailers");
    let message = Full::new(Bytes::from_static(&[0; 5]));
    let request = request.body(tonic::body::Body::new(message));
    let ready = channel.ready().await.expect("a connection");
    let response = ready.call(request.expect("a request"));
    let (head, body) = response.await.expect("a response").into_parts();
    let body = body.collect().await.expect("a body");
    // What is refused has its status in the head, without trailers.
    let trailers = body.trailers().unwrap_or(&head.headers);
    Code::from_bytes(trailers["grpc-status"].as_bytes())
}

/// V17. The log names the rule, or says that there is none.
#[tokio::test]
async fn the_log_names_the_rule() {
    let world = World::new();
    let text = "methods: [{match: /vidimus.testkit.v1.Echo/Unary, allow: [cn:somebody]}]\n";
    let running = serve(&world, policy(text)).await;
    let log = LogCapture::start();
    let mut echo = client(&world, "a.test").echo(running.address).await;
    call(&mut echo).await.expect_err("refused");
    let mut stream = request("x");
    stream.count = 1;
    echo.server_stream(stream).await.expect_err("refused");
    for part in [
        "/vidimus.testkit.v1.Echo/Unary: cn:somebody",
        "no rule matches",
    ] {
        let lines = log.lines_with(&["WARN", "audit=true", "call refused", "a.test", part]);
        assert_eq!(lines.len(), 1, "{part}: {}", log.text());
    }
    running.stop().await;
}

/// V17. `mode: report` refuses nothing that it would, counts and logs it, and says so loudly.
#[tokio::test]
async fn reporting_lets_pass_counts_and_says_so() {
    let world = World::new();
    let log = LogCapture::start();
    let text = "mode: report\nallow: [dns:a.test]\n\
                methods: [{match: /vidimus.testkit.v1.Echo/Unary, allow: ['*']}]\n";
    let running = serve(&world, policy(text)).await;
    assert_eq!(log.lines_with(&["WARN", "only REPORTS"]).len(), 1);
    let mut echo = client(&world, "b.test").echo(running.address).await;
    for outcome in soon("four calls", each_kind(&mut echo)).await {
        outcome.expect("passes");
    }
    let stats = running.server.stats();
    assert_eq!((stats.would_be_refused, stats.refused_by_policy), (4, 0));
    let lines = log.lines_with(&["WARN", "WOULD BE refused", "b.test"]);
    assert_eq!(lines.len(), 4, "{}", log.text());
    let passing = passing(&running, &client(&world, "a.test")).await;
    assert_eq!(passing, KINDS);
    assert_eq!(running.server.stats().would_be_refused, 7);
    running.stop().await;
}

/// V17. Reporting lets nobody in who isn't verified.
#[tokio::test]
async fn reporting_lets_no_unverified_peer_in() {
    let watch = PolicyWatch::fixed(policy("mode: report\nallow: [cn:x]\n"));
    let handler = tower::service_fn(|_: Request<()>| async {
        Ok::<_, std::convert::Infallible>(Response::new(tonic::body::Body::empty()))
    });
    let mut service = PolicyLayer::new(watch).layer(handler);
    let mut plain = Request::get("/page").body(()).expect("a request");
    plain.extensions_mut().insert(PeerIdentity::Unauthenticated);
    let response = service.call(plain).await.expect("a response");
    assert_eq!(response.status(), StatusCode::UNAUTHORIZED);
}

/// V17. A tighter policy ends the running calls that it no longer permits, of every kind and in every phase, with a status
/// that says so; the connection and the calls that stay permitted go on.
#[tokio::test]
async fn tightening_ends_running_calls_and_not_the_connection() {
    let world = World::new();
    let open = policy("methods: [{match: /, allow: ['*']}]\n");
    let tight = policy(
        "methods:\n\
         \x20 - {match: /vidimus.testkit.v1.Echo/Unary, allow: ['*']}\n\
         \x20 - {match: /vidimus.testkit.v1.Echo/ServerStream, allow: [dns:stays.test]}\n",
    );
    let (watch, mut publisher) = PolicyWatch::from_memory(open);
    let setup = Setup {
        policy: Some(watch),
        ..Setup::default()
    };
    let (running, _watch) = Running::follow(world.dir.path(), setup).await;
    let mut echo = client(&world, "goes.test").echo(running.address).await;
    let mut stays = client(&world, "stays.test").echo(running.address).await;

    let endless = || counted("stream", 0);
    let mut kept = stays
        .server_stream(endless())
        .await
        .expect("a stream")
        .into_inner();
    let mut ended = echo
        .server_stream(endless())
        .await
        .expect("a stream")
        .into_inner();
    ended.next().await.expect("an answer").expect("no error");
    // One that waits between its answers, one whose response has begun, and one that has none yet.
    let quiet = vidimus_proto::testkit::v1::EchoRequest {
        delay_milliseconds: 600_000,
        ..endless()
    };
    let mut waiting = echo
        .server_stream(quiet)
        .await
        .expect("a stream")
        .into_inner();
    let silent = || tokio_stream::once(request("x")).chain(tokio_stream::pending());
    let mut bidi = echo
        .bidi_stream(silent())
        .await
        .expect("a stream")
        .into_inner();
    bidi.next().await.expect("an answer").expect("no error");
    let mut uploading = echo.clone();
    let mut uploads = JoinSet::new();
    uploads.spawn(async move { uploading.client_stream(silent()).await });
    wait_until_async(DEADLINE, || async {
        let streams: usize = running.server.connections().iter().map(|c| c.streams).sum();
        if streams == 5 { Ok(()) } else { Err(streams) }
    })
    .await;

    publisher.replace(tight);
    let refused = |status: tonic::Status, what: &str| {
        assert_eq!(status.code(), Code::PermissionDenied, "{what}: {status:?}");
    };
    for (stream, what) in [
        (&mut ended, "busy"),
        (&mut waiting, "waiting"),
        (&mut bidi, "bidi"),
    ] {
        let end = soon(what, async {
            loop {
                match stream.next().await {
                    Some(Ok(_)) => {}
                    end => return end,
                }
            }
        });
        refused(end.await.expect("a status").expect_err("ended"), what);
    }
    let upload = soon("the upload's end", uploads.join_next()).await;
    let upload = upload.expect("a task").expect("no panic");
    refused(upload.expect_err("ended"), "upload");

    call(&mut echo)
        .await
        .expect("what is still permitted passes");
    kept.next().await.expect("an answer").expect("goes on");
    let stats = running.server.stats();
    assert_eq!((stats.ended_by_policy, stats.refused_by_policy), (4, 4));
    assert_eq!(
        (stats.accepted, stats.withdrawn),
        (2, 0),
        "two connections, as before"
    );
    drop(kept);
    running.stop().await;
}

/// V17. Over HTTP/1.1 and for requests that aren't gRPC the refusal is a plain status.
#[tokio::test]
async fn other_requests_get_plain_statuses() {
    let world = World::new();
    let running = serve(&world, Policy::default()).await;
    let mut connected = client(&world, "a.test").echo(running.address).await;
    call(&mut connected).await.expect("a call");
    let peer = running.server.connections()[0].peer.clone();
    let handler = tower::service_fn(|_: Request<()>| async {
        Ok::<_, std::convert::Infallible>(Response::new(tonic::body::Body::empty()))
    });
    let watch = PolicyWatch::fixed(policy("methods: [{match: /api/, allow: [dns:a.test]}]\n"));
    let mut service = PolicyLayer::new(watch).layer(handler);
    for (path, expected) in [
        ("/api/v1", StatusCode::OK),
        ("/other", StatusCode::FORBIDDEN),
    ] {
        let mut request = Request::get(path).body(()).expect("a request");
        request.extensions_mut().insert(peer.clone());
        let response = service.call(request).await.expect("a response");
        assert_eq!(response.status(), expected, "{path}");
    }
    running.stop().await;
}
