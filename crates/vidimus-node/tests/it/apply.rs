//! C2: configs are taken whole or not at all.

use std::sync::Arc;

use vidimus_client::tonic::Code;
use vidimus_node::config::Role;

use crate::house::{House, client_of, config_text, csr, leaf};

/// C2: profiles are in force at once, and after a restart.
#[tokio::test]
async fn an_applied_config_is_in_force_at_once_and_kept() {
    let house = House::new();
    house.issuing().await;
    let client = house.offline("issuing").await;
    let before = client.config().await.unwrap();
    assert_eq!(before.generation, 1);
    let request = || {
        leaf(
            csr(&house.path(""), "web", &["web.example.org"]),
            "renamed",
            &[],
        )
    };
    assert_eq!(
        client.issue_leaf(request()).await.unwrap_err().code(),
        Code::InvalidArgument
    );

    let text = before
        .config_yaml
        .replacen("name: leaf-server", "name: renamed", 1);
    let applied = client.apply_config(&text).await.unwrap();
    assert_eq!((applied.generation, applied.requires_reboot), (2, false));
    client.issue_leaf(request()).await.unwrap();

    let again = client
        .apply_config(&format!("# the same\n{text}"))
        .await
        .unwrap();
    assert_eq!(
        (again.generation, again.requires_reboot),
        (2, false),
        "nothing changed"
    );
    assert_eq!(again.digest_sha256, applied.digest_sha256);

    drop(client);
    let client = house.offline("issuing").await;
    let after = client.config().await.unwrap();
    assert_eq!((after.generation, after.config_yaml), (2, text));
    client.issue_leaf(request()).await.unwrap();
}

/// C2: an invalid config, or one of another role, leaves the stored one.
#[tokio::test]
async fn a_refused_config_changes_nothing() {
    let house = House::new();
    let root = house.issuing().await;
    let client = house.offline("issuing").await;
    let before = client.config().await.unwrap();
    let bad = before
        .config_yaml
        .replace("validity_days: 90", "validity_days: 0");
    let refused = client.apply_config(&bad).await.unwrap_err();
    assert_eq!(refused.code(), Code::InvalidArgument);
    for profile in 0..3 {
        let field = format!("pki.profiles[{profile}].validity_days");
        assert!(refused.to_string().contains(&field), "{refused}");
    }
    let role = config_text(Role::Intermediate, "Issuing", Some(&root));
    let refused = client.apply_config(&role).await.unwrap_err();
    assert_eq!(refused.code(), Code::InvalidArgument);
    assert!(
        refused
            .to_string()
            .contains("role.kind is intermediate; accepted: issuing"),
        "{refused}"
    );
    assert_eq!(client.config().await.unwrap(), before);
}

/// C2: what is read at the start only is said to need one; the status shows it until then.
#[tokio::test]
async fn fields_that_are_read_at_the_start_need_a_restart() {
    let house = House::new();
    house.issuing().await;
    let client = house.offline("issuing").await;
    let text = client.config().await.unwrap().config_yaml;
    let moved = text.replacen("api:\n", "api:\n  names: [ca.example.org]\n", 1);
    assert!(client.apply_config(&moved).await.unwrap().requires_reboot);
    assert!(client.status().await.unwrap().config_reboot_pending);
    assert!(
        !client.apply_config(&moved).await.unwrap().requires_reboot,
        "unchanged"
    );
    drop(client);
    let client = house.offline("issuing").await;
    assert!(
        !client.status().await.unwrap().config_reboot_pending,
        "it was restarted"
    );
}

/// C2: advice about profiles that overrun the CA, and none about those that don't.
#[tokio::test]
async fn profiles_that_overrun_the_ca_are_pointed_out() {
    let house = House::new();
    house.issuing().await;
    let node = Arc::new(house.open("issuing").await);
    let client = client_of(&node);
    let text = client.config().await.unwrap().config_yaml;
    assert!(
        client
            .apply_config(&text)
            .await
            .unwrap()
            .warnings
            .is_empty()
    );
    let long = text.replacen("validity_days: 90", "validity_days: 9000", 1);
    let warnings = client.apply_config(&long).await.unwrap().warnings;
    assert_eq!(warnings.len(), 1);
    assert!(
        warnings[0].contains("profile leaf-server: 9000 days"),
        "{warnings:?}"
    );
}
