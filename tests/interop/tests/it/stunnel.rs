//! stunnel, which wraps any stream in TLS and agrees on no protocol: HTTP/2 is hyper's, on both sides.

use tokio::net::TcpStream;
use vidimus_testkit::Process;
use vidimus_tls::config::Protocols;

use crate::matrix::calling::{self, Call, Caller, Outcome, Seen};
use crate::matrix::program::{last_words, listening, program};
use crate::matrix::serving::{self, OurClient, Running, Server};
use crate::matrix::{Alert, Attempt, Difference, SERVER, Speaks, pipe};

/// V5, V6, T11, T12, T13, T14.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stunnel_as_a_client_is_served_and_refused_as_it_should_be() {
    const CLIENT: Caller = Caller {
        protocols: Protocols::None,
        alert: Alert::openssl,
        differences: &[
            Difference {
                case: "no protocol agreed on",
                end: Some(calling::End::Served),
                reason: "the listener asks for none",
            },
            Difference {
                case: "not allowed",
                end: Some(calling::End::Closed),
                reason: "a stream has no calls that could be refused one by one",
            },
        ],
    };
    CLIENT.run(client).await;
}

async fn client(call: Call) -> Seen {
    let attempt = &call.attempt;
    let presents = if call.presents {
        "cert = tls.crt\nkey = tls.key"
    } else {
        ""
    };
    let start = async |port| {
        stunnel(
            attempt,
            &format!(
                "
client = yes
accept = 127.0.0.1:{port}
connect = {address}
sni = {SERVER}
checkHost = {SERVER}
CAfile = ca.crt
CRLfile = crl.pem
verifyChain = yes
{presents}
",
                address = call.address,
            ),
        )
    };
    let (port, process) = listening(attempt, start).await;
    let (outcome, more) = match TcpStream::connect(("127.0.0.1", port)).await {
        Ok(stream) => pipe::call(stream).await,
        // it resets the stream once TLS has failed, which may be before anybody has looked
        Err(error) => (Outcome::Failed, error.to_string()),
    };
    Seen {
        outcome,
        said: format!("{more}\n{}", last_words(process).await),
    }
}

/// V5, T12, T13.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_of_ours_calls_stunnel_and_refuses_it_as_it_should() {
    const SERVER: Server = Server {
        client: OurClient::Stream,
        alert: Alert::openssl,
        differences: &[Difference {
            case: "no protocol agreed on",
            end: Some(serving::End::Served),
            reason: "a stream of our configuration leaves it to its user whether that is enough",
        }],
    };
    SERVER.run(server).await;
}

async fn server(attempt: &Attempt) -> Running {
    let (behind, beside) = pipe::plaintext().await;
    let start = async |port| {
        stunnel(
            attempt,
            &format!(
                "
accept = 127.0.0.1:{port}
connect = 127.0.0.1:{behind}
cert = tls.crt
key = tls.key
CAfile = ca.crt
CRLfile = crl.pem
verifyChain = yes
requireCert = yes
"
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

fn stunnel(attempt: &Attempt, service: &str) -> Process {
    let version = match attempt.speaks {
        Speaks::OnlyTls12 => "TLSv1.2",
        Speaks::Http2 | Speaks::WithoutAlpn => "TLSv1.3",
    };
    attempt.write(
        "stunnel.conf",
        &format!(
            "foreground = yes
pid =
syslog = no
debug = info
[wrap]
sslVersion = {version}
{service}"
        ),
    );
    let mut command = program("stunnel4", "stunnel4");
    command.current_dir(&attempt.folder).arg("stunnel.conf");
    Process::spawn(command)
}
