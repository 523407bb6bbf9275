//! C2: how a node starts.

use tokio_util::sync::CancellationToken;
use vidimus_node::{
    OpenError,
    config::{self, Role},
    run::{RunError, run_with_clock},
};

use crate::{
    api::run_config,
    house::{House, config_text},
};

/// C1: a node that waits for its chain does not serve, and says what to do.
#[tokio::test]
async fn a_node_without_its_chain_does_not_start() {
    let house = House::new();
    let root = house.root().await;
    let text = config_text(Role::Issuing, "Issuing", Some(&root));
    house
        .request("issuing", &config::parse("node.yaml", &text).unwrap())
        .await;
    let started = run_with_clock(
        run_config(&house, "issuing"),
        house.clock(),
        CancellationToken::new(),
    )
    .await;
    match started {
        Err(refused @ RunError::NoIdentity { .. }) => {
            assert!(
                refused.to_string().contains("vidimus node init --chain"),
                "{refused}"
            );
        }
        other => panic!("{other:?}"),
    }
}

/// C2: a config that the start brings takes the place of the stored one; one of another role is refused.
#[tokio::test]
async fn a_config_that_the_start_brings_is_stored_first() {
    let house = House::new();
    let root = house.issuing().await;
    let text = config_text(Role::Issuing, "Issuing", Some(&root));
    let shutdown = CancellationToken::new();
    shutdown.cancel();
    let run = |text: &str| {
        let mut run = run_config(&house, "issuing");
        run.config = Some(config::parse("node.yaml", text).unwrap());
        run_with_clock(run, house.clock(), shutdown.clone())
    };
    run(&text).await.unwrap();
    let generation = || async {
        house
            .offline("issuing")
            .await
            .config()
            .await
            .unwrap()
            .generation
    };
    assert_eq!(generation().await, 1, "it is the stored one");
    run(&text.replacen("name: leaf-server", "name: renamed", 1))
        .await
        .unwrap();
    assert_eq!(generation().await, 2);
    let refused = run(&config_text(Role::Intermediate, "Issuing", Some(&root))).await;
    assert!(
        matches!(refused, Err(RunError::Open(OpenError::Role { .. }))),
        "{refused:?}"
    );
    assert_eq!(generation().await, 2);
}
