use std::time::Duration;

use serde_json::Value;
use tokio::net::UnixStream;
use vidimus_provider::server::Config;

use crate::support::{Running, World, allow, get, validate};

#[tokio::test]
async fn the_tls_page_tells_posture_material_connections_and_counts() {
    let world = World::new();
    let socket = world.path("admin.sock");
    let config = Config {
        admin: Some(socket.clone()),
        allowed_sans: allow("manager.example"),
        ..world.config()
    };
    let mut running = Running::start(config).await;
    let manager = running.manager(world.manager_dir()).await;
    assert!(validate(&manager).await.unwrap().ok);

    let stream = UnixStream::connect(&socket).await.unwrap();
    let (status, body) = get(stream, "/tls").await;
    assert_eq!(status, 200);
    let page: Value = serde_json::from_str(&body).unwrap();
    assert_eq!(page["posture"], "mutual");
    assert_eq!(page["serving"], true);
    assert_eq!(page["allowed_sans"], serde_json::json!(["manager.example"]));
    assert_eq!(
        page["addresses"]["grpc"],
        running.addresses.grpc.to_string()
    );
    assert_eq!(
        page["addresses"]["health"],
        running.addresses.health.to_string()
    );
    assert_eq!(page["material"]["generation"], 1);
    assert_eq!(page["material"]["reloads"], 0);
    assert_eq!(page["material"]["failures"], 0);
    assert!(page["material"]["leaf_not_after"].is_string(), "{page:#}");
    assert_eq!(page["material"]["fingerprint"].as_str().unwrap().len(), 64);
    let connection = &page["connections"][0];
    assert_eq!(connection["generation"], 1);
    assert_eq!(
        connection["peer"]["dns_names"],
        serde_json::json!(["manager.example"]),
        "{page:#}"
    );
    assert_eq!(
        connection["peer"]["fingerprint"].as_str().unwrap().len(),
        64,
        "{page:#}"
    );
    assert_eq!(
        connection["anchor"], page["material"]["roots"][0]["fingerprint"],
        "{page:#}"
    );
    assert_eq!(page["counters"]["calls"], 1);
    assert_eq!(page["counters"]["handshakes_ok"], 1);

    manager.close(Duration::from_secs(5)).await;
    running.stop().await;
    assert!(!socket.exists(), "the socket goes with the provider");
}
