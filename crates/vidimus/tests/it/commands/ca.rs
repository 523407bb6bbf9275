//! `vidimus ca`, `identity`, `status`: a root and an issuing CA, offline and running.

use std::fs;

use vidimus_testkit::{Pki, Process, openssl};

use crate::support::{Cas, PATIENCE, Ran, vidimus, write};

/// C1, C4: root and issuing CA are made by `node init`, and what they issue verifies under the root with openssl.
#[test]
fn a_leaf_of_the_issuing_ca_verifies_under_the_root() {
    let cas = Cas::make();
    let csr = cas.openssl_csr("web.example.org");
    let chain = Ran::well(cas.on_node([
        "ca",
        "issue-leaf",
        "--csr",
        &csr,
        "--profile",
        "leaf-server",
    ]))
    .stdout;
    write(cas.path("tls.crt"), &chain);
    let (root, leaf) = (cas.text("root.pem"), cas.text("tls.crt"));
    openssl([
        "verify",
        "-x509_strict",
        "-purpose",
        "sslserver",
        "-CAfile",
        &root,
        "-untrusted",
        &leaf,
        "-verify_hostname",
        "web.example.org",
        &leaf,
    ])
    .success();
    assert_eq!(
        chain.matches("BEGIN CERTIFICATE").count(),
        2,
        "leaf and issuing CA, without the root"
    );
}

/// C4: names are given beside the request's own; the profile decides whether they may be.
#[test]
fn names_of_the_command_line_stand_beside_those_of_the_request() {
    let cas = Cas::make();
    let csr = cas.openssl_csr("web.example.org");
    let out = cas.text("tls.crt");
    let args = [
        "ca",
        "issue-leaf",
        "--csr",
        &csr,
        "--profile",
        "leaf-server",
        "--dns",
        "www.example.org",
        "--ip",
        "192.0.2.7",
        "--out",
        &out,
    ];
    let ran = Ran::well(cas.on_node(args));
    assert!(
        ran.stdout.is_empty() && ran.stderr.contains("serial "),
        "{}{}",
        ran.stdout,
        ran.stderr
    );
    let text = openssl(["x509", "-in", &out, "-noout", "-ext", "subjectAltName"])
        .success()
        .stdout_text();
    for name in [
        "DNS:web.example.org",
        "DNS:www.example.org",
        "IP Address:192.0.2.7",
    ] {
        assert!(text.contains(name), "{name} is missing in {text}");
    }
    let refused = Ran::of(cas.on_node([
        "ca",
        "issue-leaf",
        "--csr",
        &csr,
        "--profile",
        "leaf-server",
        "--dns",
        "*.example.org",
    ]));
    refused.failed(4, "INVALID_ARGUMENT");
}

/// C1: a root refuses leaves until its config has the irreversible acknowledgement; a subordinate it signs.
#[test]
fn a_root_refuses_leaves_without_the_acknowledgement() {
    let cas = Cas::make();
    let csr = cas.openssl_csr("web.example.org");
    let leaf = || {
        Ran::of(cas.on_root([
            "ca",
            "issue-leaf",
            "--csr",
            &csr,
            "--profile",
            "leaf-server",
        ]))
    };
    let refused = leaf();
    refused.failed(4, "FAILED_PRECONDITION");
    assert!(
        refused.stderr.contains("acknowledged-irreversible"),
        "{}",
        refused.stderr
    );

    let config = fs::read_to_string(cas.path("root.yaml")).expect("the config");
    let acknowledged = config.replace(
        "pki:\n",
        "pki:\n  root_leaf_issuance: acknowledged-irreversible\n",
    );
    write(cas.path("root.yaml"), acknowledged);
    let file = cas.text("root.yaml");
    Ran::well(cas.on_root(["config", "apply", "-f", &file]));
    assert_eq!(leaf().code, Some(0));
}

