//! What is sent again and what never is, against a server that is h2 itself and does what each test says.

use std::collections::VecDeque;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use h2::server::SendResponse;
use h2::{Reason, RecvStream};
use http::{HeaderMap, HeaderValue, Response};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, mpsc};
use tokio::task::JoinSet;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Code, Request, Status};
use vidimus_proto::testkit::v1::EchoRequest;
use vidimus_proto::testkit::v1::echo_client::EchoClient;
use vidimus_tls::channel::{Channel, ClientTls};

use super::build;
use crate::support::{DEADLINE, SERVER, request, soon};

/// What the server does with one request.
#[derive(Clone, Copy, Debug)]
enum Act {
    /// Answers well.
    Answer,
    /// Resets the stream after reading a part of the body.
    Reset(Reason),
    /// Cuts the connection after reading a part of the body.
    Cut,
    /// Sends the headers of an answer, and resets the stream once the test says that they have arrived.
    AnswerThenReset(Reason),
    /// Ends the connection with a GOAWAY that names the last stream that may have been processed: 0 is none, 1 is the first.
    GoAway(Reason, u8),
    /// Answers with a page, as a proxy does that has nobody to ask.
    Page(u16),
    /// Never answers.
    Silence,
}

/// A server that follows its script, one act a request, over as many connections as it takes; then it answers.
struct Scripted {
    address: SocketAddr,
    seen: Arc<Mutex<Vec<u64>>>,
    headers_arrived: Arc<Notify>,
    _tasks: JoinSet<()>,
}

impl Scripted {
    async fn start(script: &[Act]) -> Self {
        Self::start_with(script, 100).await
    }

    /// The same with so many calls at once on a connection.
    async fn start_with(script: &[Act], max_streams: u32) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let script = Arc::new(Mutex::new(VecDeque::from(script.to_vec())));
        let seen = Arc::new(Mutex::new(Vec::new()));
        let mut tasks = JoinSet::new();
        let headers_arrived = Arc::new(Notify::new());
        let (requests, arrived) = (Arc::clone(&seen), Arc::clone(&headers_arrived));
        tasks.spawn(async move {
            let mut connections = JoinSet::new();
            let mut id = 0;
            while let Ok((socket, _)) = listener.accept().await {
                id += 1;
                let (script, requests) = (Arc::clone(&script), Arc::clone(&requests));
                let arrived = Arc::clone(&arrived);
                connections.spawn(serve(socket, id, max_streams, script, requests, arrived));
            }
        });
        Self {
            address,
            seen,
            headers_arrived,
            _tasks: tasks,
        }
    }

    /// A channel to which no connection is too young to be left for what it refuses.
    fn channel(&self) -> Channel {
        self.channel_that_waits(Duration::ZERO)
    }

    /// A channel that waits so long after a failed attempt.
    fn channel_that_waits(&self, backoff: Duration) -> Channel {
        let target = self.address.to_string();
        let builder = Channel::builder(&target, SERVER, ClientTls::Plaintext);
        build(builder.backoff(backoff, backoff))
    }

    /// The connection of each request, in order.
    fn seen(&self) -> Vec<u64> {
        self.seen.lock().expect("the list").clone()
    }
}

async fn serve(
    mut socket: TcpStream,
    id: u64,
    max_streams: u32,
    script: Arc<Mutex<VecDeque<Act>>>,
    seen: Arc<Mutex<Vec<u64>>>,
    headers_arrived: Arc<Notify>,
) {
    let next = script.lock().expect("the script").front().copied();
    if let Some(Act::GoAway(reason, last)) = next {
        // A client that hangs up is a failure of the test elsewhere.
        let _ended = refuse_with_goaway(&mut socket, reason, last, || {
            seen.lock().expect("the list").push(id);
            script.lock().expect("the script").pop_front();
        })
        .await;
        return;
    }
    let mut builder = h2::server::Builder::new();
    builder.max_concurrent_streams(max_streams);
    let Ok(mut connection) = builder.handshake(socket).await else {
        return;
    };
    let mut calls = JoinSet::new();
    while let Some(Ok((request, respond))) = connection.accept().await {
        seen.lock().expect("the list").push(id);
        let act = script
            .lock()
            .expect("the script")
            .pop_front()
            .unwrap_or(Act::Answer);
        let mut body = request.into_body();
        if let Act::Cut = act {
            // Drives the connection while some of the body comes in.
            tokio::select! {
                _data = body.data() => {}
                _other = connection.accept() => {}
            }
            return;
        }
        calls.spawn(perform(act, body, respond, Arc::clone(&headers_arrived)));
    }
}

