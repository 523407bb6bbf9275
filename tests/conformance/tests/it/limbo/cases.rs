//! The file of cases, as far as a verifier of peers needs it.

use std::{path::Path, time::SystemTime};

use jiff::Timestamp;
use rustls_pki_types::CertificateDer;
use serde_json::Value;
use vidimus_x509::pem;

use crate::repository;

/// For cases that leave the time to whoever runs them: their certificates are valid for centuries.
const ANY_TIME: &str = "2026-06-29T00:00:00Z";

/// One case.
#[derive(Debug)]
pub(super) struct Case {
    /// `rfc5280::nc::permitted-dns-match`.
    pub(super) id: String,
    /// What it shows, with its first lines joined.
    pub(super) description: String,
    /// Whether the chain should be accepted.
    pub(super) success: bool,
    /// The roots in PEM.
    pub(super) roots: String,
    /// The revocation lists in PEM; the suite asks for nothing where it gives none.
    pub(super) lists: String,
    /// What the peer sends, its own certificate first, each in PEM.
    pub(super) chain: Vec<String>,
    /// Who the peer should be.
    pub(super) peer: Peer,
    /// When it is judged.
    pub(super) at: SystemTime,
}

/// Who the peer should be.
#[derive(Debug)]
pub(super) enum Peer {
    /// The server of this DNS name or IP address.
    Server(String),
    /// A client with these mail addresses, or anybody.
    Client(Vec<String>),
}

/// Reads all cases.
pub(super) fn read(path: &str) -> Vec<Case> {
    let path = Path::new(path);
    let text = std::fs::read(path).unwrap_or_else(|error| repository::fail(path, &error));
    let whole: Value = serde_json::from_slice(&text).expect("x509-limbo.json is JSON");
    let cases = whole["testcases"].as_array().expect("testcases");
    cases.iter().map(case).collect()
}

/// What the peer sends, in DER; an error is what a process would say that can't even read it.
pub(super) fn presented(case: &Case) -> Result<Vec<CertificateDer<'static>>, String> {
    let mut chain = Vec::new();
    for text in &case.chain {
        let ders = pem::certificates(text.as_bytes()).map_err(|error| format!("PEM: {error}"))?;
        chain.extend(ders.into_iter().map(CertificateDer::from));
    }
    Ok(chain)
}

fn case(value: &Value) -> Case {
    let id = text(&value["id"]);
    let leaf = std::iter::once(text(&value["peer_certificate"]));
    let time = value["validation_time"].as_str().unwrap_or(ANY_TIME);
    let at: Timestamp = time.parse().expect("validation_time is RFC 3339");
    let emails = list(&value["expected_peer_names"]).iter().map(|name| {
        assert_eq!(
            name["kind"], "RFC822",
            "{id}: a kind of name this test doesn't know"
        );
        text(&name["value"])
    });
    let peer = match &value["expected_peer_name"] {
        Value::Null => Peer::Client(emails.collect()),
        name => Peer::Server(text(&name["value"])),
    };
    let success = match value["expected_result"].as_str() {
        Some("SUCCESS") => true,
        Some("FAILURE") => false,
        other => unreachable!("{id}: expected_result {other:?}"),
    };
    Case {
        description: text(&value["description"]).replace('\n', " "),
        success,
        roots: list(&value["trusted_certs"]).iter().map(text).collect(),
        lists: list(&value["crls"]).iter().map(text).collect(),
        chain: leaf
            .chain(list(&value["untrusted_intermediates"]).iter().map(text))
            .collect(),
        peer,
        at: at.into(),
        id,
    }
}

fn text(value: &Value) -> String {
    value.as_str().expect("a string").to_owned()
}

fn list(value: &Value) -> &[Value] {
    value.as_array().expect("a list")
}
