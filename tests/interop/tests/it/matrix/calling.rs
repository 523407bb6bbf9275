//! Foreign clients call our server.

use std::net::SocketAddr;

use prost::Message as _;
use vidimus_proto::testkit::v1::{EchoRequest, EchoResponse};
use vidimus_tls::config::Protocols;

use super::{
    Alert, Attempt, Certificates, Difference, Failures, Leaf, OurServer, Speaks, check_differences,
    expected,
};
use crate::support::soon;

/// The method that every client calls.
pub(crate) const METHOD: &str = "/vidimus.testkit.v1.Echo/Unary";
pub(crate) const GREETING: &str = "hello";

/// How a case ends.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum End {
    /// The allow-list closes the connection.
    Closed,
    /// The allow-list refuses the call.
    Denied,
    /// The client ends a connection of which our server thinks well, before it calls.
    LeavesUs,
    /// Our server refuses the client with this alert, which the client sees, and counts it by this word.
    Refused(Alert, &'static str),
    /// The client refuses our server during the handshake, which is counted by this word.
    RefusesUs(&'static str),
    /// The call is answered.
    Served,
}

/// One case.
#[derive(Debug)]
struct Case {
    name: &'static str,
    /// What the client presents; `None` for nothing.
    client: Option<Leaf>,
    server: Leaf,
    speaks: Speaks,
    allow: &'static str,
    end: End,
}

const GOOD: Case = Case {
    name: "success",
    client: Some(Leaf::Good),
    server: Leaf::Good,
    speaks: Speaks::Http2,
    allow: "",
    end: End::Served,
};

const fn presenting(name: &'static str, client: Leaf, alert: Alert, counted: &'static str) -> Case {
    Case {
        name,
        client: Some(client),
        end: End::Refused(alert, counted),
        ..GOOD
    }
}

const fn allowing(name: &'static str, allow: &'static str, end: End) -> Case {
    Case {
        name,
        allow,
        end,
        ..GOOD
    }
}

const CASES: &[Case] = &[
    GOOD,
    Case {
        name: "no client certificate",
        client: None,
        end: End::Refused(Alert::CertificateRequired, "no_certificate"),
        ..GOOD
    },
    presenting(
        "another CA",
        Leaf::Stranger,
        Alert::UnknownCa,
        "unknown_issuer",
    ),
    presenting(
        "expired",
        Leaf::Expired,
        Alert::CertificateExpired,
        "expired",
    ),
    presenting(
        "not yet valid",
        Leaf::NotYetValid,
        Alert::CertificateExpired,
        "not_yet_valid",
    ),
    presenting(
        "for servers alone",
        Leaf::OtherPurpose,
        Alert::UnsupportedCertificate,
        "wrong_purpose",
    ),
    presenting(
        "revoked",
        Leaf::Revoked,
        Alert::CertificateRevoked,
        "revoked",
    ),
    Case {
        name: "TLS 1.2 alone",
        speaks: Speaks::OnlyTls12,
        end: End::Refused(Alert::ProtocolVersion, "incompatible"),
        ..GOOD
    },
    Case {
        name: "no protocol agreed on",
        speaks: Speaks::WithoutAlpn,
        end: End::Refused(Alert::NoApplicationProtocol, "alpn"),
        ..GOOD
    },
    Case {
        name: "another server name",
        server: Leaf::OtherName,
        end: End::RefusesUs("client_alert"),
        ..GOOD
    },
    Case {
        name: "revoked server",
        server: Leaf::Revoked,
        end: End::RefusesUs("client_alert"),
        ..GOOD
    },
    allowing(
        "allowed by DNS name",
        "x.example, caller.example",
        End::Served,
    ),
    allowing("allowed by URI", "spiffe://example/caller", End::Served),
    allowing("allowed by common name", "caller", End::Served),
    allowing("not allowed", "x.example, caller.example.org", End::Denied),
];

/// A call as a client makes it.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(crate) attempt: Attempt,
    pub(crate) address: SocketAddr,
    /// Whether the certificate in the folder is presented.
    pub(crate) presents: bool,
}

