//! What scanners find at a listener of ours, TLS and HTTP alike.
//!
//! A server of TLS 1.3 has shown all it has before it judges the client, so that sslscan sees the same with a certificate
//! and without. testssl.sh takes the refusal for a failed connection and stops; it is given a certificate.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use serde_json::Value;
use vidimus_testkit::command::Output;
use vidimus_tls::config::Protocols;

use crate::matrix::program::{finish, finish_within, program};
use crate::matrix::{Certificates, Leaf, OurServer, SERVER, put};
use crate::support::DEADLINE;

/// testssl.sh's findings that are worse than LOW, or say that something could not be looked at, and why they stand.
const TESTSSL_KNOWN: [(&str, &str); 5] = [
    (
        "cert_expirationStatus",
        "the test's certificate lasts ten days, as short-lived ones do",
    ),
    ("cert_notAfter", "the same"),
    (
        "cert_revocation",
        "revocation lists come as files and not from an address in the certificate",
    ),
    (
        "engine_problem",
        "this OpenSSL has no GOST, which nobody offers here",
    ),
    (
        "security_headers",
        "those are for browsers, and for the service to send",
    ),
];

/// What testssl.sh must have found.
const TESTSSL_FOUND: [(&str, &str); 20] = [
    ("SSLv2", "not offered"),
    ("SSLv3", "not offered"),
    ("TLS1", "not offered"),
    ("TLS1_1", "not offered"),
    ("TLS1_2", "not offered"),
    ("TLS1_3", "offered with final"),
    ("ALPN_HTTP2", "h2"),
    ("ALPN", "http/1.1"),
    ("protocol_negotiated", "Default protocol TLS1.3"),
    ("TLS_session_ticket", "no -- no lifetime advertised"),
    ("SSL_sessionID_support", "no"),
    ("sessionresumption_ticket", "not supported"),
    ("sessionresumption_ID", "No Session ID, no resumption"),
    ("cert_trust", "Ok via SAN"),
    ("cert_chain_of_trust", "passed"),
    ("cipherlist_NULL", "not offered"),
    ("cipherlist_AVERAGE", "not offered"),
    ("PFS", "offered"),
    ("heartbleed", "not vulnerable"),
    ("RC4", "not vulnerable"),
];

/// V5, T7.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn testssl_sees_tls_1_3_without_resumption_and_nothing_to_complain_about() {
    let certificates = Certificates::new();
    let folder = certificates.folder("scanner", &certificates.client(Leaf::Good));
    let server = OurServer::start(&certificates, Leaf::Good, "", Protocols::H2AndHttp1).await;
    let mut command = program("testssl", "testssl.sh");
    command
        .current_dir(&folder)
        .args(["--quiet", "--color", "0", "--warnings", "batch"])
        .arg("--openssl")
        .arg(openssl_with_certificate(&folder))
        .args(["--add-ca", "ca.crt", "--jsonfile", "found.json"])
        .args(["--protocols", "--std", "--fs", "--server-defaults"])
        .args(["--server-preference", "--headers", "--vulnerable"])
        .args(["--ip", "127.0.0.1"])
        .arg(format!("{SERVER}:{}", server.address.port()));
    let output = finish_within(command, 5 * DEADLINE).await;
    server.stop().await;

    let text = std::fs::read_to_string(folder.join("found.json")).unwrap();
    let list: Vec<Value> = serde_json::from_str(&text).unwrap();
    let found: BTreeMap<&str, &str> = list
        .iter()
        .map(|one| (part(one, "id"), part(one, "finding")))
        .collect();
    for (id, expected) in TESTSSL_FOUND {
        let finding = found.get(id);
        assert!(
            finding.is_some_and(|finding| finding.starts_with(expected)),
            "{id}: {finding:?} instead of {expected:?}\n{output}"
        );
    }
    // Some ids stand for several findings.
    let mut bad: Vec<_> = list
        .iter()
        .filter(|one| !["OK", "INFO", "LOW", "DEBUG"].contains(&part(one, "severity")))
        .map(|one| part(one, "id"))
        .collect();
    bad.sort_unstable();
    bad.dedup();
    let known = TESTSSL_KNOWN.map(|(id, _)| id);
    assert_eq!(bad, known, "{output}");
}

fn part<'a>(finding: &'a Value, key: &str) -> &'a str {
    finding[key].as_str().unwrap()
}

/// The version of testssl.sh at hand cannot present a certificate; its openssl can.
fn openssl_with_certificate(folder: &Path) -> PathBuf {
    let script = folder.join("openssl");
    let pair = folder.display();
    put(
        &script,
        format!(
            r#"#!/bin/sh
command=$1
shift
case $command in
  s_client) exec openssl s_client -cert {pair}/tls.crt -key {pair}/tls.key -cert_chain {pair}/tls.crt "$@" ;;
  *) exec openssl "$command" "$@" ;;
esac
"#
        ),
    );
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
    script
}

/// V5.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sslscan_sees_tls_1_3_and_its_three_ciphers_alone() {
    let certificates = Certificates::new();
    let folder = certificates.folder("scanner", &certificates.client(Leaf::Good));
    let server = OurServer::start(&certificates, Leaf::Good, "", Protocols::H2AndHttp1).await;
    for certificate in [&["--certs=tls.crt", "--pk=tls.key"][..], &[]] {
        let mut command = program("sslscan", "sslscan");
        command
            .current_dir(&folder)
            .args(certificate)
            .args(["--no-colour", "--xml=-"])
            .arg(format!("--sni-name={SERVER}"))
            .arg(server.address.to_string());
        check_sslscan(&finish(command).await.success());
    }
    server.stop().await;
}

fn check_sslscan(output: &Output) {
    let text = output.stdout_text();
    let found = |element: &str, name: &str| -> Vec<&str> {
        text.lines()
            .filter(|line| line.trim_start().starts_with(&format!("<{element} ")))
            .map(|line| {
                let (_, value) = line.split_once(&format!("{name}=\"")).unwrap();
                value.split('"').next().unwrap()
            })
            .collect()
    };
    let protocols = found("protocol", "version").into_iter();
    let enabled: Vec<_> = protocols.zip(found("protocol", "enabled")).collect();
    assert_eq!(
        enabled,
        [
            ("2", "0"),
            ("3", "0"),
            ("1.0", "0"),
            ("1.1", "0"),
            ("1.2", "0"),
            ("1.3", "1"),
        ],
        "{output}"
    );
    let mut ciphers = found("cipher", "cipher");
    ciphers.sort_unstable();
    assert_eq!(
        ciphers,
        [
            "TLS_AES_128_GCM_SHA256",
            "TLS_AES_256_GCM_SHA384",
            "TLS_CHACHA20_POLY1305_SHA256",
        ],
        "{output}"
    );
    // it knows none of the hybrids
    let mut groups = found("group", "name");
    groups.sort_unstable();
    assert_eq!(
        groups,
        ["secp256r1 (NIST P-256)", "secp384r1 (NIST P-384)", "x25519"],
        "{output}"
    );
    assert_eq!(found("renegotiation", "supported"), ["0"], "{output}");
    assert_eq!(found("heartbleed", "vulnerable"), ["0"], "{output}");
}
