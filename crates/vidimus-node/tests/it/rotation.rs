//! A new CA key while the node issues.

use vidimus_client::{NodeClient, pb, tonic::Code};
use vidimus_node::config::{self, Role};

use crate::house::{House, config_text, csr, leaf, openssl_verifies};

async fn issue(house: &House, client: &NodeClient) -> pb::IssueLeafResponse {
    let request = csr(&house.path(""), "web", &["web.example.org"]);
    client
        .issue_leaf(leaf(request, "leaf-server", &[]))
        .await
        .unwrap()
}

/// C13: a new root, the parent exchanged by an apply, a new key: what is issued verifies under the new root, what was
/// issued before keeps its chain, and a restart changes nothing.
#[tokio::test]
async fn a_rotated_ca_issues_under_its_new_root_and_keeps_its_past() {
    let house = House::new();
    let old_root = house.issuing().await;
    let new = House::new();
    let new_root = new.root().await;
    let client = house.offline("issuing").await;
    let before = issue(&house, &client).await;
    let old_key = client.status().await.unwrap().subject_key_id;

    let csr_pem = client.begin_key_rotation().await.unwrap().csr_pem;
    assert_eq!(
        client.begin_key_rotation().await.unwrap().csr_pem,
        csr_pem,
        "asked again"
    );
    assert!(client.status().await.unwrap().rotation_pending);
    openssl_verifies(&house, &old_root, &issue(&house, &client).await.chain_pem);

    let chain = new.signed_by("root", &csr_pem).await;
    let refused = client.complete_key_rotation(&chain).await.unwrap_err();
    assert_eq!(
        refused.code(),
        Code::InvalidArgument,
        "the old parent is in force: {refused}"
    );

    let text = config_text(Role::Issuing, "Issuing", Some(&new_root));
    config::parse("new.yaml", &text).unwrap();
    let applied = client.apply_config(&text).await.unwrap();
    assert!(!applied.requires_reboot, "the parent is hot");
    assert!(
        applied.warnings[0].contains("rotate its key"),
        "{:?}",
        applied.warnings
    );
    let done = client.complete_key_rotation(&chain).await.unwrap();
    assert!(!done.serial_hex.is_empty());

    let after = issue(&house, &client).await;
    openssl_verifies(&house, &new_root, &after.chain_pem);
    let identity = client.identity().await.unwrap();
    assert_eq!(identity.anchor_pem, new_root);
    let status = client.status().await.unwrap();
    assert_ne!(status.subject_key_id, old_key);
    assert!(!status.rotation_pending);
    let admin_ca = house.data("issuing").admin().join("ca.crt");
    assert_eq!(std::fs::read_to_string(admin_ca).unwrap(), new_root);

    drop(client);
    let client = house.offline("issuing").await;
    for (issued, root) in [(&before, &old_root), (&after, &new_root)] {
        let found = client.issued_certificate(&issued.serial_hex).await.unwrap();
        assert_eq!(found.chain_pem, issued.chain_pem);
        openssl_verifies(&house, root, &found.chain_pem);
    }
    openssl_verifies(&house, &new_root, &issue(&house, &client).await.chain_pem);
}

/// C1: a root has nobody who would sign its next key.
#[tokio::test]
async fn a_root_does_not_rotate() {
    let house = House::new();
    house.root().await;
    let client = house.offline("root").await;
    let refused = client.begin_key_rotation().await.unwrap_err();
    assert_eq!(refused.code(), Code::FailedPrecondition);
    let refused = client.complete_key_rotation("x").await.unwrap_err();
    assert_eq!(refused.code(), Code::FailedPrecondition);
}

/// C13: without a request, there is nothing to complete.
#[tokio::test]
async fn nothing_is_completed_that_was_not_begun() {
    let house = House::new();
    house.issuing().await;
    let client = house.offline("issuing").await;
    let refused = client.complete_key_rotation("x").await.unwrap_err();
    assert_eq!(refused.code(), Code::FailedPrecondition);
    assert!(
        refused.to_string().contains("no key of this node waits"),
        "{refused}"
    );
}
