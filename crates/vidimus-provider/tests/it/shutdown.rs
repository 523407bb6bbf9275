use std::time::Duration;

use tokio::task::JoinSet;
use tonic::Code;
use tonic_health::pb::health_check_response::ServingStatus;
use vidimus_proto::provider::v1 as pb;
use vidimus_provider::server::Config;
use vidimus_testkit::wait_until_async;
use vidimus_tls::server::Limits;

use crate::support::{DEADLINE, Hooked, Running, World, page, soon, validate};

const CALLS: usize = 32;

async fn entered(provider: &Hooked, calls: usize) {
    wait_until_async(DEADLINE, || async {
        let count = provider.hook.count("validate");
        if count >= calls {
            Ok(())
        } else {
            Err(format!("{count} of {calls}"))
        }
    })
    .await;
}

/// V21.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_in_flight_finish_and_health_says_not_serving_first() {
    let world = World::new();
    let provider = Hooked::default();
    provider.hook.hold.send_replace(true);
    let mut running = Running::start_with(world.config(), provider.clone()).await;
    let manager = running.manager(world.manager_dir()).await;
    let mut health = manager.watch_health("provider").await.unwrap();
    let first = health.message().await.unwrap().unwrap();
    assert_eq!(first.status(), ServingStatus::Serving);

    let mut calls = JoinSet::new();
    for _ in 0..CALLS {
        let manager = manager.clone();
        calls.spawn(async move { validate(&manager).await });
    }
    entered(&provider, CALLS).await;
    running.shutdown.cancel();

    let last = soon("the change", health.message()).await.unwrap().unwrap();
    assert_eq!(last.status(), ServingStatus::NotServing);
    assert!(
        soon("the stream's end", health.message())
            .await
            .unwrap()
            .is_none()
    );
    assert_eq!(page(running.addresses.health, "/healthz").await.0, 200);
    assert_eq!(page(running.addresses.health, "/readyz").await.0, 503);
    assert!(!running.status.page().serving);

    provider.hook.hold.send_replace(false);
    while let Some(call) = soon("the calls", calls.join_next()).await {
        assert!(call.unwrap().unwrap().ok, "no call is lost");
    }
    let drained = running.ended().await;
    assert_eq!(drained.cut, 0);
    assert!(drained.open >= 1);
    assert_eq!(
        provider.hook.count("validate"),
        CALLS,
        "no call was sent twice"
    );

    let error = validate(&manager).await.unwrap_err();
    assert_eq!(
        error.status().code(),
        Code::Unavailable,
        "and then it is gone"
    );
}

/// V21.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_that_outlasts_the_drain_is_cut_and_the_end_says_so() {
    let world = World::new();
    let provider = Hooked::default();
    *provider.hook.delay.lock().unwrap() = Duration::from_secs(3_600);
    let limits = Limits {
        drain_timeout: Duration::from_millis(300),
        ..Limits::default()
    };
    let config = Config {
        limits,
        ..world.config()
    };
    let mut running = Running::start_with(config, provider.clone()).await;
    let manager = running.manager(world.manager_dir()).await;
    let mut calls = JoinSet::new();
    let caller = manager.clone();
    calls.spawn(async move { caller.validate(pb::ValidateRequest {}).await });
    entered(&provider, 1).await;
    let drained = running.stop().await;
    assert_eq!(drained.cut, 1);
    let call = soon("the call", calls.join_next()).await.unwrap().unwrap();
    assert!(call.is_err());
}
