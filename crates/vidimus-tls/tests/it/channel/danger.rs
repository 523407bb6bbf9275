//! A channel that believes whoever answers: what it still insists on, and how loud it is.

use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls_pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use tonic::Code;
use vidimus_testkit::{Credential, Pki, Process};
use vidimus_tls::channel::{Channel, ClientTls};
use vidimus_tls::danger::InsecureServerVerification;
use vidimus_tls::identity::Fingerprint;

use super::server::{TestServer, rustls_config};
use super::{assert_status, build, builder, call, client_leaf, server_leaf, watch};
use crate::support::{DEADLINE, LogCapture, SERVER};

fn insecure(pki: &Pki, leaf: &Credential, server: &TestServer) -> Channel {
    let accept = InsecureServerVerification::accept_any_server_certificate();
    let tls = ClientTls::Insecure(watch(leaf, &[&pki.root]), accept);
    build(Channel::builder(&server.target(), SERVER, tls))
}

/// V4. Chain and name don't matter; the client's certificate is presented all the same, and every connect is logged.
#[tokio::test]
async fn an_insecure_channel_warns_on_every_connect_and_presents_its_certificate() {
    let (pki, other) = (Pki::new("Example"), Pki::new("Other"));
    let server_leaf = other
        .leaf("stranger")
        .dns("stranger.test")
        .server()
        .expired()
        .issue();
    let server = TestServer::mutual(rustls_config(&server_leaf, &pki.root)).await;
    let log = LogCapture::start();
    assert_status(
        call(&build(builder(&pki, &server.target()))).await,
        Code::Unavailable,
        &["refused"],
    );
    assert!(
        log.lines_with(&["WARN", "without verifying the server"])
            .is_empty()
    );

    let leaf = client_leaf(&pki);
    for connects in 1..=2 {
        let channel = insecure(&pki, &leaf, &server);
        let presented = call(&channel).await.expect("a call");
        assert_eq!(presented, Fingerprint::of(leaf.leaf_der()).to_string());
        let warnings = log.lines_with(&[
            "WARN",
            "channel_connect{target=",
            "without verifying the server",
            "stranger",
            &server.target(),
        ]);
        assert_eq!(warnings.len(), connects, "{}", log.text());
        let connection = &channel.status().connections[0];
        assert_eq!(connection.anchor, None);
        let shown = connection
            .server
            .as_ref()
            .expect("a certificate")
            .fingerprint();
        assert_eq!(shown, Fingerprint::of(server_leaf.leaf_der()));
    }
}

/// Somebody who shows a certificate without having its key is refused even so.
#[tokio::test]
async fn an_insecure_channel_refuses_a_server_without_the_certificates_key() {
    let pki = Pki::new("Example");
    let (shown, own) = (server_leaf(&pki), server_leaf(&pki));
    let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(own.key_der().to_vec()));
    let key = rustls::crypto::aws_lc_rs::sign::any_supported_type(&key).expect("a key");
    let chain = shown
        .chain_der()
        .iter()
        .cloned()
        .map(CertificateDer::from)
        .collect();
    let mut config = rustls_config(&own, &pki.root);
    config.cert_resolver = Arc::new(SingleCertAndKey::from(CertifiedKey::new(chain, key)));
    let server = TestServer::mutual(config).await;
    let outcome = call(&insecure(&pki, &client_leaf(&pki), &server)).await;
    assert_status(
        outcome,
        Code::Unavailable,
        &["TLS handshake failed", "BadSignature"],
    );

    let honest = TestServer::mutual(rustls_config(&shown, &pki.root)).await;
    call(&insecure(&pki, &client_leaf(&pki), &honest))
        .await
        .expect("a call");
}

/// TLS 1.2 is no way out either; the server is openssl.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_insecure_channel_speaks_tls_1_3_alone() {
    let pki = Pki::new("Example");
    let folder = tempfile::tempdir().expect("a folder");
    server_leaf(&pki).write_dir(folder.path(), &[&pki.root]);
    for (version, answer) in [("-tls1_2", "ProtocolVersion"), ("-tls1_3", "first byte")] {
        let mut command = Command::new("openssl");
        command.current_dir(folder.path()).args([
            "s_server",
            "-accept",
            "127.0.0.1:0",
            "-www",
            "-alpn",
            "h2",
            version,
        ]);
        command.args([
            "-cert",
            "tls.crt",
            "-key",
            "tls.key",
            "-cert_chain",
            "tls.crt",
        ]);
        let mut openssl = Process::spawn(command);
        let accepting = openssl.wait_for_line_async("ACCEPT", DEADLINE).await;
        let target = accepting.trim_start_matches("ACCEPT ").to_owned();
        let accept = InsecureServerVerification::accept_any_server_certificate();
        let tls = ClientTls::Insecure(watch(&client_leaf(&pki), &[&pki.root]), accept);
        let builder =
            Channel::builder(&target, SERVER, tls).connect_timeout(Duration::from_secs(1));
        assert_status(call(&build(builder)).await, Code::Unavailable, &[answer]);
    }
}
