//! grpcio from PyPI: gRPC's C++ core over BoringSSL, with Python in front.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use prost::Message as _;
use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::UnixStream;
use tokio::task::JoinSet;
use vidimus_testkit::{Process, command};
use vidimus_tls::config::Protocols;

use crate::matrix::calling::{self, Call, Caller, METHOD, Outcome, Seen, greeting};
use crate::matrix::program::finish;
use crate::matrix::serving::{self, OurClient, Running, Server};
use crate::matrix::{
    Alert, Attempt, Certificates, Difference, Leaf, OurServer, SERVER, hexadecimal,
};
use crate::support::{DEADLINE, soon};

/// V5, V6, T11, T12, T13, T14.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn grpcios_client_is_served_and_refused_as_it_should_be() {
    const CLIENT: Caller = Caller {
        protocols: Protocols::H2,
        alert: Alert::boringssl,
        differences: &[
            Difference {
                case: "revoked server",
                end: None,
                reason: "Python offers it no revocation lists",
            },
            Difference {
                case: "TLS 1.2 alone",
                end: None,
                reason: "Python cannot choose the version",
            },
            Difference {
                case: "no protocol agreed on",
                end: None,
                reason: "it always offers h2",
            },
            Difference {
                case: "another server name",
                end: Some(calling::End::LeavesUs),
                reason: "it looks at the name after the handshake, in which it has presented its certificate",
            },
        ],
    };
    python();
    CLIENT.run(client).await;
}

async fn client(call: Call) -> Seen {
    let mut command = caller(&call.attempt.folder, call.address);
    if !call.presents {
        command.arg("--no-cert");
    }
    let output = finish(command).await;
    let result: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
    let outcome = match result["code"].as_str() {
        Some("OK") => Outcome::answered_in_hexadecimal(result["answer"].as_str().unwrap()),
        Some("PERMISSION_DENIED") => Outcome::Denied,
        _ => Outcome::Failed,
    };
    Seen {
        outcome,
        said: output.to_string(),
    }
}

/// V10, V21. Each drain ends the connection that the calls of the moment are on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn grpcio_loses_no_call_and_doubles_none_while_its_connections_are_drained() {
    const DRAINS: u64 = 20;
    const CALLS_BETWEEN: u64 = 20;
    let certificates = Certificates::new();
    let folder = certificates.folder("client", &certificates.client(Leaf::Good));
    let server = OurServer::start(&certificates, Leaf::Good, "", Protocols::H2).await;
    let mut command = caller(&folder, server.address);
    command.arg("--loop");
    let (process, stream) = Process::spawn_as_pipe(command);
    stream.set_nonblocking(true).unwrap();
    let (reading, mut writing) = UnixStream::from_std(stream).unwrap().into_split();
    let mut lines = BufReader::new(reading).lines();

    let (mut drains, mut last) = (0, Value::Null);
    while let Some(line) = soon("a call", lines.next_line()).await.unwrap() {
        last = serde_json::from_str(&line).unwrap();
        if last["calls"].as_u64().unwrap() < (drains + 1) * CALLS_BETWEEN {
            continue;
        }
        if drains == DRAINS {
            writing.shutdown().await.unwrap();
        } else {
            let ended = server.server.close_where(|_| true, DEADLINE);
            drains += u64::from(ended > 0);
        }
    }
    assert_eq!(last["failures"], serde_json::json!([]), "{process}");
    assert_eq!(server.log.total(), last["calls"].as_u64().unwrap());
    let accepted = server.server.stats().handshakes_ok;
    assert!(accepted > DRAINS, "{accepted} connections");
    server.stop().await;
}

/// A client that is to call this address.
fn caller(folder: &Path, address: SocketAddr) -> Command {
    let mut command = peer("client", folder);
    command
        .args(["--method", METHOD, "--server-name", SERVER])
        .args(["--message", &hexadecimal(&greeting().encode_to_vec())])
        .args(["--address", &address.to_string()]);
    command
}

/// V5, T12, T13.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn our_channel_calls_grpcios_server_and_refuses_it_as_it_should() {
    const SERVER: Server = Server {
        client: OurClient::Channel,
        alert: Alert::boringssl,
        differences: &[
            Difference {
                case: "revoked client",
                end: None,
                reason: "Python offers it no revocation lists",
            },
            silent("no client certificate"),
            silent("client of another CA"),
            silent("expired client"),
            silent("client not yet valid"),
            silent("client for servers alone"),
            Difference {
                case: "TLS 1.2 alone",
                end: None,
                reason: "Python cannot choose the version",
            },
            Difference {
                case: "no protocol agreed on",
                end: None,
                reason: "it always chooses h2",
            },
        ],
    };
    python();
    SERVER.run(server).await;
}

/// A client that grpcio refuses.
const fn silent(case: &'static str) -> Difference<serving::End> {
    Difference {
        case,
        end: Some(serving::End::TheyHangUp),
        reason: "its core closes the connection and never sends the alert",
    }
}

async fn server(attempt: &Attempt) -> Running {
    let mut process = Process::spawn(peer("server", &attempt.folder));
    let line = process.wait_for_line_async("port", DEADLINE).await;
    let listening: Value = serde_json::from_str(&line).unwrap();
    Running {
        port: listening["port"].as_u64().unwrap().try_into().unwrap(),
        process,
        _beside: JoinSet::new(),
    }
}

fn peer(role: &str, folder: &Path) -> Command {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("python/peer.py");
    let mut command = Command::new(python());
    command
        .env("GRPC_VERBOSITY", "info")
        .env("GRPC_TRACE", "")
        .arg(script)
        .arg(role)
        .arg(folder);
    command
}

/// A Python that has the package, fetched once.
fn python() -> &'static Path {
    static PYTHON: OnceLock<PathBuf> = OnceLock::new();
    PYTHON.get_or_init(|| {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/tool.sh");
        let mut command = Command::new(script);
        command.arg("grpcio");
        let output = command::run(command, b"", 5 * DEADLINE).success();
        output.stdout_text().trim().into()
    })
}
