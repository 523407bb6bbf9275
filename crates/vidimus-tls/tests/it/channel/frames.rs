//! What the channel sends beside its calls: no pings, of which grpc-go takes one in five minutes and none when idle.

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use vidimus_proto::testkit::v1::EchoRequest;
use vidimus_proto::testkit::v1::echo_client::EchoClient;
use vidimus_tls::channel::{Channel, ClientTls};

use super::build;
use super::server::TestServer;
use crate::support::{SERVER, request, soon};

const PREFACE: usize = 24;
const PING: u8 = 6;
const HEADERS: u8 = 1;

/// The types of the frames in what a client sent (RFC 9113 §4.1).
fn frame_types(mut sent: &[u8]) -> Vec<u8> {
    let mut types = Vec::new();
    sent = &sent[PREFACE..];
    while let [a, b, c, kind, ..] = *sent {
        types.push(kind);
        let length = u32::from_be_bytes([0, a, b, c]) as usize;
        sent = sent.get(9 + length..).unwrap_or_default();
    }
    types
}

/// Calls small and large, after which everything that was sent is looked at: not even a measurement of the window's size.
#[tokio::test]
async fn no_pings_are_sent() {
    let server = TestServer::plaintext().await;
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a port");
    let target = listener.local_addr().expect("an address").to_string();
    let relaying = async {
        let (client, _) = listener.accept().await.expect("a connection");
        let server = TcpStream::connect(server.address).await.expect("a server");
        let (mut from_client, mut to_client) = client.into_split();
        let (mut from_server, mut to_server) = server.into_split();
        let upwards = async {
            let (mut sent, mut buffer) = (Vec::new(), vec![0; 64 * 1024]);
            while let Ok(length @ 1..) = from_client.read(&mut buffer).await {
                sent.extend_from_slice(&buffer[..length]);
                to_server
                    .write_all(&buffer[..length])
                    .await
                    .expect("a write");
            }
            to_server.shutdown().await.expect("an end");
            sent
        };
        // The client may be gone before everything is copied.
        let (sent, _copied) =
            tokio::join!(upwards, tokio::io::copy(&mut from_server, &mut to_client));
        sent
    };
    let calling = async {
        let channel = build(Channel::builder(&target, SERVER, ClientTls::Plaintext));
        let mut client = EchoClient::new(channel);
        for size in [1, 1_000_000] {
            let mut asked = EchoRequest {
                count: 3,
                ..request(&"x".repeat(size))
            };
            client.unary(asked.clone()).await.expect("a call");
            asked.message.truncate(100_000);
            let answers = client.server_stream(asked).await.expect("a stream");
            let mut answers = answers.into_inner();
            while answers.message().await.expect("no error").is_some() {}
        }
    };
    let both = async { tokio::join!(relaying, calling) };
    let (sent, ()) = soon("calls and their end", both).await;
    let types = frame_types(&sent);
    let count = |kind| types.iter().filter(|each| **each == kind).count();
    assert_eq!((count(HEADERS), count(PING)), (4, 0), "{types:?}");
}
