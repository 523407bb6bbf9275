use tonic::Code;
use tonic_health::pb::{
    HealthCheckRequest, health_check_response::ServingStatus, health_client::HealthClient,
};
use vidimus_provider::health::SERVICES;
use vidimus_testkit::pki::Validity;

use crate::support::{DEADLINE, Running, World, page, soon};

#[tokio::test]
async fn every_name_of_the_provider_is_serving_and_no_other_is_known() {
    let world = World::new();
    let mut running = Running::start(world.config()).await;
    let manager = running.manager(world.manager_dir()).await;
    let mut client = HealthClient::new(manager.channel().clone());
    let mut check = async |service: &str| {
        let request = HealthCheckRequest {
            service: service.to_owned(),
        };
        client
            .check(request)
            .await
            .map(|answer| answer.into_inner().status())
    };
    assert_eq!(SERVICES, ["", "provider", "provider.v1.Provider"]);
    for service in SERVICES {
        assert_eq!(
            check(service).await.unwrap(),
            ServingStatus::Serving,
            "{service:?}"
        );
    }
    assert_eq!(
        check("provider.v2.Provider").await.unwrap_err().code(),
        Code::NotFound
    );

    let mut unknown = manager.watch_health("provider.v2.Provider").await.unwrap();
    let state = soon("the state", unknown.message()).await.unwrap().unwrap();
    assert_eq!(state.status(), ServingStatus::ServiceUnknown);
    running.stop().await;
}

#[tokio::test]
async fn the_pages_are_virtrigauds() {
    let world = World::new();
    let running = Running::start(world.config()).await;
    let address = running.addresses.health;
    assert_eq!(page(address, "/healthz").await, (200, "ok".into()));
    assert_eq!(page(address, "/readyz").await, (200, "ready".into()));
    let (status, body) = page(address, "/health").await;
    let body: serde_json::Value = serde_json::from_str(&body).unwrap();
    assert_eq!((status, &body["status"]), (200, &"healthy".into()));
    assert_eq!(body["checks"]["material"]["status"], "healthy");
    assert_eq!(body["summary"]["total"], 2);
    assert_eq!(page(address, "/metrics").await.0, 404);
    running.stop().await;
}

#[tokio::test]
async fn a_provider_whose_certificate_has_expired_is_alive_and_not_ready() {
    let world = World::new();
    let leaf = world
        .pki
        .leaf("provider")
        .dns(&crate::support::provider_name().server_name())
        .validity(Validity::ends_in(std::time::Duration::from_secs(3)))
        .issue();
    leaf.write_dir(&world.server_dir(), &[&world.pki.root]);
    let running = Running::start(world.config()).await;
    let address = running.addresses.health;
    vidimus_testkit::wait_until_async(DEADLINE, || async {
        let (status, body) = page(address, "/health").await;
        if status == 503 && body.contains("has expired") {
            Ok(())
        } else {
            Err(body)
        }
    })
    .await;
    assert_eq!(page(address, "/readyz").await, (503, "not ready".into()));
    assert_eq!(page(address, "/healthz").await, (200, "ok".into()));
    running.stop().await;
}