/// The frames of a server that ends the connection at the first request, and says which stream was the last that it may
/// have processed (RFC 9113 §6.8). h2 itself cannot be made to say so.
async fn refuse_with_goaway(
    socket: &mut TcpStream,
    reason: Reason,
    last: u8,
    seen: impl Fn(),
) -> io::Result<()> {
    const SETTINGS: u8 = 4;
    const HEADERS: u8 = 1;
    socket
        .write_all(&[0, 0, 0, SETTINGS, 0, 0, 0, 0, 0])
        .await?;
    let mut preface = [0; 24];
    socket.read_exact(&mut preface).await?;
    loop {
        let mut head = [0; 9];
        socket.read_exact(&mut head).await?;
        let length = u64::from(u32::from_be_bytes([0, head[0], head[1], head[2]]));
        tokio::io::copy(&mut (&mut *socket).take(length), &mut tokio::io::sink()).await?;
        match (head[3], head[4]) {
            (SETTINGS, 0) => {
                socket
                    .write_all(&[0, 0, 0, SETTINGS, 1, 0, 0, 0, 0])
                    .await?;
            }
            (HEADERS, _) => break,
            _ => {}
        }
    }
    seen();
    let mut goaway = vec![0, 0, 8, 7, 0, 0, 0, 0, 0, 0, 0, 0, last];
    goaway.extend(u32::from(reason).to_be_bytes());
    socket.write_all(&goaway).await?;
    socket.shutdown().await?;
    // Until the client hangs up, so that nothing it sent is left unread and turned into a reset.
    tokio::io::copy(socket, &mut tokio::io::sink())
        .await
        .map(drop)
}

async fn perform(
    act: Act,
    mut body: RecvStream,
    mut respond: SendResponse<Bytes>,
    headers_arrived: Arc<Notify>,
) {
    match act {
        Act::Answer => {
            while let Some(Ok(data)) = body.data().await {
                let _credit = body.flow_control().release_capacity(data.len());
            }
            let Ok(mut stream) = respond.send_response(headers(), false) else {
                return;
            };
            // An empty EchoResponse.
            let _sent = stream.send_data(Bytes::from_static(&[0, 0, 0, 0, 0]), false);
            let mut trailers = HeaderMap::new();
            trailers.insert("grpc-status", HeaderValue::from_static("0"));
            let _sent = stream.send_trailers(trailers);
        }
        Act::Reset(reason) => {
            let _some = body.data().await;
            respond.send_reset(reason);
        }
        Act::AnswerThenReset(reason) => {
            let Ok(mut stream) = respond.send_response(headers(), false) else {
                return;
            };
            headers_arrived.notified().await;
            stream.send_reset(reason);
        }
        Act::Page(status) => {
            let mut response = Response::new(());
            *response.status_mut() = status.try_into().expect("a status");
            let html = HeaderValue::from_static("text/html");
            response.headers_mut().insert("content-type", html);
            let Ok(mut stream) = respond.send_response(response, false) else {
                return;
            };
            let _sent = stream.send_data(Bytes::from_static(b"<html>nobody home</html>"), true);
        }
        Act::Silence => std::future::pending().await,
        Act::Cut | Act::GoAway(..) => unreachable!("done by the connection"),
    }
}

fn headers() -> Response<()> {
    let mut response = Response::new(());
    response
        .headers_mut()
        .insert("content-type", HeaderValue::from_static("application/grpc"));
    response
}

async fn until(what: &str, holds: impl Fn() -> bool) {
    vidimus_testkit::wait_until_async(DEADLINE, || async {
        if holds() { Ok(()) } else { Err(what) }
    })
    .await;
}

async fn unary(channel: &Channel) -> Result<(), Status> {
    let mut client = EchoClient::new(channel.clone());
    soon("a call", client.unary(request("hello")))
        .await
        .map(drop)
}

