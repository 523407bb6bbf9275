//! How a server's answers are written: those of one turn in one piece, which the client sees as one record of TLS.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

use crate::shrink::headers_of;
use crate::support::{Client, DEADLINE, Running, Setup, World, soon};

/// Types of frames, and the flag that ends a stream (RFC 9113 §6).
const DATA: u8 = 0;
const HEADERS: u8 = 1;
const PING: u8 = 6;
const END_STREAM: u8 = 1;

/// A client that sees the server's records one by one.
struct Records {
    tls: rustls::ClientConnection,
    tcp: TcpStream,
}

impl Records {
    fn send(&mut self, bytes: &[u8]) {
        self.tls.writer().write_all(bytes).expect("memory");
        while self.tls.wants_write() {
            self.tls.write_tls(&mut self.tcp).expect("a write");
        }
    }

    /// What the next record says to the client's program; nothing in one of the handshake.
    fn next(&mut self) -> Vec<u8> {
        let mut record = vec![0; 5];
        self.tcp.read_exact(&mut record).expect("a record");
        let length = u16::from_be_bytes([record[3], record[4]]);
        record.resize(5 + usize::from(length), 0);
        self.tcp.read_exact(&mut record[5..]).expect("its content");
        let mut unread = record.as_slice();
        while !unread.is_empty() {
            self.tls.read_tls(&mut unread).expect("memory");
        }
        self.tls.process_new_packets().expect("a good record");
        let mut said = Vec::new();
        // That there is no more of it now is an error here.
        let _so_far = self.tls.reader().read_to_end(&mut said);
        said
    }
}

/// Type, flags and stream of each frame.
fn frames(mut said: &[u8]) -> Vec<(u8, u8, u8)> {
    let mut frames = Vec::new();
    while let [a, b, c, kind, flags, _, _, _, stream, rest @ ..] = said {
        let length = u32::from_be_bytes([0, *a, *b, *c]);
        frames.push((*kind, *flags, *stream));
        said = &rest[length as usize..];
    }
    frames
}

/// An opened connection of which nothing has been said yet but its settings.
fn connect(client: &Client, address: SocketAddr) -> Records {
    let tcp = TcpStream::connect(address).expect("a connection");
    tcp.set_read_timeout(Some(DEADLINE)).expect("an option");
    let tls = client.connection();
    let mut records = Records { tls, tcp };
    records.send(b"");
    while records.tls.is_handshaking() {
        records.next();
        records.send(b"");
    }
    records.send(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0");
    records
}

/// A call with an empty message (RFC 9113 §6.1, and gRPC's five bytes before each).
fn call(stream: u8) -> Vec<u8> {
    let mut call = headers_of("/vidimus.testkit.v1.Echo/Unary", stream);
    call.extend([0, 0, 5, DATA, END_STREAM, 0, 0, 0, stream, 0, 0, 0, 0, 0]);
    call
}

/// The records from now on to the end of a call's answer, each as its frames that `count`.
fn answer(
    records: &mut Records,
    stream: u8,
    count: impl Fn(&(u8, u8, u8)) -> bool,
) -> Vec<Vec<(u8, u8, u8)>> {
    let is_end = |&(kind, flags, of): &(u8, u8, u8)| {
        kind == HEADERS && flags & END_STREAM != 0 && of == stream
    };
    let mut answer: Vec<Vec<_>> = Vec::new();
    while !answer.iter().flatten().any(is_end) {
        let mut frames = frames(&records.next());
        frames.retain(&count);
        if !frames.is_empty() {
            answer.push(frames);
        }
    }
    answer
}

/// T19. Head, message and status of a short answer go out together: each write would be a system call, a record and, to a
/// client that acknowledges late, a wait.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_short_answer_is_one_write() {
    let world = World::new();
    let (running, _watch) = Running::follow(world.dir.path(), Setup::default()).await;
    let (client, address) = (world.client(), running.address);
    let answered = tokio::task::spawn_blocking(move || {
        let mut records = connect(&client, address);
        records.send(&call(1));
        answer(&mut records, 1, |(_, _, stream)| *stream == 1)
    });
    let answer = soon("an answer", answered).await.expect("no panic");
    let [record] = answer.as_slice() else {
        panic!("one record: {answer:?}")
    };
    let kinds: Vec<u8> = record.iter().map(|(kind, ..)| *kind).collect();
    assert_eq!(kinds, [HEADERS, DATA, HEADERS]);
    running.stop().await;
}

/// T19. What a client is told in one turn goes out together: the answer to its ping with that to its call.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_ping_and_a_call_are_answered_by_one_write() {
    let world = World::new();
    let (running, _watch) = Running::follow(world.dir.path(), Setup::default()).await;
    let (client, address) = (world.client(), running.address);
    let answered = tokio::task::spawn_blocking(move || {
        let mut records = connect(&client, address);
        // A server that was held up for a moment writes what it has, so once is enough.
        (0..10).find_map(|at: u8| {
            let stream = 2 * at + 1;
            let mut ping_and_call = vec![0, 0, 8, PING, 0, 0, 0, 0, 0];
            ping_and_call.extend([at; 8]);
            ping_and_call.extend(call(stream));
            records.send(&ping_and_call);
            let counts = |&(kind, _, of): &(u8, u8, u8)| kind == PING || of == stream;
            let answer = answer(&mut records, stream, counts);
            match answer.as_slice() {
                [record] => Some(record.clone()),
                _ => None,
            }
        })
    });
    let record = soon("answers", answered).await.expect("no panic");
    let kinds: Vec<u8> = record.iter().flatten().map(|(kind, ..)| *kind).collect();
    assert_eq!(kinds, [PING, HEADERS, DATA, HEADERS]);
    running.stop().await;
}