/// C5: a key that isn't certified is refused with what is accepted.
#[test]
fn a_p256_request_is_refused_with_what_is_accepted() {
    let cas = Cas::make();
    let (key, csr) = (cas.text("p256.key"), cas.text("p256.csr"));
    openssl([
        "req",
        "-new",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:P-256",
        "-nodes",
        "-keyout",
        &key,
        "-subj",
        "/CN=web",
        "-addext",
        "subjectAltName=DNS:web.example.org",
        "-out",
        &csr,
    ])
    .success();
    let refused = Ran::of(cas.on_node([
        "ca",
        "issue-leaf",
        "--csr",
        &csr,
        "--profile",
        "leaf-server",
    ]));
    assert_eq!(refused.code, Some(4), "{}", refused.stderr);
    for word in ["INVALID_ARGUMENT", "P-256", "P-384", "3072", "cert-manager"] {
        assert!(
            refused.stderr.contains(word),
            "{word} is missing in {}",
            refused.stderr
        );
    }
}

/// C13: what was issued is listed in each format, fetched by its serial number in any spelling, and an unknown one told.
#[test]
fn the_issued_set_is_listed_and_fetched() {
    let cas = Cas::make();
    let node = cas.run_node();
    let csr = cas.openssl_csr("web.example.org");
    let chain = Ran::well(node.mtls([
        "ca",
        "issue-leaf",
        "--csr",
        &csr,
        "--profile",
        "leaf-server",
    ]))
    .stdout;
    let list = |format| {
        Ran::well(node.socket([
            "ca",
            "list-issued",
            "--profile",
            "leaf-server",
            "-o",
            format,
        ]))
        .stdout
    };
    let json: serde_json::Value = serde_json::from_str(&list("json")).expect("JSON");
    assert_eq!(json.as_array().map(Vec::len), Some(1), "{json}");
    let row = &json[0];
    assert_eq!(row["names"][0], "web.example.org", "{row}");
    assert_eq!(row["requester"], "admin", "{row}");
    assert_eq!(row["status"], "valid", "{row}");
    let serial = row["serial"].as_str().expect("a serial number");
    assert!(list("table").contains("SERIAL") && list("table").contains(serial));
    assert!(list("yaml").contains(&format!("serial: {serial}")) || list("yaml").contains(serial));

    let spelled = format!("0x00{}", serial.to_uppercase());
    let fetched =
        Ran::well(node.socket(["ca", "get-issued", "--serial", &spelled, "--pem"])).stdout;
    assert_eq!(fetched, chain);
    let unknown = Ran::of(node.socket(["ca", "get-issued", "--serial", "01"]));
    unknown.failed(4, "NOT_FOUND");
    let nonsense = Ran::of(node.socket(["ca", "get-issued", "--serial", "xyz"]));
    assert!(
        nonsense.stderr.contains("INVALID_ARGUMENT"),
        "{}",
        nonsense.stderr
    );
}

/// C4: a client that is not the administrator gets nothing; nobody at the address is another exit code.
#[test]
fn only_the_administrator_is_let_in() {
    let cas = Cas::make();
    let node = cas.run_node();
    let status = Ran::well(node.mtls(["status", "-o", "json"])).json();
    assert_eq!(status["role"], "issuing", "{status}");
    assert_eq!(status["identity"], "established", "{status}");

    let stranger = Pki::new("somebody else").leaf("admin").client().issue();
    let identity = cas.path("stranger");
    stranger.write_dir(&identity, &[]);
    fs::copy(node.data.join("admin/ca.crt"), identity.join("ca.crt")).expect("the CA to trust");
    let refused = Ran::of(node.mtls_as(["status"], &identity));
    assert_eq!(refused.code, Some(3), "{}", refused.stderr);
    assert!(
        refused.stderr.contains("UNAVAILABLE") && refused.stderr.contains("alert"),
        "{}",
        refused.stderr
    );

    let admin = node.data.join("admin").display().to_string();
    let nobody = Ran::of(["status", "--node", "127.0.0.1:1", "--identity", &admin]);
    assert_eq!(nobody.code, Some(3), "{}", nobody.stderr);
    let which = Ran::of(["status"]);
    which.failed(2, "--socket");
}

