//! Which keys and key exchanges are accepted, with openssl at the other end.

use std::path::Path;
use std::process::Command;

use vidimus_testkit::{Pki, Process, openssl};
use vidimus_tls::channel::{Channel, ClientTls};
use vidimus_tls::material::{MaterialFiles, Usage};
use vidimus_tls::watch::MaterialWatch;

use crate::support::{DEADLINE, Running, SERVER, Setup, World, put, quick, soon};

/// How openssl is told to make a key, and whether a peer may have it.
const KEYS: [(&str, &[&str], bool); 6] = [
    (
        "P-256",
        &["-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256"],
        true,
    ),
    (
        "P-384",
        &["-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-384"],
        true,
    ),
    ("Ed25519", &["-algorithm", "ED25519"], true),
    (
        "RSA 2048",
        &["-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048"],
        true,
    ),
    (
        "RSA 3072",
        &["-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:3072"],
        true,
    ),
    (
        "RSA 1024",
        &["-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:1024"],
        false,
    ),
];

/// A key made by openssl and a certificate for it from the PKI's issuing CA: `tls.key`, `tls.crt` and `ca.crt` in `dir`.
fn certify(pki: &Pki, dir: &Path, key: &[&str], name: &str, usage: &str) {
    let at = |name: &str| dir.join(name).display().to_string();
    put(at("issuing.crt"), pki.issuing.pem());
    put(at("issuing.key"), pki.issuing.key_pem());
    put(at("ca.crt"), pki.root.pem());
    put(
        at("extensions"),
        format!(
            "basicConstraints=critical,CA:FALSE\nextendedKeyUsage={usage}\nsubjectAltName=DNS:{name}\nauthorityKeyIdentifier=keyid\n"
        ),
    );
    let (private, request, leaf) = (at("tls.key"), at("request"), at("leaf.crt"));
    openssl([&["genpkey"], key, &["-out", &private]].concat()).success();
    openssl([
        "req", "-new", "-key", &private, "-subj", "/CN=peer", "-out", &request,
    ])
    .success();
    openssl([
        "x509",
        "-req",
        "-in",
        &request,
        "-days",
        "3",
        "-CA",
        &at("issuing.crt"),
        "-CAkey",
        &at("issuing.key"),
        "-extfile",
        &at("extensions"),
        "-out",
        &leaf,
    ])
    .success();
    let leaf = std::fs::read_to_string(leaf).expect("a certificate");
    put(at("tls.crt"), format!("{leaf}{}", pki.issuing.pem()));
}

/// V5. Clients with the usual kinds of keys are known, and one with a key that is too short is refused.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_of_openssl_are_accepted_by_the_kind_of_their_key() {
    let world = World::new();
    let (running, _watch) = Running::follow(world.dir.path(), Setup::default()).await;
    for (kind, key, accepted) in KEYS {
        let dir = tempfile::tempdir().expect("a folder");
        certify(&world.pki, dir.path(), key, "client.test", "clientAuth");
        let before = running.server.stats();
        let mut command = Command::new("openssl");
        command.current_dir(dir.path());
        command.args(["s_client", "-connect", &running.address.to_string()]);
        command.args([
            "-servername",
            SERVER,
            "-CAfile",
            "ca.crt",
            "-alpn",
            "h2",
            "-ign_eof",
        ]);
        command.args([
            "-cert",
            "tls.crt",
            "-key",
            "tls.key",
            "-cert_chain",
            "tls.crt",
        ]);
        // Debian's openssl refuses short keys of its own accord.
        command.args(["-cipher", "DEFAULT@SECLEVEL=0"]);
        // The HTTP/2 preface, an empty SETTINGS frame and a GOAWAY, which ends the connection.
        let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0\
                        \0\0\x08\x07\0\0\0\0\0\0\0\0\0\0\0\0\0";
        let output = vidimus_testkit::command::run(command, preface, DEADLINE);
        let said = format!("{}{}", output.stdout_text(), output.stderr_text());
        let after = running.server.stats();
        let result = (
            after.handshakes_ok - before.handshakes_ok,
            after.handshakes_failed - before.handshakes_failed,
        );
        assert_eq!(
            result,
            (u64::from(accepted), u64::from(!accepted)),
            "{kind}: {said}"
        );
    }
    let failures = running.server.stats().failures;
    assert_eq!(failures.len(), 1, "{failures:?}");
    running.stop().await;
}

/// V5. The same of servers.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn servers_of_openssl_are_accepted_by_the_kind_of_their_key() {
    let pki = Pki::new("Example");
    let ours = tempfile::tempdir().expect("a folder");
    let leaf = pki.leaf("client").dns("client.test").client().issue();
    leaf.write_dir(ours.path(), &[&pki.root]);
    let files = MaterialFiles::in_dir(ours.path());
    let started = MaterialWatch::start(files, Usage::Client, quick()).await;
    let (watch, _driver) = started.expect("good material");
    for (kind, key, accepted) in KEYS {
        let dir = tempfile::tempdir().expect("a folder");
        certify(&pki, dir.path(), key, SERVER, "serverAuth");
        let (_server, port) = s_server(dir.path());
        let tls = ClientTls::Watch(watch.clone());
        let target = format!("127.0.0.1:{port}");
        let channel = Channel::builder(&target, SERVER, tls).build();
        let channel = channel.expect("a channel");
        let ready = soon("a connection", channel.ready()).await;
        assert_eq!(ready.is_ok(), accepted, "{kind}: {ready:?}");
    }
}

/// A server of openssl that asks for a certificate, and its port.
fn s_server(dir: &Path) -> (Process, u16) {
    let mut command = Command::new("bash");
    command.current_dir(dir);
    // What it reads it sends: an empty SETTINGS frame, the least that makes it a server of HTTP/2.
    command.arg("-c").arg(
        "(printf '\\0\\0\\0\\4\\0\\0\\0\\0\\0'; sleep 60) | openssl s_server -accept 127.0.0.1:0 -Verify 3 \
         -CAfile ca.crt -alpn h2 -cert tls.crt -key tls.key -cert_chain tls.crt \
         -cipher DEFAULT@SECLEVEL=0",
    );
    let mut server = Process::spawn(command);
    let line = server.wait_for_line("ACCEPT", DEADLINE);
    let port = line.rsplit(':').next();
    let port = port.and_then(|port| port.trim().parse().ok());
    (server, port.expect("a port"))
}

/// V5. The hybrid is used with whoever knows it.
#[tokio::test]
async fn the_post_quantum_hybrid_is_agreed_on() {
    let world = World::new();
    let (running, _watch) = Running::follow(world.dir.path(), Setup::default()).await;
    let stream = world.client().connect(running.address).await.expect("TLS");
    let group = stream.get_ref().1.negotiated_key_exchange_group();
    assert_eq!(
        group.map(rustls::crypto::SupportedKxGroup::name),
        Some(rustls::NamedGroup::X25519MLKEM768)
    );
    running.stop().await;
}
