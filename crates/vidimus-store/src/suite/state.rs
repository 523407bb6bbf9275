//! Config, identities, values.

use vidimus_audit::Entry;

use super::{Database, draft, intact, open};
use crate::error::StoreError;
use crate::identity::{IdentityId, IdentityRow, IdentityState};

/// Generations count up, the newest is in force, and each has its entry.
pub async fn configs_have_generations_and_an_entry_each(database: &impl Database) {
    let store = open(database);
    assert_eq!(store.config().await.unwrap(), None);
    assert_eq!(
        store
            .put_config("a: 1", "d1", draft("Apply"))
            .await
            .unwrap(),
        1
    );
    assert_eq!(
        store
            .put_config("a: 2", "d2", draft("Apply"))
            .await
            .unwrap(),
        2
    );
    let lines = store.audit_lines(1, 10).await.unwrap();
    let told: Vec<_> = lines
        .iter()
        .map(|line| serde_json::from_str::<Entry>(&line.json).unwrap().details)
        .map(|d| {
            (
                d["config_generation"].clone(),
                d["config_digest_sha256"].clone(),
            )
        })
        .collect();
    assert_eq!(
        told,
        [("1", "d1"), ("2", "d2")].map(|(g, d)| (g.to_owned(), d.to_owned()))
    );
    drop(store);
    let config = open(database).config().await.unwrap().unwrap();
    assert_eq!(
        (
            config.generation,
            config.yaml.as_str(),
            config.digest.as_str()
        ),
        (2, "a: 2", "d2")
    );
}

/// A key waits for its certificate beside the current one, takes its place, and is history later.
pub async fn identities_await_become_current_and_pass(database: &impl Database) {
    use IdentityState::{Awaiting, Current, Past};
    let store = open(database);
    assert!(store.identities().await.unwrap().is_empty());
    let first = store
        .put_identity(row("ca-1.key", None), draft("init"))
        .await
        .unwrap();
    assert_eq!(states(&store).await, [Awaiting]);
    store
        .activate_identity(first, "chain 1", draft("submit"))
        .await
        .unwrap();
    assert_eq!(states(&store).await, [Current]);
    let given_up = store
        .put_identity(row("ca-2.key", None), draft("rotate"))
        .await
        .unwrap();
    assert_eq!(states(&store).await, [Current, Awaiting]);
    let third = store
        .put_identity(row("ca-3.key", None), draft("rotate"))
        .await
        .unwrap();
    assert_eq!(states(&store).await, [Current, Past, Awaiting]);
    store
        .activate_identity(third, "chain 3", draft("complete"))
        .await
        .unwrap();
    assert_eq!(states(&store).await, [Past, Past, Current]);
    store
        .put_identity(row("ca-4.key", Some("chain 4")), draft("restore"))
        .await
        .unwrap();
    assert_eq!(states(&store).await, [Past, Past, Past, Current]);
    assert_eq!(intact(&store), 6);
    drop(store);

    let identities = open(database).identities().await.unwrap();
    let [one, two, three, four] = identities.as_slice() else {
        panic!("{identities:?}");
    };
    assert_eq!((one.id, two.id, three.id), (first, given_up, third));
    assert_eq!(one.key_file, "ca-1.key");
    assert_eq!(one.csr_der.as_deref(), Some(b"request".as_slice()));
    assert_eq!(one.chain_pem.as_deref(), Some("chain 1"));
    assert!(one.activated_at.is_some_and(|when| when >= one.created_at));
    assert_eq!((two.chain_pem.as_deref(), two.activated_at), (None, None));
    assert_eq!(four.chain_pem.as_deref(), Some("chain 4"));
}

/// Activating anything else is an error that writes nothing.
pub async fn only_a_waiting_identity_is_activated(database: &impl Database) {
    let store = open(database);
    let id = store
        .put_identity(row("ca-1.key", Some("chain")), draft("init"))
        .await
        .unwrap();
    let refused = store.activate_identity(id, "other", draft("submit")).await;
    assert!(
        matches!(refused, Err(StoreError::NotAwaiting { .. })),
        "{refused:?}"
    );
    let nobody = IdentityId(id.0 + 1);
    let refused = store
        .activate_identity(nobody, "other", draft("submit"))
        .await;
    assert!(
        matches!(refused, Err(StoreError::UnknownIdentity { .. })),
        "{refused:?}"
    );
    assert_eq!(
        store.identities().await.unwrap()[0].chain_pem.as_deref(),
        Some("chain")
    );
    assert_eq!(intact(&store), 1);
}

/// The last value of a name counts.
pub async fn values_are_kept_by_name(database: &impl Database) {
    let store = open(database);
    assert_eq!(store.meta("role").await.unwrap(), None);
    store.put_meta("role", "root", draft("init")).await.unwrap();
    store
        .put_meta("admin", [1, 2, 3], draft("init"))
        .await
        .unwrap();
    store
        .put_meta("role", "issuing", draft("init"))
        .await
        .unwrap();
    drop(store);
    let store = open(database);
    assert_eq!(store.meta("role").await.unwrap(), Some(b"issuing".to_vec()));
    assert_eq!(store.meta("admin").await.unwrap(), Some(vec![1, 2, 3]));
    assert_eq!(intact(&store), 3);
}

fn row(key_file: &str, chain_pem: Option<&str>) -> IdentityRow {
    IdentityRow {
        key_file: key_file.to_owned(),
        csr_der: Some(b"request".to_vec()),
        chain_pem: chain_pem.map(str::to_owned),
    }
}

async fn states(store: &crate::Store) -> Vec<IdentityState> {
    let identities = store.identities().await.unwrap();
    identities.iter().map(|identity| identity.state).collect()
}