/// The request that every client sends.
pub(crate) fn greeting() -> EchoRequest {
    EchoRequest {
        message: GREETING.to_owned(),
        ..EchoRequest::default()
    }
}

/// How a call ended for the client.
#[derive(Clone, Debug)]
pub(crate) enum Outcome {
    Answered(EchoResponse),
    /// With `PERMISSION_DENIED`.
    Denied,
    /// Without an answer.
    Failed,
}

impl Outcome {
    /// An answer as the program got it.
    pub(crate) fn answered(message: &[u8]) -> Self {
        Self::Answered(EchoResponse::decode(message).unwrap())
    }

    /// An answer that the program wrote in hexadecimal digits.
    pub(crate) fn answered_in_hexadecimal(digits: &str) -> Self {
        let pairs = digits.as_bytes().chunks(2);
        let text = |pair| str::from_utf8(pair).unwrap();
        let bytes: Vec<u8> = pairs
            .map(|pair| u8::from_str_radix(text(pair), 16).unwrap())
            .collect();
        Self::answered(&bytes)
    }
}

/// What the client saw.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) outcome: Outcome,
    /// Everything that it said, for messages and to find the alert in.
    pub(crate) said: String,
}

/// A foreign client.
#[derive(Debug)]
pub(crate) struct Caller {
    /// What our server speaks with it.
    pub(crate) protocols: Protocols,
    /// How it words an alert.
    pub(crate) alert: fn(Alert) -> &'static str,
    /// Where it differs.
    pub(crate) differences: &'static [Difference<End>],
}

impl Caller {
    /// Runs all cases, and panics with every one that didn't end as it should.
    pub(crate) async fn run(&self, call: impl AsyncFn(Call) -> Seen) {
        self.run_where(|_| true, call).await;
    }

    /// Runs the cases in which our server refuses the client.
    pub(crate) async fn run_refused(&self, call: impl AsyncFn(Call) -> Seen) {
        self.run_where(|end| matches!(end, End::Refused(..)), call)
            .await;
    }

    async fn run_where(&self, chosen: impl Fn(End) -> bool, call: impl AsyncFn(Call) -> Seen) {
        check_differences(
            CASES.iter().map(|case| (case.name, &case.end)),
            self.differences,
        );
        let certificates = Certificates::new();
        let mut failures = Failures::default();
        for case in CASES {
            let end = expected(case.name, case.end, self.differences);
            let Some(end) = end.filter(|end| chosen(*end)) else {
                continue;
            };
            let server =
                OurServer::start(&certificates, case.server, case.allow, self.protocols).await;
            let client = certificates.client(case.client.unwrap_or(Leaf::Good));
            let call = call(Call {
                attempt: Attempt {
                    case: case.name,
                    folder: certificates.folder(&format!("client {}", case.name), &client),
                    speaks: case.speaks,
                },
                address: server.address,
                presents: case.client.is_some(),
            });
            let seen = soon(case.name, call).await;
            if let Err(problem) = self.check_client(end, &seen) {
                failures.note(case.name, &end, &problem, &seen.said);
            }
            if let Err(problem) = server.check(end).await {
                failures.note(case.name, &end, &problem, &seen.said);
            }
            server.stop().await;
        }
        failures.check(CASES.len());
    }

    fn check_client(&self, end: End, seen: &Seen) -> Result<(), String> {
        match (end, &seen.outcome) {
            (End::Served, Outcome::Answered(answer)) => {
                if answer.message == GREETING && answer.peer == "caller.example" {
                    Ok(())
                } else {
                    Err(format!("the answer is {answer:?}"))
                }
            }
            (End::Denied, Outcome::Denied)
            | (End::Closed | End::LeavesUs | End::RefusesUs(_), Outcome::Failed) => Ok(()),
            (End::Refused(alert, _), Outcome::Failed) => {
                let words = (self.alert)(alert);
                if seen.said.contains(words) {
                    Ok(())
                } else {
                    Err(format!("the client has not heard {words:?}"))
                }
            }
            (_, outcome) => Err(format!("for the client it ended with {outcome:?}")),
        }
    }
}
