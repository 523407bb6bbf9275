//! C1, K9, C15: how a node comes to its key and its certificate.

use std::{fs, os::unix::fs::PermissionsExt as _};

use vidimus_client::pb;
use vidimus_node::{
    Node, OpenError, RotationError,
    ceremony::{self, Ceremony, CompleteError, InitError},
    config::{self, Role},
};
use vidimus_testkit::openssl;

use crate::house::{House, config_text, csr, leaf, openssl_verifies, secret};

/// C1, K9: the root verifies under the key that it contains, and has no path length.
#[tokio::test]
async fn a_root_signs_itself() {
    let house = House::new();
    let root = house.root().await;
    openssl_verifies(&house, &root, &root);
    let file = house.write("root.pem", &root);
    let text = openssl([
        "x509", "-in", &file, "-noout", "-text", "-nameopt", "RFC2253",
    ])
    .success()
    .stdout_text();
    assert!(
        text.contains("Issuer: CN=Root") && text.contains("Subject: CN=Root"),
        "{text}"
    );
    assert!(
        text.contains("CA:TRUE") && !text.contains("pathlen"),
        "{text}"
    );
}

/// C1, C4: root, intermediate and issuing node, each in its own data directory; openssl verifies what the last one issues.
#[tokio::test]
async fn a_chain_of_three_nodes_verifies_with_openssl() {
    let house = House::new();
    let root = house.root().await;
    let parse = |text: String| config::parse("node.yaml", &text).unwrap();

    // an intermediate whose sub-ca profile allows issuing nodes below it
    let intermediate = parse(config_text(Role::Intermediate, "Intermediate", Some(&root)));
    let request = house.request("intermediate", &intermediate).await;
    let intermediate_chain = house.signed_by("root", &request).await;
    house
        .complete("intermediate", &intermediate_chain)
        .await
        .unwrap();

    let issuing = parse(config_text(Role::Issuing, "Issuing", Some(&root)));
    let request = house.request("issuing", &issuing).await;
    let issuing_chain = house.signed_by("intermediate", &request).await;
    assert_eq!(
        issuing_chain.matches("BEGIN CERTIFICATE").count(),
        2,
        "the root is not in it"
    );
    house.complete("issuing", &issuing_chain).await.unwrap();

    let client = house.offline("issuing").await;
    let request = csr(house.path("").as_path(), "web", &["web.example.org"]);
    let issued = client
        .issue_leaf(leaf(request, "leaf-server", &[]))
        .await
        .unwrap();
    assert_eq!(issued.chain_pem.matches("BEGIN CERTIFICATE").count(), 3);
    openssl_verifies(&house, &root, &issued.chain_pem);

    let identity = client.identity().await.unwrap();
    assert_eq!(identity.chain_der.len(), 2);
    assert_eq!(identity.anchor_pem, root);
}

/// C1: the pinned parent is the only anchor.
#[tokio::test]
async fn a_subordinate_takes_only_a_chain_for_its_key_that_leads_to_its_parent() {
    let house = House::new();
    let root = house.root().await;
    let text = config_text(Role::Issuing, "Issuing", Some(&root));
    let config = config::parse("node.yaml", &text).unwrap();
    let request = house.request("issuing", &config).await;
    let good = house.signed_by("root", &request).await;

    // another root of the same name signs the same request
    let other = House::new();
    other.root().await;
    let of_another_root = other.signed_by("root", &request).await;
    // the right root signs another key's request
    let other_request = other.request("issuing", &config).await;
    let for_another_key = house.signed_by("root", &other_request).await;

    for (chain, expected) in [
        (of_another_root.as_str(), "does not lead to the parent"),
        (for_another_key.as_str(), "is for the key of the request"),
        (root.as_str(), "is for the key of the request"),
        ("nothing", "chain"),
    ] {
        match house.complete("issuing", chain).await {
            Err(CompleteError::Rotation(refused @ RotationError::Chain(_))) => {
                assert!(refused.to_string().contains(expected), "{refused}");
            }
            other => panic!("{expected}: {other:?}"),
        }
    }
    let done = house.complete("issuing", &good).await.unwrap();
    assert!(matches!(done.outcome, Ceremony::Established { .. }));
    match house.complete("issuing", &good).await {
        Err(CompleteError::Rotation(RotationError::NothingWaits)) => {}
        other => panic!("it has its chain: {other:?}"),
    }
}

/// C1: a parent pinned by digest must be in the offered chain.
#[tokio::test]
async fn a_parent_pinned_by_digest_must_be_in_the_chain() {
    let house = House::new();
    let root = house.root().await;
    let file = house.write("root.pem", &root);
    let print = openssl(["x509", "-in", &file, "-noout", "-fingerprint", "-sha256"]).success();
    let digest = print
        .stdout_text()
        .trim()
        .rsplit('=')
        .next()
        .unwrap()
        .replace(':', "");
    let text = config_text(Role::Issuing, "Issuing", None)
        .replace("ca_cert_sha256: \"\"", &format!("ca_cert_sha256: {digest}"));
    let config = config::parse("node.yaml", &text).unwrap();
    let request = house.request("issuing", &config).await;
    let without_root = house.signed_by("root", &request).await;
    match house.complete("issuing", &without_root).await {
        Err(CompleteError::Rotation(refused @ RotationError::Chain(_))) => {
            assert!(
                refused
                    .to_string()
                    .contains("no certificate of the chain has"),
                "{refused}"
            );
        }
        other => panic!("{other:?}"),
    }
    // order doesn't matter
    let with_root = format!("{root}{without_root}");
    house.complete("issuing", &with_root).await.unwrap();
    let identity = house.offline("issuing").await.identity().await.unwrap();
    assert_eq!(identity.anchor_pem, root);
}

