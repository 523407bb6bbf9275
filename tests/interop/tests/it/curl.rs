//! curl, which has no server.

use prost::Message as _;

use vidimus_tls::config::Protocols;

use crate::matrix::calling::{Call, Caller, End, METHOD, Outcome, Seen, greeting};
use crate::matrix::program::{finish, program};
use crate::matrix::{Alert, Difference, SERVER, Speaks, put};

/// V5, V6, T11, T12, T13, T14.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn curl_over_http_2_is_served_and_refused_as_it_should_be() {
    const CURL: Caller = Caller {
        protocols: Protocols::H2,
        alert: Alert::openssl,
        differences: &[NAME_AFTER_HANDSHAKE],
    };
    CURL.run(async |call| curl(call, "--http2").await).await;
}

/// The same over HTTP/1.1, from a listener that speaks both.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn curl_over_http_1_1_is_served_and_refused_as_it_should_be() {
    const CURL: Caller = Caller {
        protocols: Protocols::H2AndHttp1,
        alert: Alert::openssl,
        differences: &[
            NAME_AFTER_HANDSHAKE,
            Difference {
                case: "no protocol agreed on",
                end: Some(End::Served),
                reason: "a client without ALPN gets HTTP/1.1",
            },
        ],
    };
    CURL.run(async |call| curl(call, "--http1.1").await).await;
}

const NAME_AFTER_HANDSHAKE: Difference<End> = Difference {
    case: "another server name",
    end: Some(End::LeavesUs),
    reason: "it looks at the name after the handshake, in which it has presented its certificate",
};

async fn curl(call: Call, version: &str) -> Seen {
    let folder = &call.attempt.folder;
    put(&folder.join("request"), framed(&greeting().encode_to_vec()));
    let port = call.address.port();
    let mut command = program("curl", "curl");
    command
        .current_dir(folder)
        .args(["-sS", "--max-time", "20", version, "--cacert", "ca.crt"])
        .args(["--crlfile", "crl.pem"])
        .args([
            "--resolve",
            &format!("{SERVER}:{port}:{}", call.address.ip()),
        ])
        .args(["-H", "content-type: application/grpc", "-H", "te: trailers"])
        .args(["--data-binary", "@request", "-o", "answer", "-D", "-"])
        .arg(format!("https://{SERVER}:{port}{METHOD}"));
    if call.presents {
        command.args(["--cert", "tls.crt", "--key", "tls.key"]);
    }
    match call.attempt.speaks {
        Speaks::Http2 => {}
        Speaks::OnlyTls12 => {
            command.args(["--tls-max", "1.2"]);
        }
        Speaks::WithoutAlpn => {
            command.arg("--no-alpn");
        }
    }
    let output = finish(command).await;
    let answer = std::fs::read(folder.join("answer")).unwrap_or_default();
    Seen {
        outcome: outcome(&output.stdout_text(), &answer),
        said: output.to_string(),
    }
}

/// What the headers and trailers, as curl writes them, and the body say.
fn outcome(headers: &str, body: &[u8]) -> Outcome {
    let status = headers
        .lines()
        .find_map(|line| line.strip_prefix("grpc-status: "))
        .map(str::trim);
    match (status, body.get(FRAME..)) {
        (Some("7"), _) => Outcome::Denied,
        (Some("0"), Some(message)) => Outcome::answered(message),
        // hyper sends no trailers over HTTP/1.1 that a response didn't announce
        (None, Some(message)) if headers.starts_with("HTTP/1.1 200 ") => Outcome::answered(message),
        _ => Outcome::Failed,
    }
}

/// One byte that says "not compressed", and four with the length.
const FRAME: usize = 5;

fn framed(message: &[u8]) -> Vec<u8> {
    let length = u32::try_from(message.len()).unwrap().to_be_bytes();
    [&[0], &length[..], message].concat()
}
