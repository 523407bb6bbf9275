use std::{net::Ipv4Addr, path::Path};

use vidimus_testkit::{Authority, Pki, openssl, pki::Curve};

fn path(path: &Path) -> &str {
    path.to_str().expect("a folder with a UTF-8 name")
}

/// The chain verifies for openssl; one of another root doesn't.
#[test]
fn openssl_verifies_a_leaf_under_its_root_alone() {
    let pki = Pki::new("Test");
    let other = Authority::root("Other");
    let folder = tempfile::tempdir().expect("a folder");
    let leaf = pki
        .leaf("server")
        .dns("server.test")
        .server()
        .curve(Curve::P256)
        .issue();
    leaf.write_dir(folder.path(), &[&pki.root]);
    let verify = |dir: &Path| {
        let (crt, ca) = (dir.join("tls.crt"), dir.join("ca.crt"));
        openssl([
            "verify",
            "-x509_strict",
            "-purpose",
            "sslserver",
            "-CAfile",
            path(&ca),
            "-untrusted",
            path(&crt),
            path(&crt),
        ])
    };
    verify(folder.path()).success();
    leaf.write_dir(folder.path(), &[&other]);
    assert!(!verify(folder.path()).status.success());
}

#[test]
fn names_serial_and_usage_are_in_the_certificate() {
    let pki = Pki::new("Test");
    let folder = tempfile::tempdir().expect("a folder");
    let leaf = pki
        .leaf("manager")
        .dns("manager.test")
        .uri("spiffe://td.test/manager")
        .ip(Ipv4Addr::LOCALHOST.into())
        .client()
        .serial(&[0x0a, 0xbc])
        .issue();
    leaf.write_dir(folder.path(), &[&pki.root]);
    let crt = folder.path().join("tls.crt");
    let text = openssl(["x509", "-in", path(&crt), "-noout", "-text"])
        .success()
        .stdout_text();
    for expected in [
        "CN = manager",
        "DNS:manager.test",
        "URI:spiffe://td.test/manager",
        "IP Address:127.0.0.1",
        "TLS Web Client Authentication",
        "2748 (0xabc)",
    ] {
        assert!(text.contains(expected), "{expected:?} is not in:\n{text}");
    }
    assert!(!text.contains("TLS Web Server Authentication"));
}
