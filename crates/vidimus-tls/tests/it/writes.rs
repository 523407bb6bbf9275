//! How a server's answers are written: a call's in one piece, which the client sees as one record of TLS.

use std::io::{Read, Write};
use std::net::TcpStream;

use crate::shrink::headers_of;
use crate::support::{DEADLINE, Running, Setup, World, soon};

/// Types of frames, and the flag that ends a stream (RFC 9113 §6).
const DATA: u8 = 0;
const HEADERS: u8 = 1;
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

/// T19. Head, message and status of a short answer go out together: each write would be a system call, a record and, to a
/// client that acknowledges late, a wait.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_short_answer_is_one_write() {
    let world = World::new();
    let (running, _watch) = Running::follow(world.dir.path(), Setup::default()).await;
    let (client, address) = (world.client(), running.address);
    let answered = tokio::task::spawn_blocking(move || {
        let tcp = TcpStream::connect(address).expect("a connection");
        tcp.set_read_timeout(Some(DEADLINE)).expect("an option");
        let tls = client.connection();
        let mut records = Records { tls, tcp };
        records.send(b"");
        while records.tls.is_handshaking() {
            records.next();
            records.send(b"");
        }
        let mut call = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0".to_vec();
        call.extend(headers_of("/vidimus.testkit.v1.Echo/Unary", 1));
        // An empty message (RFC 9113 §6.1, and gRPC's five bytes before each).
        call.extend([0, 0, 5, DATA, END_STREAM, 0, 0, 0, 1, 0, 0, 0, 0, 0]);
        records.send(&call);
        let mut answer = Vec::new();
        let is_end = |(kind, flags, _): &(u8, u8, u8)| *kind == HEADERS && flags & END_STREAM != 0;
        while !answer.iter().flatten().any(is_end) {
            let mut frames = frames(&records.next());
            frames.retain(|(_, _, stream)| *stream == 1);
            if !frames.is_empty() {
                answer.push(frames);
            }
        }
        answer
    });
    let answer = soon("an answer", answered).await.expect("no panic");
    let [record] = answer.as_slice() else {
        panic!("one record: {answer:?}")
    };
    let kinds: Vec<u8> = record.iter().map(|(kind, ..)| *kind).collect();
    assert_eq!(kinds, [HEADERS, DATA, HEADERS]);
    running.stop().await;
}
