//! Nodes for the tests inside this crate.

use std::sync::Arc;

use tempfile::TempDir;
use vidimus_daemon::clock::{Clock, SystemClock};
use vidimus_keys::Secret;

use crate::{
    ceremony,
    config::{self, Api, Role, Template, template},
    data::DataDir,
    node::Node,
};

/// A root from the template, after `edit`.
pub(crate) async fn a_root(edit: impl Fn(String) -> String) -> (TempDir, Arc<Node>) {
    let dir = TempDir::new().unwrap();
    let text = edit(template(&Template {
        role: Role::Root,
        common_name: "Root",
        parent_pem: None,
        api: Api::default(),
    }));
    let config = config::parse("root.yaml", &text).unwrap();
    let secret = Secret::from_passphrase("a passphrase of some length".to_owned().into());
    let secret = Arc::new(secret.unwrap());
    let data = DataDir::new(dir.path().join("root"));
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    ceremony::init(&data, &config, &secret, &clock)
        .await
        .unwrap();
    let node = Node::open(data, secret, clock).await.unwrap();
    (dir, Arc::new(node))
}
