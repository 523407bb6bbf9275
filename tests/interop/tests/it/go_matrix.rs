//! grpc-go's client and server.

use std::process::Command;

use prost::Message as _;
use serde_json::Value;
use tokio::task::JoinSet;
use vidimus_testkit::Process;
use vidimus_tls::config::Protocols;

use crate::golang;
use crate::matrix::calling::{Call, Caller, METHOD, Outcome, Seen, greeting};
use crate::matrix::program::finish;
use crate::matrix::serving::{self, OurClient, Running, Server};
use crate::matrix::{Alert, Attempt, Difference, SERVER, Speaks, hexadecimal};
use crate::support::DEADLINE;

/// V5, V6, T11, T12, T13, T14.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn grpc_gos_client_is_served_and_refused_as_it_should_be() {
    const CLIENT: Caller = Caller {
        protocols: Protocols::H2,
        alert: Alert::go,
        differences: &[
            Difference {
                case: "revoked server",
                end: None,
                reason: "Go offers it no revocation lists",
            },
            Difference {
                case: "no protocol agreed on",
                end: None,
                reason: "its credentials always offer h2",
            },
        ],
    };
    golang::program();
    CLIENT.run(client).await;
}

async fn client(call: Call) -> Seen {
    let mut command = Command::new(golang::program());
    command
        .args(["echo-client", "-method", METHOD])
        .args(["-message", &hexadecimal(&greeting().encode_to_vec())])
        .args(["-addr", &call.address.to_string(), "-server-name", SERVER])
        .arg("-dir")
        .arg(&call.attempt.folder);
    if !call.presents {
        command.arg("-no-cert");
    }
    if call.attempt.speaks == Speaks::OnlyTls12 {
        command.arg("-max-tls12");
    }
    let output = finish(command).await;
    let said = output.to_string();
    let result: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
    let outcome = match result["code"].as_str() {
        Some("OK") => Outcome::answered_in_hexadecimal(result["answer"].as_str().unwrap()),
        Some("PermissionDenied") => Outcome::Denied,
        _ => Outcome::Failed,
    };
    Seen { outcome, said }
}

/// V5, T12, T13.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn our_channel_calls_grpc_gos_server_and_refuses_it_as_it_should() {
    const SERVER: Server = Server {
        client: OurClient::Channel,
        alert: Alert::go,
        differences: &[
            Difference {
                case: "revoked client",
                end: None,
                reason: "Go offers it no revocation lists",
            },
            Difference {
                case: "client not yet valid",
                end: Some(serving::End::TheyRefuse(Alert::CertificateExpired)),
                reason: "Go has one alert for both ends of a certificate's time",
            },
            Difference {
                case: "client for servers alone",
                end: Some(serving::End::TheyRefuse(Alert::BadCertificate)),
                reason: "Go has no alert of its own for the extended key usage",
            },
            Difference {
                case: "no protocol agreed on",
                end: None,
                reason: "its credentials always choose h2",
            },
        ],
    };
    golang::program();
    SERVER.run(server).await;
}

async fn server(attempt: &Attempt) -> Running {
    let mut command = Command::new(golang::program());
    command
        .env("GRPC_GO_LOG_SEVERITY_LEVEL", "info")
        .args(["echo-server", "-dir"])
        .arg(&attempt.folder);
    if attempt.speaks == Speaks::OnlyTls12 {
        command.arg("-max-tls12");
    }
    let mut process = Process::spawn(command);
    let line = process.wait_for_line_async("listening", DEADLINE).await;
    let listening: Value = serde_json::from_str(&line).unwrap();
    Running {
        port: listening["port"].as_u64().unwrap().try_into().unwrap(),
        process,
        _beside: JoinSet::new(),
    }
}