async fn server_stream(channel: &Channel) -> Result<(), Status> {
    let mut client = EchoClient::new(channel.clone());
    let mut answers = soon("a call", client.server_stream(request("hello")))
        .await?
        .into_inner();
    while soon("an answer", answers.message()).await?.is_some() {}
    Ok(())
}

/// Runs a call against a script: its outcome, the connections of its requests, and the resends counted.
async fn run<F>(
    script: &[Act],
    call: impl FnOnce(Channel) -> F,
) -> (Result<(), Status>, Vec<u64>, u64)
where
    F: Future<Output = Result<(), Status>>,
{
    let server = Scripted::start(script).await;
    let channel = server.channel();
    let outcome = call(channel.clone()).await;
    let resends = channel.status().counters.resends;
    (outcome, server.seen(), resends)
}

/// Finding of the trials. What the server says it never processed is sent again, at most twice: after a GOAWAY on another
/// connection, whatever the server's reason (RFC 9113 §6.8); a refused stream on the same one, until it is refused again.
#[tokio::test]
async fn what_was_never_processed_is_sent_again_at_most_twice() {
    for (refusal, connections) in [
        (Act::Reset(Reason::REFUSED_STREAM), [1, 1, 2]),
        (Act::GoAway(Reason::NO_ERROR, 0), [1, 2, 3]),
        (Act::GoAway(Reason::INTERNAL_ERROR, 0), [1, 2, 3]),
        (Act::GoAway(Reason::ENHANCE_YOUR_CALM, 0), [1, 2, 3]),
    ] {
        let (outcome, seen, resends) =
            run(&[refusal], |channel| async move { unary(&channel).await }).await;
        outcome.unwrap_or_else(|status| panic!("{refusal:?}: {status}"));
        assert_eq!((&seen[..], resends), (&connections[..2], 1), "{refusal:?}");

        let (outcome, seen, resends) = run(&[refusal, refusal], |channel| async move {
            server_stream(&channel).await
        })
        .await;
        outcome.unwrap_or_else(|status| panic!("{refusal:?}: {status}"));
        assert_eq!((&seen[..], resends), (&connections[..], 2), "{refusal:?}");

        let (outcome, seen, resends) =
            run(
                &[refusal; 5],
                |channel| async move { unary(&channel).await },
            )
            .await;
        let status = outcome.expect_err("refused three times");
        assert_eq!(status.code(), Code::Unavailable, "{refusal:?}: {status}");
        assert_eq!((&seen[..], resends), (&connections[..], 2), "{refusal:?}");
    }
}

/// A server that sheds load refuses streams now and then: the connection stays, and there is no handshake for every burst.
#[tokio::test]
async fn refused_streams_alone_open_no_connection() {
    let server =
        Scripted::start(&[Act::Reset(Reason::REFUSED_STREAM), Act::Answer].repeat(5)).await;
    let channel = server.channel();
    for _ in 0..5 {
        unary(&channel).await.expect("sent again");
    }
    assert_eq!(server.seen(), [1; 10]);
    let counters = channel.status().counters;
    assert_eq!((counters.connects, counters.resends), (1, 5));
}

/// Nor does a server that refuses everything cost a handshake for every call: the connection that was opened for the last
/// attempt serves the next call, and none is left that was opened just now.
#[tokio::test]
async fn a_server_that_refuses_everything_costs_no_handshake_a_call() {
    let refusal = Act::Reset(Reason::REFUSED_STREAM);
    let server = Scripted::start(&[refusal; 3]).await;
    let channel = server.channel();
    unary(&channel).await.expect_err("refused three times");
    unary(&channel).await.expect("a call");
    assert_eq!(server.seen(), [1, 1, 2, 2]);
    assert_eq!(channel.status().counters.connects, 2);

    let server = Scripted::start(&[refusal; 9]).await;
    let channel = server.channel_that_waits(Duration::from_secs(120));
    for _ in 0..3 {
        unary(&channel).await.expect_err("refused three times");
    }
    unary(&channel).await.expect("a call");
    assert_eq!(server.seen(), [1; 10]);
    assert_eq!(channel.status().counters.connects, 1);
}

