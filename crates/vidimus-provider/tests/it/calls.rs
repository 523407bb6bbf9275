use std::{net::Ipv4Addr, sync::atomic::Ordering, time::Duration};

use tokio::{net::TcpListener, time::Instant};
use tonic::Code;
use vidimus_proto::provider::v1 as pb;
use vidimus_provider::{
    manager::{Deadlines, Manager, ManagerTls, Outcome},
    server::Config,
};
use vidimus_testkit::wait_until_async;

use crate::support::{DEADLINE, Hooked, Running, World, soon, validate};

#[tokio::test]
async fn a_panic_in_a_handler_is_internal_and_the_connection_goes_on() {
    let world = World::new();
    let provider = Hooked::default();
    let mut running = Running::start_with(world.config(), provider.clone()).await;
    let manager = running.manager(world.manager_dir()).await;
    provider.hook.panics.store(true, Ordering::Relaxed);
    let error = validate(&manager).await.unwrap_err();
    assert_eq!(error.status().code(), Code::Internal);
    assert!(
        !error.status().message().contains("told to panic"),
        "{error}"
    );
    assert_eq!(error.outcome(), Outcome::Failed);
    provider.hook.panics.store(false, Ordering::Relaxed);
    assert!(validate(&manager).await.unwrap().ok);
    assert_eq!(manager.channel_status().counters.connects, 1);
    running.stop().await;
}

/// V21.
#[tokio::test]
async fn a_call_ends_at_its_deadline_on_both_sides() {
    let world = World::new();
    let provider = Hooked::default();
    *provider.hook.delay.lock().unwrap() = Duration::from_secs(3_600);
    let mut running = Running::start_with(world.config(), provider.clone()).await;
    let mut config = running.manager_config(ManagerTls::Mutual(world.manager_dir()));
    config.deadlines = Deadlines {
        look: Duration::from_millis(300),
        ..Deadlines::default()
    };
    let manager = running.start_manager(config).await;
    let begin = Instant::now();
    let error = validate(&manager).await.unwrap_err();
    assert_eq!(error.status().code(), Code::DeadlineExceeded);
    assert_eq!(error.outcome(), Outcome::Retryable);
    assert!(begin.elapsed() < DEADLINE / 2);
    wait_until_async(DEADLINE, || async {
        let busy: usize = running
            .status
            .page()
            .connections
            .iter()
            .map(|one| one.streams)
            .sum();
        if busy == 0 {
            Ok(())
        } else {
            Err(format!("{busy} calls still run"))
        }
    })
    .await;
    running.stop().await;
}

/// V21.
#[tokio::test]
async fn a_provider_that_never_answers_fails_the_call_within_the_connect_timeout() {
    let world = World::new();
    let silent = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let endpoint = silent.local_addr().unwrap().to_string();
    let running = Running::start(world.config()).await;
    let mut config = running.manager_config(ManagerTls::Mutual(world.manager_dir()));
    config.endpoint = endpoint;
    config.connect_timeout = Duration::from_millis(300);
    let (manager, _driver) = Manager::start(config).await.unwrap();
    let error = soon("the call", manager.validate(pb::ValidateRequest {}))
        .await
        .unwrap_err();
    assert_eq!(error.status().code(), Code::Unavailable, "{error}");
    running.stop().await;
}

#[tokio::test]
async fn an_idle_connection_is_ended_and_the_next_call_makes_a_new_one() {
    let world = World::new();
    let config = Config {
        max_connection_idle: Duration::from_millis(200),
        ..world.config()
    };
    let mut running = Running::start(config).await;
    let manager = running.manager(world.manager_dir()).await;
    assert!(validate(&manager).await.unwrap().ok);
    wait_until_async(DEADLINE, || async {
        let open = running.status.page().connections.len();
        if open == 0 {
            Ok(())
        } else {
            Err(format!("{open} connections"))
        }
    })
    .await;
    assert!(validate(&manager).await.unwrap().ok);
    assert_eq!(manager.channel_status().counters.connects, 2);
    running.stop().await;
}

#[tokio::test]
async fn a_message_over_four_mebibytes_is_refused_and_one_below_is_read() {
    let world = World::new();
    let mut running = Running::start(world.config()).await;
    let manager = running.manager(world.manager_dir()).await;
    let create = async |bytes: usize| {
        let request = pb::CreateRequest {
            name: "big".to_owned(),
            user_data: vec![b'x'; bytes],
            ..pb::CreateRequest::default()
        };
        soon("create", manager.create(request)).await
    };
    create(4 * 1024 * 1024 - 64).await.unwrap();
    let error = create(4 * 1024 * 1024 + 1).await.unwrap_err();
    assert_eq!(error.status().code(), Code::OutOfRange, "{error}");
    running.stop().await;
}

/// V4.
#[tokio::test]
async fn one_secret_serves_both_sides() {
    let world = World::new();
    let name = crate::support::provider_name().server_name();
    // no extended key usage at all, as cert-manager issues without `usages`
    let leaf = world
        .pki
        .leaf("esx")
        .dns(&name)
        .usage(vidimus_testkit::pki::Usage::None)
        .issue();
    let dir = world.folder("one-secret", &leaf, &[&world.pki.root]);
    let config = Config {
        allowed_sans: crate::support::allow(&name),
        ..crate::support::config(&dir)
    };
    let mut running = Running::start(config).await;
    let manager = running.manager(&dir).await;
    assert!(validate(&manager).await.unwrap().ok);
    running.stop().await;
}
