//! Our channel calls foreign servers.

use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio_rustls::TlsConnector;
use tonic::{Code, Status};
use vidimus_proto::testkit::v1::EchoResponse;
use vidimus_proto::testkit::v1::echo_client::EchoClient;
use vidimus_testkit::{Process, try_wait_until_async};
use vidimus_tls::channel::{Channel, ClientTls};
use vidimus_tls::clock::Clock;
use vidimus_tls::config::{ClientCertificate, ClientHandshake, ServerVerification, client_config};
use vidimus_tls::material::{Identity, Material, RevocationOptions, Trust, Usage};
use vidimus_tls::watch::MaterialWatch;

use super::calling::{GREETING, Outcome, greeting};
use super::{
    Alert, Attempt, Certificates, Difference, Failures, Leaf, SERVER, Speaks, check_differences,
    expected, pipe,
};
use crate::support::soon;

/// How a case ends.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum End {
    /// The server takes the connection and answers every call with this code, and a text that has this part.
    Answers(Code, &'static str),
    /// The call is answered.
    Served,
    /// The server refuses our channel by closing the connection without a word, which is what the call's status says.
    TheyHangUp,
    /// The server refuses our channel with this alert, whose name is in the call's status.
    TheyRefuse(Alert),
    /// Our channel refuses the server with this alert, which the server sees; the part is in the call's status.
    WeRefuse(Alert, &'static str),
    /// Our channel leaves after the handshake; the part is in the call's status.
    WeLeave(&'static str),
}

/// One case.
#[derive(Debug)]
struct Case {
    name: &'static str,
    /// What our channel presents; `None` for nothing.
    client: Option<Leaf>,
    server: Leaf,
    speaks: Speaks,
    end: End,
}

const GOOD: Case = Case {
    name: "success",
    client: Some(Leaf::Good),
    server: Leaf::Good,
    speaks: Speaks::Http2,
    end: End::Served,
};

const fn presenting(name: &'static str, client: Leaf, alert: Alert) -> Case {
    Case {
        name,
        client: Some(client),
        end: End::TheyRefuse(alert),
        ..GOOD
    }
}

const fn presented(name: &'static str, server: Leaf, alert: Alert, part: &'static str) -> Case {
    Case {
        name,
        server,
        end: End::WeRefuse(alert, part),
        ..GOOD
    }
}

const CASES: &[Case] = &[
    GOOD,
    Case {
        name: "no client certificate",
        client: None,
        end: End::TheyRefuse(Alert::CertificateRequired),
        ..GOOD
    },
    presenting("client of another CA", Leaf::Stranger, Alert::UnknownCa),
    presenting("expired client", Leaf::Expired, Alert::CertificateExpired),
    presenting(
        "client not yet valid",
        Leaf::NotYetValid,
        Alert::BadCertificate,
    ),
    presenting(
        "client for servers alone",
        Leaf::OtherPurpose,
        Alert::UnsupportedCertificate,
    ),
    presenting("revoked client", Leaf::Revoked, Alert::CertificateRevoked),
    presented(
        "server of another CA",
        Leaf::Stranger,
        Alert::UnknownCa,
        "leads to none of the trusted roots",
    ),
    presented(
        "expired server",
        Leaf::Expired,
        Alert::CertificateExpired,
        "has expired: now",
    ),
    presented(
        "server not yet valid",
        Leaf::NotYetValid,
        Alert::CertificateExpired,
        "is not valid yet: now",
    ),
    presented(
        "server for clients alone",
        Leaf::OtherPurpose,
        Alert::UnsupportedCertificate,
        "lacks the extended key usage serverAuth",
    ),
    presented(
        "revoked server",
        Leaf::Revoked,
        Alert::CertificateRevoked,
        "with serial number 77 was revoked",
    ),
    presented(
        "another server name",
        Leaf::OtherName,
        Alert::BadCertificate,
        r#"is not valid for "server.example""#,
    ),
    Case {
        name: "TLS 1.2 alone",
        speaks: Speaks::OnlyTls12,
        end: End::TheyRefuse(Alert::ProtocolVersion),
        ..GOOD
    },
    Case {
        name: "no protocol agreed on",
        speaks: Speaks::WithoutAlpn,
        end: End::WeLeave("did not choose ALPN h2"),
        ..GOOD
    },
];

/// A foreign server that runs, with whatever it needs beside it.
#[derive(Debug)]
pub(crate) struct Running {
    pub(crate) port: u16,
    pub(crate) process: Process,
    /// Ended with the case.
    pub(crate) _beside: JoinSet<()>,
}

/// How we call.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum OurClient {
    /// With our channel.
    Channel,
    /// With our configuration over tokio-rustls, and HTTP/2 by hyper.
    Stream,
}

/// A foreign server.
#[derive(Debug)]
pub(crate) struct Server {
    /// What of ours calls it.
    pub(crate) client: OurClient,
    /// How it words an alert.
    pub(crate) alert: fn(Alert) -> &'static str,
    /// Where it differs.
    pub(crate) differences: &'static [Difference<End>],
}

impl Server {
    /// Runs all cases, and panics with every one that didn't end as it should.
    pub(crate) async fn run(&self, start: impl AsyncFn(&Attempt) -> Running) {
        check_differences(
            CASES.iter().map(|case| (case.name, &case.end)),
            self.differences,
        );
        let certificates = Certificates::new();
        let mut failures = Failures::default();
        for case in CASES {
            let Some(end) = expected(case.name, case.end, self.differences) else {
                continue;
            };
            let attempt = Attempt {
                case: case.name,
                folder: certificates.folder(case.name, &certificates.server(case.server)),
                speaks: case.speaks,
            };
            let running = soon("the server's start", Box::pin(start(&attempt))).await;
            let watch =
                MaterialWatch::fixed(material(&certificates, case.client.unwrap_or(Leaf::Good)));
            let shows = case.client.is_some();
            let outcome = match self.client {
                OurClient::Channel => {
                    soon(case.name, Box::pin(by_channel(watch, shows, running.port))).await
                }
                OurClient::Stream => {
                    soon(case.name, Box::pin(by_stream(watch, shows, running.port))).await
                }
            };
            let mut problem = check_status(end, &outcome);
            if problem.is_ok()
                && let End::WeRefuse(alert, _) = end
            {
                problem = self.check_log(alert, &running.process).await;
            }
            if let Err(problem) = problem {
                let said = running.process.to_string();
                failures.note(case.name, &end, &problem, &said);
            }
        }
        failures.check(CASES.len());
    }

    /// Whether the server has heard the alert.
    async fn check_log(&self, alert: Alert, process: &Process) -> Result<(), String> {
        let words = (self.alert)(alert);
        let looked = try_wait_until_async(std::time::Duration::from_secs(5), || {
            let heard = process.lines().iter().any(|line| line.text.contains(words));
            std::future::ready(if heard { Ok(()) } else { Err("") })
        });
        let late = |_| format!("the server has not heard {words:?}");
        looked.await.map_err(late)
    }
}

fn check_status(end: End, outcome: &Result<EchoResponse, Status>) -> Result<(), String> {
    let (code, part) = match end {
        End::Served => {
            let good = outcome.as_ref().is_ok_and(|a| a.message == GREETING);
            return if good {
                Ok(())
            } else {
                Err(format!("{outcome:?}"))
            };
        }
        End::Answers(code, part) => (code, part),
        End::TheyHangUp => (Code::Unavailable, "server refused the connection"),
        End::TheyRefuse(alert) => (Code::Unavailable, alert.ours()),
        End::WeRefuse(_, part) | End::WeLeave(part) => (Code::Unavailable, part),
    };
    match outcome {
        Err(status) if status.code() == code && status.message().contains(part) => Ok(()),
        outcome => Err(format!("{outcome:?} instead of {code:?} with {part:?}")),
    }
}

async fn by_channel(watch: MaterialWatch, shows: bool, port: u16) -> Result<EchoResponse, Status> {
    let tls = if shows {
        ClientTls::Watch(watch)
    } else {
        ClientTls::WithoutCertificate(watch)
    };
    let target = format!("127.0.0.1:{port}");
    let channel = Channel::builder(&target, SERVER, tls).build().unwrap();
    let answer = EchoClient::new(channel).unary(greeting()).await?;
    Ok(answer.into_inner())
}

async fn by_stream(watch: MaterialWatch, shows: bool, port: u16) -> Result<EchoResponse, Status> {
    let certificate = if shows {
        ClientCertificate::Presented
    } else {
        ClientCertificate::Withheld
    };
    let verification = ServerVerification::Roots;
    let ClientHandshake { config, slot } = client_config(
        &watch.current(),
        verification,
        certificate,
        &Clock::system(),
    )
    .unwrap();
    let socket = TcpStream::connect(("127.0.0.1", port)).await?;
    let name = SERVER.try_into().unwrap();
    let stream = TlsConnector::from(config).connect(name, socket).await;
    let stream = stream.map_err(|error| match slot.refusal() {
        Some(refusal) => Status::unavailable(refusal.to_string()),
        None => Status::unavailable(error.to_string()),
    })?;
    // hyper, told that a write failed, never reads the alert; so it writes only once the server has spoken
    let mut stream = BufReader::new(stream);
    let refused = |error: std::io::Error| Status::unavailable(error.to_string());
    stream.fill_buf().await.map_err(refused)?;
    match pipe::call(stream).await {
        (Outcome::Answered(answer), _) => Ok(answer),
        (Outcome::Denied | Outcome::Failed, said) => Err(Status::unavailable(said)),
    }
}

/// What our channel holds. Our own checks would not load a bad certificate, so they look at a time and a use at which
/// it was good: the server is to refuse it, not we.
fn material(certificates: &Certificates, leaf: Leaf) -> Material {
    const DAYS: std::time::Duration = std::time::Duration::from_secs(5 * 24 * 60 * 60);
    let now = Clock::system().now();
    let (then, usage) = match leaf {
        Leaf::Expired => (now - DAYS, Usage::Client),
        Leaf::NotYetValid => (now + DAYS, Usage::Client),
        Leaf::OtherPurpose => (now, Usage::Server),
        Leaf::Good | Leaf::OtherName | Leaf::Revoked | Leaf::Stranger => (now, Usage::Client),
    };
    let credential = certificates.client(leaf);
    let identity = Identity::from_pem(
        credential.chain_pem().as_bytes(),
        credential.key_pem().as_bytes(),
        usage,
        then,
    );
    let root = certificates.pki.root.pem();
    let lists = certificates.revocation_lists();
    let trust = Trust::from_pem(root.as_bytes(), now)
        .and_then(|trust| {
            trust.with_revocation(lists.as_bytes(), RevocationOptions::default(), &[], now)
        })
        .unwrap();
    Material::of(identity.unwrap(), trust)
}