/// Where there are several connections, a refused call goes to another one. Two that refuse it once each are both kept.
#[tokio::test]
async fn a_call_that_one_connection_refuses_goes_to_another() {
    let refusal = Act::Reset(Reason::REFUSED_STREAM);
    for (refusals, expected) in [(1, &[1, 2][..]), (2, &[1, 2, 1])] {
        let mut script = vec![Act::Silence; 3];
        script.extend(vec![refusal; refusals]);
        let server = Scripted::start_with(&script, 2).await;
        let channel = server.channel();
        // The third call does not fit on the first connection; then the first call is over.
        let mut silent = JoinSet::new();
        let mut started = Vec::new();
        for calls in 1..=3 {
            let channel = channel.clone();
            started.push(silent.spawn(async move { unary(&channel).await }));
            until("not arrived", || server.seen().len() == calls).await;
        }
        started[0].abort();
        until("not over", || {
            channel.status().connections[0].calls_in_flight == 1
        })
        .await;
        unary(&channel).await.expect("sent again");
        assert_eq!(&server.seen()[..3], [1, 1, 2]);
        assert_eq!(&server.seen()[3..], expected);
        assert_eq!(channel.status().counters.connects, 2);
    }
}

/// What the server may have processed is never sent again, whatever its failure looks like.
#[tokio::test]
async fn what_may_have_been_processed_is_never_sent_again() {
    for (act, code) in [
        (Act::Cut, Code::Unavailable),
        (Act::Reset(Reason::INTERNAL_ERROR), Code::Internal),
        (Act::Reset(Reason::CANCEL), Code::Cancelled),
        (
            Act::Reset(Reason::ENHANCE_YOUR_CALM),
            Code::ResourceExhausted,
        ),
        (Act::Reset(Reason::NO_ERROR), Code::Internal),
        (Act::GoAway(Reason::NO_ERROR, 1), Code::Unavailable),
        (Act::GoAway(Reason::INTERNAL_ERROR, 1), Code::Unavailable),
    ] {
        let (outcome, seen, resends) =
            run(&[act], |channel| async move { unary(&channel).await }).await;
        let status = outcome
            .err()
            .unwrap_or_else(|| panic!("{act:?}: no failure"));
        assert_eq!(status.code(), code, "{act:?}: {status}");
        assert_eq!((seen, resends), (vec![1], 0), "{act:?}");
    }
}

/// An answer that has begun is the end of all resending, even if the server says that it refuses the stream.
#[tokio::test]
async fn what_has_begun_to_answer_is_never_sent_again() {
    let server = Scripted::start(&[Act::AnswerThenReset(Reason::REFUSED_STREAM)]).await;
    let channel = server.channel();
    let mut client = EchoClient::new(channel.clone());
    let answers = soon("headers", client.server_stream(request("hello"))).await;
    server.headers_arrived.notify_one();
    let mut answers = answers.expect("the headers").into_inner();
    let status = soon("the end", answers.message())
        .await
        .expect_err("the stream was reset");
    assert_eq!(status.code(), Code::Unavailable, "{status}");
    assert_eq!(
        (server.seen(), channel.status().counters.resends),
        (vec![1], 0)
    );
}

/// A stream of messages is sent again if none of it was written, and never otherwise.
#[tokio::test]
async fn a_client_stream_is_sent_again_only_if_nothing_was_written() {
    let refusal = [Act::Reset(Reason::REFUSED_STREAM)];
    let (outcome, seen, resends) = run(&refusal, |channel| async move {
        let two = tokio_stream::iter([request("a"), request("b")]);
        let mut client = EchoClient::new(channel);
        soon("a call", client.client_stream(Request::new(two)))
            .await
            .map(drop)
    })
    .await;
    let status = outcome.expect_err("a part of it was written");
    assert_eq!(status.code(), Code::Unavailable, "{status}");
    assert_eq!((seen, resends), (vec![1], 0));

    // GOAWAY comes while the caller has nothing to say yet.
    let goaway = [Act::GoAway(Reason::NO_ERROR, 0)];
    let (outcome, seen, resends) = run(&goaway, |channel| async move {
        let (sender, receiver) = mpsc::channel::<EchoRequest>(1);
        let mut client = EchoClient::new(channel.clone());
        let calling = client.client_stream(Request::new(ReceiverStream::new(receiver)));
        let speaking = async move {
            vidimus_testkit::wait_until_async(DEADLINE, || async {
                let connects = channel.status().counters.connects;
                if connects == 2 {
                    Ok(())
                } else {
                    Err(format!("{connects} connections"))
                }
            })
            .await;
            sender
                .send(request("late"))
                .await
                .expect("the call listens");
        };
        let (outcome, ()) = tokio::join!(soon("a call", calling), speaking);
        outcome.map(drop)
    })
    .await;
    outcome.expect("nothing had been written");
    assert_eq!((seen, resends), (vec![1, 2], 1));
}

