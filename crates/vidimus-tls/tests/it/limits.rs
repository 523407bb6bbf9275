//! What one connection may ask for at a time, tried by a client that keeps no bound itself.

use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;
use tonic::Code;
use vidimus_testkit::wait_until_async;
use vidimus_tls::server::Limits;

use crate::shrink::{call_headers, frame_of, mute_with_a_call};
use crate::support::{DEADLINE, Running, Setup, World, request, soon};

/// Types of frames, and what one says (RFC 9113 §6, §7).
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const CANCEL: [u8; 4] = [0, 0, 0, 8];
const REFUSED_STREAM: [u8; 4] = [0, 0, 0, 7];

async fn start(limits: Limits) -> (Running, TlsStream<TcpStream>) {
    let world = World::new();
    let setup = Setup {
        limits,
        ..Setup::default()
    };
    let (running, _watch) = Running::follow(world.dir.path(), setup).await;
    let stream = mute_with_a_call(&world.client(), &running).await;
    (running, stream)
}

async fn wait_calls(running: &Running, calls: u64) {
    wait_until_async(DEADLINE, || async {
        match running.server.stats().calls {
            seen if seen == calls => Ok(()),
            other => Err(other),
        }
    })
    .await;
}

/// T17.
#[tokio::test]
async fn a_connection_has_so_many_calls_at_a_time() {
    let limits = Limits {
        max_concurrent_streams: 2,
        ..Limits::default()
    };
    let (running, mut stream) = start(limits).await;
    stream.write_all(&call_headers(3)).await.expect("a write");
    wait_calls(&running, 2).await;
    stream.write_all(&call_headers(5)).await.expect("a write");
    let refusal = soon("a refusal", frame_of(&mut stream, 5)).await;
    assert_eq!(refusal, (RST_STREAM, REFUSED_STREAM.to_vec()));
    assert_eq!(running.server.stats().calls, 2);
    // One of the two ends, and there is room again.
    let mut reset = vec![0, 0, 4, RST_STREAM, 0, 0, 0, 0, 1];
    reset.extend_from_slice(&CANCEL);
    stream.write_all(&reset).await.expect("a write");
    stream.write_all(&call_headers(7)).await.expect("a write");
    wait_calls(&running, 3).await;
    drop(stream);
    running.stop().await;
}

/// T17.
#[tokio::test]
async fn a_header_list_is_bounded() {
    let limits = Limits {
        max_header_list_size: 4096,
        ..Limits::default()
    };
    let (running, mut stream) = start(limits).await;
    let call = with_header(call_headers(3), 1000);
    stream.write_all(&call).await.expect("a write");
    wait_calls(&running, 2).await;
    let call = with_header(call_headers(5), 5000);
    stream.write_all(&call).await.expect("a write");
    let (kind, _) = soon("an answer", frame_of(&mut stream, 5)).await;
    assert_eq!(kind, HEADERS, "431, without asking the service");
    assert_eq!(running.server.stats().calls, 2);
    drop(stream);
    running.stop().await;
}

/// T17. A message has a size, although nobody has set one: what serves it brings the bound along.
#[tokio::test]
async fn a_message_is_bounded_by_default() {
    let world = World::new();
    let (running, _watch) = Running::follow(world.dir.path(), Setup::default()).await;
    let mut echo = world.client().echo(running.address).await;
    for (mebibytes, expected) in [(3, Code::Ok), (5, Code::OutOfRange)] {
        let sent = request(&"x".repeat(mebibytes << 20));
        let answer = soon("an answer", echo.unary(sent)).await;
        let code = answer.map_or_else(|status| status.code(), |_| Code::Ok);
        assert_eq!(code, expected, "{mebibytes} MiB");
    }
    running.stop().await;
}

/// With one more header of so many bytes, at least 127, as a literal (RFC 7541 §6.2.2).
fn with_header(mut frame: Vec<u8>, length: usize) -> Vec<u8> {
    frame.extend_from_slice(b"\0\x01x\x7f");
    let mut rest = length.checked_sub(127).expect("a long value");
    while rest >= 128 {
        frame.push(0x80 | u8::try_from(rest % 128).expect("seven bits"));
        rest /= 128;
    }
    frame.push(u8::try_from(rest).expect("seven bits"));
    frame.resize(frame.len() + length, b'x');
    let content = u32::try_from(frame.len() - 9).expect("a short frame");
    frame[..3].copy_from_slice(&content.to_be_bytes()[1..]);
    frame
}
