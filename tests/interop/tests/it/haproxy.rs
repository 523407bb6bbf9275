//! HAProxy between plaintext and mutual TLS, in both directions.

use tokio::net::TcpStream;
use vidimus_testkit::Process;
use vidimus_tls::config::Protocols;

use crate::matrix::calling::{Call, Caller, Outcome, Seen};
use crate::matrix::program::{last_words, listening, program};
use crate::matrix::serving::{OurClient, Running, Server};
use crate::matrix::{Alert, Attempt, Certificates, Leaf, OurServer, SERVER, Speaks, pipe};
use crate::support::{DEADLINE, soon};

/// Every line of the log carries what TLS said on both sides.
const LOG: &str = r#"
global
  log stdout format raw local0
  nbthread 1
defaults
  mode http
  log global
  retries 0
  http-reuse always
  timeout connect 10s
  timeout client 20s
  timeout server 20s
  log-format "ended %ST %ts front=[%[ssl_fc_err_str]] back=[%[bc_err_str]] [%[ssl_bc_err_str]]"
  error-log-format "failed front=[%[fc_err_str]] [%[ssl_fc_err_str]]"
"#;

/// V5, V6, T11, T12, T13, T14.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn haproxy_as_a_client_is_served_and_refused_as_it_should_be() {
    const CLIENT: Caller = Caller {
        protocols: Protocols::H2,
        alert: Alert::openssl,
        differences: &[],
    };
    CLIENT.run(client).await;
}

/// V10, V21. It keeps its connections to the server, and each drain ends those that it has.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_through_haproxy_survive_that_its_connections_are_drained() {
    const DRAINS: usize = 20;
    const CALLS_BETWEEN: usize = 10;
    let certificates = Certificates::new();
    let server = OurServer::start(&certificates, Leaf::Good, "", Protocols::H2).await;
    let (port, process) = start_client(&Call {
        attempt: Attempt {
            case: "drained",
            folder: certificates.folder("client", &certificates.client(Leaf::Good)),
            speaks: Speaks::Http2,
        },
        address: server.address,
        presents: true,
    })
    .await;
    for drain in 0..DRAINS {
        for _ in 0..CALLS_BETWEEN {
            let stream = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
            let (outcome, said) = soon("a call", pipe::call_over_http1(stream)).await;
            assert!(
                matches!(outcome, Outcome::Answered(_)),
                "after {drain} drains: {said}\n{process}"
            );
        }
        let ended = server.server.close_where(|_| true, DEADLINE);
        assert!(ended > 0, "it keeps a connection");
    }
    let calls = u64::try_from(DRAINS * CALLS_BETWEEN).unwrap();
    assert_eq!(server.log.total(), calls, "no call was made twice");
    let connections = server.server.stats().handshakes_ok;
    assert!(connections < calls, "{connections} connections");
    server.stop().await;
}

async fn client(call: Call) -> Seen {
    let (port, mut process) = start_client(&call).await;
    // it neither answers nor logs a call over HTTP/2 whose connection to the server broke, so that the client sends it again
    let stream = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    let (outcome, more) = pipe::call_over_http1(stream).await;
    process.wait_for_line_async("ended ", DEADLINE).await;
    Seen {
        outcome,
        said: format!("{more}\n{}", last_words(process).await),
    }
}

async fn start_client(call: &Call) -> (u16, Process) {
    let attempt = &call.attempt;
    let speaks = match attempt.speaks {
        Speaks::Http2 => "alpn h2",
        Speaks::OnlyTls12 => "alpn h2 ssl-max-ver TLSv1.2",
        Speaks::WithoutAlpn => "proto h2",
    };
    let presents = if call.presents {
        format!("crt {}", attempt.pair())
    } else {
        String::new()
    };
    let start = async |port| {
        haproxy(
            attempt,
            &format!(
                "
frontend plaintext
  bind 127.0.0.1:{port}
  default_backend ours
backend ours
  server ours {address} ssl {speaks} sni str({SERVER}) verify required ca-file {ca} crl-file {lists} {presents}
",
                address = call.address,
                ca = attempt.file("ca.crt"),
                lists = attempt.file("crl.pem"),
            ),
        )
    };
    listening(attempt, start).await
}

/// V5, T12, T13.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn our_channel_calls_haproxy_and_refuses_it_as_it_should() {
    const SERVER: Server = Server {
        client: OurClient::Channel,
        alert: Alert::openssl,
        differences: &[],
    };
    SERVER.run(server).await;
}

async fn server(attempt: &Attempt) -> Running {
    let (behind, beside) = pipe::plaintext().await;
    let speaks = match attempt.speaks {
        Speaks::Http2 => "alpn h2",
        Speaks::OnlyTls12 => "alpn h2 ssl-max-ver TLSv1.2",
        Speaks::WithoutAlpn => "",
    };
    let (pair, ca, lists) = (
        attempt.pair(),
        attempt.file("ca.crt"),
        attempt.file("crl.pem"),
    );
    let start = async |port| {
        haproxy(
            attempt,
            &format!(
                "
frontend mutual
  bind 127.0.0.1:{port} ssl crt {pair} verify required ca-file {ca} crl-file {lists} {speaks}
  default_backend plaintext
backend plaintext
  server behind 127.0.0.1:{behind} proto h2
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

fn haproxy(attempt: &Attempt, rest: &str) -> Process {
    let config = attempt.write("haproxy.cfg", &format!("{LOG}{rest}"));
    let mut command = program("haproxy", "haproxy");
    command.args(["-db", "-f", &config]);
    Process::spawn(command)
}
