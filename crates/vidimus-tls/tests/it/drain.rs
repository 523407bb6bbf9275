//! The ends of connections: shutdown, age, a deadline, a single one picked out.

use std::time::Duration;

use tokio_stream::StreamExt;
use tonic::Code;
use vidimus_proto::testkit::v1::EchoRequest;
use vidimus_testkit::wait_until_async;
use vidimus_tls::server::{Drained, Limits, Server};

use crate::support::{Client, DEADLINE, Running, Setup, World, call, request, soon};

fn endless() -> EchoRequest {
    EchoRequest {
        count: 0,
        delay_milliseconds: 5,
        ..request("stream")
    }
}

async fn start(world: &World, limits: Limits) -> Running {
    let setup = Setup {
        limits,
        ..Setup::default()
    };
    Running::follow(world.dir.path(), setup).await.0
}

async fn wait_streams(server: &Server, streams: usize) {
    wait_until_async(DEADLINE, || async {
        let counts: Vec<usize> = server.connections().iter().map(|c| c.streams).collect();
        if counts.iter().sum::<usize>() == streams {
            Ok(())
        } else {
            Err(format!("{counts:?}"))
        }
    })
    .await;
}

/// V5. A shutdown lets a call in flight finish and then ends cleanly.
#[tokio::test]
async fn a_call_in_flight_finishes_during_the_shutdown() {
    let world = World::new();
    let running = start(&world, Limits::default()).await;
    let mut client = world.client().echo(running.address).await;
    let slow = EchoRequest {
        delay_milliseconds: 300,
        ..request("slow")
    };
    let called = async { client.unary(slow).await };
    let stopped = async {
        wait_streams(&running.server, 1).await;
        running.begin_shutdown();
        running.stop().await
    };
    let (answer, drained) = soon("both", async { tokio::join!(called, stopped) }).await;
    assert_eq!(answer.expect("an answer").into_inner().message, "slow");
    assert_eq!(drained, Drained { open: 1, cut: 0 });
}

/// V5. A stream without an end is cut at the drain's deadline, and counted.
#[tokio::test]
async fn an_endless_stream_is_cut_at_the_deadline() {
    let world = World::new();
    let limits = Limits {
        drain_timeout: Duration::from_millis(200),
        ..Limits::default()
    };
    let running = start(&world, limits).await;
    let mut client = world.client().echo(running.address).await;
    let mut answers = client
        .server_stream(endless())
        .await
        .expect("a stream")
        .into_inner();
    answers.next().await.expect("an answer").expect("no error");
    let drained = running.stop().await;
    assert_eq!(drained, Drained { open: 1, cut: 1 });
    let end = soon("the end", async {
        while let Some(answer) = answers.next().await {
            if let Err(status) = answer {
                return status.code();
            }
        }
        Code::Ok
    })
    .await;
    assert_ne!(
        end,
        Code::Ok,
        "a stream that was cut doesn't end as if it were complete"
    );
}

/// V5. A peer that never answers anything is not served for ever.
#[tokio::test]
async fn a_peer_that_never_answers_a_goaway_is_closed_hard() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let world = World::new();
    let limits = Limits {
        drain_timeout: Duration::from_millis(200),
        ..Limits::default()
    };
    let running = start(&world, limits).await;
    let mut mute = world
        .client()
        .connect(running.address)
        .await
        .expect("a handshake");
    mute.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0")
        .await
        .expect("a write");
    mute.flush().await.expect("a flush");
    let mut byte = [0; 1];
    mute.read_exact(&mut byte)
        .await
        .expect("the server's settings");
    assert_eq!(running.stop().await, Drained { open: 1, cut: 1 });
}