/// More than the limit is not kept, so it is not sent again.
#[tokio::test]
async fn a_large_message_is_not_kept() {
    for (limit, expected) in [(100, vec![1]), (100_000, vec![1, 1])] {
        let server = Scripted::start(&[Act::Reset(Reason::REFUSED_STREAM)]).await;
        let target = server.address.to_string();
        let builder = Channel::builder(&target, SERVER, ClientTls::Plaintext).resend_limit(limit);
        let mut client = EchoClient::new(build(builder));
        let outcome = soon("a call", client.unary(request(&"x".repeat(1000)))).await;
        assert_eq!(
            outcome.is_ok(),
            expected.len() == 2,
            "limit {limit}: {outcome:?}"
        );
        assert_eq!(server.seen(), expected, "limit {limit}");
    }
}

/// By default 4 MiB are kept, as the server gets them: a gRPC message of that many bytes, but not of one more.
#[tokio::test]
async fn four_mebibytes_are_kept() {
    const LIMIT: usize = 4 * 1024 * 1024;
    // What gRPC and protobuf put before the text: flag and length, tag and length.
    const FRAMING: usize = 5 + 5;
    for (length, expected) in [(LIMIT, vec![1, 1]), (LIMIT + 1, vec![1])] {
        let text = "x".repeat(length - FRAMING);
        let (outcome, seen, _resends) = run(
            &[Act::Reset(Reason::REFUSED_STREAM)],
            |channel| async move {
                let mut client = EchoClient::new(channel);
                soon("a call", client.unary(request(&text))).await.map(drop)
            },
        )
        .await;
        assert_eq!(
            outcome.is_ok(),
            expected.len() == 2,
            "{length}: {outcome:?}"
        );
        assert_eq!(seen, expected, "{length}");
    }
}

/// A page instead of an answer is no message: its HTTP status says what happened. It may come from behind the proxy, so
/// nothing is sent again.
#[tokio::test]
async fn a_page_is_named_by_its_http_status() {
    for (http, code, text) in [
        (400, Code::Internal, "400 Bad Request"),
        (401, Code::Unauthenticated, "401 Unauthorized"),
        (403, Code::PermissionDenied, "403 Forbidden"),
        (404, Code::Unimplemented, "404 Not Found"),
        (429, Code::Unavailable, "429 Too Many Requests"),
        (503, Code::Unavailable, "503 Service Unavailable"),
        (200, Code::Unknown, "200 OK"),
    ] {
        let (outcome, seen, _resends) = run(&[Act::Page(http)], |channel| async move {
            unary(&channel).await
        })
        .await;
        let status = outcome.expect_err("no gRPC");
        assert_eq!(status.code(), code, "{status}");
        for part in [text, "text/html", "not gRPC"] {
            assert!(status.message().contains(part), "{status}");
        }
        assert_eq!(seen, [1], "{http}");
    }
}

/// The deadline holds over all attempts together.
#[tokio::test]
async fn resends_end_with_the_deadline() {
    let script = [Act::Reset(Reason::REFUSED_STREAM), Act::Silence];
    let (outcome, seen, resends) = run(&script, |channel| async move {
        let mut request = Request::new(request("hello"));
        request.set_timeout(Duration::from_millis(300));
        let mut client = EchoClient::new(channel);
        soon("a call", client.unary(request)).await.map(drop)
    })
    .await;
    let status = outcome.expect_err("the deadline has passed");
    assert_eq!(status.code(), Code::DeadlineExceeded, "{status}");
    assert_eq!((seen, resends), (vec![1, 1], 1));
}
