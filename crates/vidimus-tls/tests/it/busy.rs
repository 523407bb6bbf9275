//! Connections that have something to do at every moment: they end at their deadline like any other.

use std::io;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::body::Body;
use axum::routing::get;
use bytes::Bytes;
use http_body::Frame;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::task::coop::consume_budget;
use vidimus_testkit::wait_until_async;
use vidimus_tls::config::Protocols;
use vidimus_tls::server::{Connection, Limits, ServerBuilder};

use crate::serving::Serving;
use crate::support::{DEADLINE, World, soon};

/// Ends the only connection, once it is there, with next to no grace.
async fn end(serving: &Serving) {
    wait_until_async(DEADLINE, || async {
        match serving
            .server
            .close_where(|_| true, Duration::from_millis(1))
        {
            1 => Ok(()),
            other => Err(other),
        }
    })
    .await;
}

/// Reads to the end; how it ended is no matter.
async fn read_to_end(stream: &mut (impl AsyncReadExt + Unpin)) {
    let mut rest = Vec::new();
    let _ended = soon("the end", stream.read_to_end(&mut rest)).await;
}

/// Does what a copy from a fast peer to a fast sink does: uses the task's budget up at every turn.
async fn keep_busy(connection: Connection) {
    let _held = connection;
    loop {
        consume_budget().await;
    }
}

/// V14. A stream whose handler is never done with what it has to do is taken away all the same.
#[tokio::test]
async fn a_busy_stream_is_closed_at_its_deadline() {
    let world = World::new();
    let build = |builder: ServerBuilder| builder.protocols(Protocols::None);
    let serving = Serving::start(
        world.dir.path(),
        build,
        |server, listener, stop| async move { server.serve_raw(listener, keep_busy, stop).await },
    )
    .await;
    let client = world.client().alpn(&[]);
    let mut stream = client.connect(serving.address).await.expect("a handshake");
    end(&serving).await;
    read_to_end(&mut stream).await;
    assert_eq!(serving.server.stats().cut, 1);
    serving.stop().await;
}

/// A body that uses the budget of its connection's task up at every turn.
struct Busy;

impl http_body::Body for Busy {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        loop {
            ready!(pin!(consume_budget()).poll(cx));
        }
    }
}

/// V14. A connection that has frames to read at every moment, as a peer sees to it that sends pings faster than they are
/// answered, is cut all the same.
#[tokio::test]
async fn a_busy_http_connection_is_closed_at_its_deadline() {
    let world = World::new();
    let router = axum::Router::new().route("/", get(|| async { Body::new(Busy) }));
    let serving = Serving::http(world.dir.path(), Limits::default(), router).await;
    let client = world.client().alpn(&[b"http/1.1"]);
    let mut stream = client.connect(serving.address).await.expect("a handshake");
    let ask = b"GET / HTTP/1.1\r\nHost: server.test\r\n\r\n";
    stream.write_all(ask).await.expect("a write");
    wait_until_async(DEADLINE, || async {
        match serving.server.stats().calls {
            1 => Ok(()),
            other => Err(other),
        }
    })
    .await;
    end(&serving).await;
    read_to_end(&mut stream).await;
    assert_eq!(serving.server.stats().cut, 1);
    serving.stop().await;
}