/// C15: repeated after a crash, `init` goes on; on a finished node it refuses.
#[tokio::test]
async fn init_goes_on_where_it_stopped_and_never_starts_over() {
    let house = House::new();
    let root = house.root().await;
    let text = config_text(Role::Root, "Root", None);
    let config = config::parse("root.yaml", &text).unwrap();
    let again = ceremony::init(&house.data("root"), &config, &secret(), &house.clock()).await;
    assert!(
        matches!(again, Err(InitError::Established { .. })),
        "{again:?}"
    );

    let text = config_text(Role::Issuing, "Issuing", Some(&root));
    let config = config::parse("node.yaml", &text).unwrap();
    let first = house.request("issuing", &config).await;
    assert_eq!(
        house.request("issuing", &config).await,
        first,
        "the same request again"
    );

    // a run that ended before the store knew of its key
    let crashed = house.data("crashed");
    vidimus_fs::dir::create_private(crashed.path()).unwrap();
    let key = house.data("issuing").path().join("ca-1.key");
    fs::copy(key, crashed.path().join("ca-1.key")).unwrap();
    let request = house.request("crashed", &config).await;
    let public = |csr: &str| {
        let file = house.write("request.csr", csr);
        openssl(["req", "-in", &file, "-noout", "-pubkey"])
            .success()
            .stdout_text()
    };
    assert_eq!(
        public(&request),
        public(&first),
        "the key that was left is taken up"
    );

    let rsa = text.replacen("root_key_alg: ECDSA-P384", "root_key_alg: RSA-3072", 1);
    let rsa = config::parse("node.yaml", &rsa).unwrap();
    let left = house.data("left");
    vidimus_fs::dir::create_private(left.path()).unwrap();
    fs::copy(
        crashed.path().join("ca-1.key"),
        left.path().join("ca-1.key"),
    )
    .unwrap();
    let other_kind = ceremony::init(&left, &rsa, &secret(), &house.clock()).await;
    assert!(
        matches!(other_kind, Err(InitError::LeftKeyAlgorithm { .. })),
        "{other_kind:?}"
    );
}

/// C15: nobody but the owner reads the data directory, and the key opens with its secret alone.
#[tokio::test]
async fn the_data_directory_is_its_owners_alone() {
    let house = House::new();
    house.root().await;
    let data = house.data("root");
    let mode = |path: &std::path::Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(data.path()), 0o700);
    for file in ["ca-1.key", "audit.seed", "vidimus.db", "admin/tls.key"] {
        assert_eq!(mode(&data.path().join(file)), 0o600, "{file}");
    }
    let wrong = vidimus_keys::Secret::from_passphrase("another passphrase".to_owned().into());
    let opened = Node::open(data.clone(), wrong.unwrap().into(), house.clock()).await;
    assert!(matches!(opened, Err(OpenError::Key(_))), "{opened:?}");
    let node = house.open("root").await;
    let twice = Node::open(data, secret(), house.clock()).await;
    assert!(matches!(twice, Err(OpenError::Lock(_))), "{twice:?}");
    drop(node);
    house.open("root").await;
    let nothing = Node::open(house.data("nothing"), secret(), house.clock()).await;
    assert!(
        matches!(nothing, Err(OpenError::NotInitialised { .. })),
        "{nothing:?}"
    );
}

/// C1: the administrator's certificate is its own issuer, for clients alone.
#[tokio::test]
async fn the_administrator_that_init_makes_is_self_signed() {
    let house = House::new();
    let root = house.root().await;
    let admin = house.data("root").admin();
    let file = |name: &str| admin.join(name).display().to_string();
    let text = openssl(["x509", "-in", &file("tls.crt"), "-noout", "-text"]).success();
    let text = text.stdout_text();
    assert!(
        text.contains("TLS Web Client Authentication") && !text.contains("CA:TRUE"),
        "{text}"
    );
    openssl([
        "verify",
        "-check_ss_sig",
        "-partial_chain",
        "-CAfile",
        &file("tls.crt"),
        &file("tls.crt"),
    ])
    .success();
    let public = |args: [&str; 4]| openssl(args).success().stdout_text();
    assert_eq!(
        public(["x509", "-in", &file("tls.crt"), "-pubkey"])
            .split("-----BEGIN CERT")
            .next(),
        Some(public(["pkey", "-in", &file("tls.key"), "-pubout"]).as_str())
    );
    assert_eq!(fs::read_to_string(admin.join("ca.crt")).unwrap(), root);
}

/// C1: RSA keys make CAs too.
#[tokio::test]
async fn an_rsa_root_signs_an_ecdsa_subordinate() {
    let house = House::new();
    let root = house
        .root_with(|text| text.replacen("root_key_alg: ECDSA-P384", "root_key_alg: RSA-3072", 1))
        .await;
    openssl_verifies(&house, &root, &root);
    let text = config_text(Role::Issuing, "Issuing", Some(&root));
    let config = config::parse("node.yaml", &text).unwrap();
    let request = house.request("issuing", &config).await;
    let chain = house.signed_by("root", &request).await;
    house.complete("issuing", &chain).await.unwrap();
    let client = house.offline("issuing").await;
    let request = csr(house.path("").as_path(), "web", &["web.example.org"]);
    let issued = client
        .issue_leaf(leaf(request, "leaf-server", &[]))
        .await
        .unwrap();
    openssl_verifies(&house, &root, &issued.chain_pem);
    let status = client.status().await.unwrap();
    assert_eq!(status.role(), pb::Role::Issuing);
    assert_eq!(status.identity(), pb::IdentityState::Established);
}
