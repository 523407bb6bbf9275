//! nginx between plaintext and mutual TLS, in both directions.

use tokio::net::TcpStream;
use tonic::Code;
use vidimus_testkit::Process;
use vidimus_tls::config::Protocols;

use crate::matrix::calling::{self, Call, Caller, Seen};
use crate::matrix::program::{last_words, listening, program};
use crate::matrix::serving::{self, OurClient, Running, Server};
use crate::matrix::{Alert, Attempt, Difference, SERVER, Speaks, pipe};

/// V5, V6, T11, T12, T13, T14.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nginx_as_a_client_is_served_and_refused_as_it_should_be() {
    const CLIENT: Caller = Caller {
        protocols: Protocols::H2,
        alert: Alert::openssl,
        differences: &[
            Difference {
                case: "no protocol agreed on",
                end: None,
                reason: "it always offers h2",
            },
            judged_late("another server name"),
            judged_late("revoked server"),
        ],
    };
    CLIENT.run(client).await;
}

/// A server that nginx refuses.
const fn judged_late(case: &'static str) -> Difference<calling::End> {
    Difference {
        case,
        end: Some(calling::End::LeavesUs),
        reason: "it judges the certificate after the handshake, in which it has presented its own",
    }
}

async fn client(call: Call) -> Seen {
    let attempt = &call.attempt;
    let presents = if call.presents {
        "grpc_ssl_certificate tls.crt; grpc_ssl_certificate_key tls.key;"
    } else {
        ""
    };
    let versions = versions(attempt.speaks);
    let start = async |port| {
        nginx(
            attempt,
            &format!(
                "
server {{
  listen 127.0.0.1:{port} http2;
  location / {{
    grpc_pass grpcs://{address};
    grpc_ssl_protocols {versions};
    grpc_ssl_name {SERVER};
    grpc_ssl_server_name on;
    grpc_ssl_trusted_certificate ca.crt;
    grpc_ssl_verify on;
    grpc_ssl_crl crl.pem;
    grpc_ssl_verify_depth 3;
    {presents}
  }}
}}",
                address = call.address,
            ),
        )
    };
    let (port, process) = listening(attempt, start).await;
    let stream = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    let (outcome, more) = pipe::call(stream).await;
    Seen {
        outcome,
        said: format!("{more}\n{}", last_words(process).await),
    }
}

/// V5, T12, T13.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn our_channel_calls_nginx_and_refuses_it_as_it_should() {
    const SERVER: Server = Server {
        client: OurClient::Channel,
        alert: Alert::openssl,
        differences: &[
            answered("no client certificate"),
            answered("client of another CA"),
            answered("expired client"),
            answered("client not yet valid"),
            answered("client for servers alone"),
            answered("revoked client"),
            Difference {
                case: "no protocol agreed on",
                end: Some(serving::End::TheyRefuse(Alert::NoApplicationProtocol)),
                reason: "without HTTP/2 it insists on HTTP/1.1",
            },
        ],
    };
    SERVER.run(server).await;
}

/// A client that nginx refuses.
const fn answered(case: &'static str) -> Difference<serving::End> {
    Difference {
        case,
        end: Some(serving::End::Answers(Code::Internal, "400 Bad Request")),
        reason: "it accepts every client in the handshake, and refuses requests instead",
    }
}

async fn server(attempt: &Attempt) -> Running {
    let (behind, beside) = pipe::plaintext().await;
    let http2 = match attempt.speaks {
        Speaks::WithoutAlpn => "",
        Speaks::Http2 | Speaks::OnlyTls12 => "http2",
    };
    let versions = versions(attempt.speaks);
    let start = async |port| {
        nginx(
            attempt,
            &format!(
                "
server {{
  listen 127.0.0.1:{port} ssl {http2};
  ssl_protocols {versions};
  ssl_certificate tls.crt;
  ssl_certificate_key tls.key;
  ssl_client_certificate ca.crt;
  ssl_verify_client on;
  ssl_crl crl.pem;
  ssl_verify_depth 3;
  location / {{ grpc_pass grpc://127.0.0.1:{behind}; }}
}}"
            ),
        )
    };
    let (port, process) = listening(attempt, start).await;
    Running {
        port,
        process,
        _beside: beside,
    }
}

fn versions(speaks: Speaks) -> &'static str {
    match speaks {
        Speaks::OnlyTls12 => "TLSv1.2",
        Speaks::Http2 | Speaks::WithoutAlpn => "TLSv1.3",
    }
}

/// One process, with the attempt's folder as its prefix.
fn nginx(attempt: &Attempt, server: &str) -> Process {
    let paths: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .map(|kind| format!("{kind}_temp_path {};\n", attempt.file("temporary")))
        .concat();
    attempt.write(
        "nginx.conf",
        &format!(
            "daemon off; master_process off; pid nginx.pid; error_log stderr info;
events {{ worker_connections 64; }}
http {{ access_log off; {paths} {server} }}"
        ),
    );
    let mut command = program("nginx", "nginx");
    command
        .args(["-e", "stderr", "-c", "nginx.conf", "-p"])
        .arg(&attempt.folder);
    Process::spawn(command)
}