/// V14's tool: one connection is ended, the others stay, and its calls end with it.
#[tokio::test]
async fn one_connection_can_be_ended_alone() {
    let world = World::new();
    let running = start(&world, Limits::default()).await;
    let leaf = |name: &str| world.pki.leaf(name).dns(name).client().issue();
    let client = |name: &str| Client::new(&world.pki.root).with(&leaf(name));
    let mut stays = client("stays.test").echo(running.address).await;
    let mut goes = client("goes.test").echo(running.address).await;
    call(&mut stays).await.expect("a call");
    let mut answers = goes
        .server_stream(endless())
        .await
        .expect("a stream")
        .into_inner();
    answers.next().await.expect("an answer").expect("no error");

    let picked = running.server.close_where(
        |connection| connection.peer.label() == "goes.test",
        Duration::from_millis(100),
    );
    assert_eq!(picked, 1);
    wait_until_async(DEADLINE, || async {
        let left: Vec<String> = running
            .server
            .connections()
            .iter()
            .map(|c| c.peer.label())
            .collect();
        if left == ["stays.test"] {
            Ok(())
        } else {
            Err(format!("{left:?}"))
        }
    })
    .await;
    assert_eq!(running.server.stats().cut, 1);
    // The handler of the cut stream ends as well: nothing is executed for a peer that is gone.
    wait_streams(&running.server, 0).await;
    call(&mut stays)
        .await
        .expect("the other connection goes on");
    running.stop().await;
}

/// T8. A maximum age with a grace: the connection is told to end, and a new one takes over.
#[tokio::test]
async fn an_old_connection_is_asked_to_end() {
    let world = World::new();
    let limits = Limits {
        max_connection_age: Some(Duration::from_millis(100)),
        connection_age_grace: Duration::from_millis(100),
        ..Limits::default()
    };
    let running = start(&world, limits).await;
    let mut client = world.client().echo(running.address).await;
    let mut answers = client
        .server_stream(endless())
        .await
        .expect("a stream")
        .into_inner();
    soon("the stream's end", async {
        while let Some(Ok(_)) = answers.next().await {}
    })
    .await;
    wait_until_async(DEADLINE, || async {
        match running.server.stats().cut {
            1.. => Ok(()),
            0 => Err("not cut"),
        }
    })
    .await;
    // tonic's channel connects anew for the next call.
    wait_until_async(DEADLINE, || {
        let mut client = client.clone();
        async move { call(&mut client).await.map_err(|status| status.to_string()) }
    })
    .await;
    assert!(running.server.stats().accepted >= 2);
    running.stop().await;
}

/// T17. More connections than the limit are turned away, and counted.
#[tokio::test]
async fn connections_beyond_the_limit_are_turned_away() {
    let world = World::new();
    let limits = Limits {
        max_connections: 1,
        ..Limits::default()
    };
    let running = start(&world, limits).await;
    let mut first = world.client().echo(running.address).await;
    call(&mut first).await.expect("a call");
    assert!(world.client().refusal(running.address).await.is_some());
    assert_eq!(running.server.stats().turned_away, 1);
    call(&mut first).await.expect("the first goes on");
    drop(first);
    wait_until_async(DEADLINE, || async {
        match world.client().refusal(running.address).await {
            None => Ok(()),
            Some(refusal) => Err(refusal),
        }
    })
    .await;
    running.stop().await;
}

/// V5. A silent socket in its handshake doesn't hold the shutdown up.
#[tokio::test]
async fn a_silent_socket_does_not_hold_the_shutdown_up() {
    let world = World::new();
    let limits = Limits {
        handshake_timeout: Duration::from_secs(3600),
        drain_timeout: Duration::from_secs(3600),
        ..Limits::default()
    };
    let running = start(&world, limits).await;
    let _silent = tokio::net::TcpStream::connect(running.address)
        .await
        .expect("a connection");
    wait_until_async(DEADLINE, || async {
        match running.server.stats().accepted {
            1 => Ok(()),
            other => Err(other),
        }
    })
    .await;
    assert_eq!(running.stop().await, Drained { open: 0, cut: 0 });
}
