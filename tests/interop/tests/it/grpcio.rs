//! grpcio from PyPI: gRPC's C++ core over BoringSSL, with Python in front.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use prost::Message as _;
use serde_json::Value;
use tokio::task::JoinSet;
use vidimus_testkit::{Process, command};
use vidimus_tls::config::Protocols;

use crate::matrix::calling::{self, Call, Caller, METHOD, Outcome, Seen, greeting};
use crate::matrix::program::finish;
use crate::matrix::serving::{self, OurClient, Running, Server};
use crate::matrix::{Alert, Attempt, Difference, SERVER, hexadecimal};
use crate::support::DEADLINE;

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
    let mut command = peer("client", &call.attempt.folder);
    command
        .args(["--method", METHOD, "--server-name", SERVER])
        .args(["--message", &hexadecimal(&greeting().encode_to_vec())])
        .args(["--address", &call.address.to_string()]);
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
