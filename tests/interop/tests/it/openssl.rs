//! OpenSSL's own client and server, which do TLS alone: HTTP/2 is hyper's, through their standard input and output.

use std::os::unix::net::UnixStream as StdStream;
use std::process::Command;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;
use tokio::task::JoinSet;
use vidimus_testkit::Process;
use vidimus_tls::config::Protocols;

use crate::matrix::calling::{Call, Caller, Outcome, Seen};
use crate::matrix::program::{listening, program};
use crate::matrix::serving::{OurClient, Running, Server};
use crate::matrix::{Alert, Attempt, SERVER, Speaks, pipe};
use crate::support::DEADLINE;

/// V5, V6, T11, T12, T13, T14.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn openssl_s_client_is_served_and_refused_as_it_should_be() {
    const CLIENT: Caller = Caller {
        protocols: Protocols::H2,
        alert: Alert::openssl,
        differences: &[],
    };
    CLIENT.run(s_client).await;
}

async fn s_client(call: Call) -> Seen {
    let (mut process, stream) = Process::spawn_as_pipe(s_client_command(&call));
    let (outcome, more) = pipe::call(nonblocking(stream)).await;
    if matches!(outcome, Outcome::Failed) {
        process.wait_exit_async(DEADLINE).await;
    }
    Seen {
        outcome,
        said: format!("{more}\n{process}"),
    }
}

fn s_client_command(call: &Call) -> Command {
    let mut command = program("openssl", "openssl");
    command
        .current_dir(&call.attempt.folder)
        .args(["s_client", "-quiet", "-nocommands"])
        .args(["-connect", &call.address.to_string()])
        .args(["-servername", SERVER, "-verify_hostname", SERVER])
        .args(["-CAfile", "ca.crt", "-verify_return_error"])
        .args(["-CRL", "crl.pem", "-crl_check"]);
    if call.presents {
        command.args([
            "-cert",
            "tls.crt",
            "-key",
            "tls.key",
            "-cert_chain",
            "tls.crt",
        ]);
    }
    command.args(speaking(call.attempt.speaks));
    command
}

/// T12. A reset, which a socket closed with unread data causes, would overtake the alert.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refused_client_that_has_sent_much_already_hears_the_alert() {
    const MUCH: usize = 200 * 1024;
    const REFUSED: Caller = Caller {
        protocols: Protocols::H2,
        alert: Alert::openssl,
        differences: &[],
    };
    REFUSED
        .run_refused(async |call| {
            let (mut process, stream) = Process::spawn_as_pipe(s_client_command(&call));
            let (mut reading, mut writing) = nonblocking(stream).into_split();
            let mut heard = Vec::new();
            let _as_far_as_it_goes = tokio::join!(
                reading.read_to_end(&mut heard),
                writing.write_all(&[0; MUCH])
            );
            process.wait_exit_async(DEADLINE).await;
            Seen {
                outcome: Outcome::Failed,
                said: process.to_string(),
            }
        })
        .await;
}

/// V5, T12, T13.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn our_channel_calls_openssl_s_server_and_refuses_it_as_it_should() {
    const SERVER: Server = Server {
        client: OurClient::Channel,
        alert: Alert::openssl,
        differences: &[],
    };
    SERVER.run(s_server).await;
}

async fn s_server(attempt: &Attempt) -> Running {
    let mut beside = JoinSet::new();
    let start = async |port: u16| {
        let mut command = program("openssl", "openssl");
        command
            .current_dir(&attempt.folder)
            .args(["s_server", "-quiet", "-naccept", "1"])
            .args(["-accept", &format!("127.0.0.1:{port}")])
            .args([
                "-cert",
                "tls.crt",
                "-key",
                "tls.key",
                "-cert_chain",
                "tls.crt",
            ])
            .args(["-CAfile", "ca.crt", "-Verify", "3", "-verify_return_error"])
            .args(["-CRL", "crl.pem", "-crl_check"]);
        command.args(speaking(attempt.speaks));
        let (process, stream) = Process::spawn_as_pipe(command);
        beside.spawn(pipe::serve(nonblocking(stream), pipe::anonymous()));
        process
    };
    let (port, process) = listening(attempt, start).await;
    Running {
        port,
        process,
        _beside: beside,
    }
}

fn speaking(speaks: Speaks) -> &'static [&'static str] {
    match speaks {
        Speaks::Http2 => &["-alpn", "h2"],
        Speaks::OnlyTls12 => &["-tls1_2", "-alpn", "h2"],
        Speaks::WithoutAlpn => &[],
    }
}

fn nonblocking(stream: StdStream) -> UnixStream {
    stream.set_nonblocking(true).unwrap();
    UnixStream::from_std(stream).unwrap()
}