/// The node's own certificate is shown, and judged.
#[test]
fn the_identity_is_shown_and_valid() {
    let cas = Cas::make();
    let chain = Ran::well(cas.on_node(["identity", "show", "-o", "json"])).json();
    assert_eq!(chain[0]["subject"], "CN=Test issuing CA", "{chain}");
    assert_eq!(chain[0]["issuer"], "CN=Test root", "{chain}");
    let anchor = Ran::well(cas.on_node(["identity", "show", "--anchor"])).stdout;
    assert_eq!(
        anchor,
        fs::read_to_string(cas.path("root.pem")).expect("the root")
    );
    let verdict = Ran::well(cas.on_node(["identity", "validate", "-o", "json"])).json();
    assert_eq!(verdict["valid"], true, "{verdict}");
}

/// Two steps of a subordinate, and what is told where a step is out of order.
#[test]
fn the_ceremony_tells_what_is_out_of_order() {
    let cas = Cas::make();
    let (config, data, unlock) = (
        cas.text("node.yaml"),
        cas.text("node"),
        cas.text("node.unlock"),
    );
    let again = Ran::of([
        "node",
        "init",
        "--role",
        "issuing",
        "--config",
        &config,
        "--data-dir",
        &data,
        "--unlock-file",
        &unlock,
    ]);
    assert_eq!(again.code, Some(1), "{}", again.stderr);
    let role = Ran::of([
        "node",
        "init",
        "--role",
        "root",
        "--config",
        &config,
        "--data-dir",
        &data,
        "--unlock-file",
        &unlock,
    ]);
    role.failed(2, "issuing");

    // A node that waits for its chain doesn't run.
    let (waiting, other) = (cas.text("waiting"), cas.text("other.unlock"));
    Ran::well([
        "node",
        "init",
        "--role",
        "issuing",
        "--config",
        &config,
        "--data-dir",
        &waiting,
        "--create-unlock-file",
        &other,
    ]);
    let run = Ran::of([
        "node",
        "run",
        "--data-dir",
        &waiting,
        "--unlock-file",
        &other,
    ]);
    assert_eq!(run.code, Some(1), "{}", run.stderr);
    // A chain for another key is refused.
    let chain = cas.text("chain.pem");
    let foreign = Ran::of([
        "node",
        "init",
        "--role",
        "issuing",
        "--config",
        &config,
        "--data-dir",
        &waiting,
        "--unlock-file",
        &other,
        "--chain",
        &chain,
    ]);
    assert_eq!(foreign.code, Some(1), "{}", foreign.stderr);
    // The wrong unlock file opens nothing.
    let wrong = Ran::of(["status", "--data-dir", &data, "--unlock-file", &other]);
    assert_eq!(wrong.code, Some(1), "{}", wrong.stderr);
}

/// C15: a service manager may hand over what opens the key; without it the program says what it needs.
#[test]
fn systemd_hands_over_what_opens_the_key() {
    let cas = Cas::make();
    let data = cas.text("node");
    let credentials = cas.path("credentials");
    fs::create_dir(&credentials).expect("a folder");
    let run = |folder: &std::path::Path| {
        let mut command = vidimus(["node", "run", "--data-dir", &data, "--log-format", "json"]);
        command.env("CREDENTIALS_DIRECTORY", folder);
        command
    };
    let refused = run(&credentials).output().expect("the program runs");
    let stderr = String::from_utf8_lossy(&refused.stderr);
    assert_eq!(refused.status.code(), Some(2), "{stderr}");
    assert!(stderr.contains("LoadCredential=unlock"), "{stderr}");

    fs::copy(cas.path("node.unlock"), credentials.join("unlock")).expect("hand it over");
    let mut process = Process::spawn(run(&credentials));
    process.wait_for_line("management API on", PATIENCE);
    process.terminate();
    assert!(
        process.wait_exit(PATIENCE).success(),
        "{:?}",
        process.lines()
    );
}
