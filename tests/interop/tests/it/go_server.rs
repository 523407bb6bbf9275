//! Our manager calls grpc-go's server.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tonic::{Code, transport::Endpoint};
use vidimus_proto::provider::v1::{self as pb, provider_client::ProviderClient};
use vidimus_provider::manager::{CallError, Manager, ManagerTls};
use vidimus_testkit::{Pki, wait_until_async};

use crate::support::{Caller, DEADLINE, GoServer, World, soon};

async fn validate(manager: &Manager) -> Result<(), CallError> {
    soon("validate", manager.validate(pb::ValidateRequest {}))
        .await
        .map(drop)
}

/// V4.
#[tokio::test]
async fn every_method_reaches_the_server_and_health_is_followed() {
    let world = World::new();
    let server = GoServer::start(&world.server(), &[]).await;
    let caller = Caller::mutual(&server.address, world.client()).await;
    let manager = &caller.manager;
    macro_rules! call_each {
        ($($method:ident($request:ident))*) => {
            {
                $(manager.$method(pb::$request::default()).await.expect(stringify!($method));)*
                [$(stringify!($method)),*].len()
            }
        };
    }
    let methods = call_each! {
        validate(ValidateRequest) create(CreateRequest) delete(DeleteRequest) power(PowerRequest)
        reconfigure(ReconfigureRequest) hardware_upgrade(HardwareUpgradeRequest)
        describe(DescribeRequest) task_status(TaskStatusRequest)
        snapshot_create(SnapshotCreateRequest) snapshot_delete(SnapshotDeleteRequest)
        snapshot_revert(SnapshotRevertRequest) clone_vm(CloneRequest)
        image_prepare(ImagePrepareRequest) get_capabilities(GetCapabilitiesRequest)
        export_disk(ExportDiskRequest) import_disk(ImportDiskRequest)
        get_disk_info(GetDiskInfoRequest) list_vms(ListVMsRequest)
    };
    assert_eq!(methods, 18);
    assert_eq!(server.count("calls").await, 18);
    let mut health = manager.watch_health("provider").await.unwrap();
    assert!(soon("the state", health.message()).await.unwrap().is_some());
}

/// V4.
#[tokio::test]
async fn a_server_with_another_name_or_under_another_root_is_not_called() {
    let world = World::new();
    let other = Pki::new("Other");
    let strange = other
        .leaf("provider")
        .dns(&crate::support::server_name())
        .server()
        .issue();
    let renamed = world
        .pki
        .leaf("provider")
        .dns("esx.infra.svc")
        .server()
        .issue();
    let roots = [&world.pki.root, &other.root];
    let cases = [
        ("another root", world.folder("strange", &strange, &roots)),
        ("another name", world.folder("renamed", &renamed, &roots)),
    ];
    for (case, dir) in cases {
        let server = GoServer::start(&dir, &[]).await;
        let caller = Caller::mutual(&server.address, world.client()).await;
        let error = validate(&caller.manager).await.unwrap_err();
        assert_eq!(error.status().code(), Code::Unavailable, "{case}: {error}");
        assert!(
            error
                .status()
                .message()
                .contains("certificate of the server refused"),
            "{error}"
        );
        assert_eq!(server.count("calls").await, 0, "{case}");

        let any = ManagerTls::MutualInsecureSkipVerify(world.client());
        let loose = Caller::new(&server.address, any).await;
        validate(&loose.manager).await.unwrap();
    }
}

/// V5.
#[tokio::test]
async fn the_servers_refusal_of_our_certificate_is_heard_by_its_name() {
    let world = World::new();
    let stranger = Pki::new("Stranger");
    let leaf = stranger
        .leaf("manager")
        .dns("manager.example")
        .client()
        .issue();
    let dir = world.folder("stranger", &leaf, &[&world.pki.root]);
    let server = GoServer::start(&world.server(), &[]).await;
    for _ in 0..5 {
        let caller = Caller::mutual(&server.address, dir.clone()).await;
        let error = validate(&caller.manager).await.unwrap_err();
        assert_eq!(error.status().code(), Code::Unavailable);
        let message = error.status().message();
        assert!(
            message.contains("UnknownCA") || message.contains("BadCertificate"),
            "{message}"
        );
    }
    let good = Caller::mutual(&server.address, world.client()).await;
    validate(&good.manager).await.unwrap();
}

/// V21.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_graceful_stop_finishes_the_calls_that_have_begun() {
    const CALLS: u64 = 32;
    let world = World::new();
    let server = GoServer::start(&world.server(), &["-delay", "1s"]).await;
    let caller = Caller::mutual(&server.address, world.client()).await;
    let mut calls = JoinSet::new();
    for _ in 0..CALLS {
        let manager = caller.manager.clone();
        calls.spawn(async move { validate(&manager).await });
    }
    wait_until_async(DEADLINE, || async {
        let begun = server.count("calls").await;
        if begun == CALLS {
            Ok(())
        } else {
            Err(format!("{begun} calls"))
        }
    })
    .await;
    let end = server.ask("/stop").await;
    while let Some(call) = soon("the calls", calls.join_next()).await {
        call.unwrap().unwrap();
    }
    assert_eq!(end["calls"], CALLS, "no call was sent twice");
}

/// Calls until it is told to stop; gives the number that ended well, and panics at a failure.
async fn traffic(manager: Manager, done: Arc<AtomicU64>, stop: CancellationToken) {
    while !stop.is_cancelled() {
        if let Err(error) = validate(&manager).await {
            panic!("{error}: {:#?}", manager.channel_status());
        }
        done.fetch_add(1, Ordering::Relaxed);
    }
}

struct Load {
    done: Arc<AtomicU64>,
    stop: CancellationToken,
    callers: JoinSet<()>,
}

impl Load {
    fn start(manager: &Manager) -> Self {
        let (done, stop) = (Arc::new(AtomicU64::new(0)), CancellationToken::new());
        let mut callers = JoinSet::new();
        for _ in 0..16 {
            callers.spawn(traffic(manager.clone(), Arc::clone(&done), stop.clone()));
        }
        Self {
            done,
            stop,
            callers,
        }
    }

    async fn more(&self, calls: u64) {
        let goal = self.done.load(Ordering::Relaxed) + calls;
        wait_until_async(DEADLINE, || async {
            let done = self.done.load(Ordering::Relaxed);
            if done >= goal {
                Ok(())
            } else {
                Err(format!("{done} of {goal} calls"))
            }
        })
        .await;
    }

    async fn end(mut self) -> u64 {
        self.stop.cancel();
        while let Some(ended) = soon("the callers", self.callers.join_next()).await {
            ended.unwrap();
        }
        self.done.load(Ordering::Relaxed)
    }
}

/// V21.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_call_is_lost_or_doubled_when_servers_hand_over_under_load() {
    let world = World::new();
    let server = GoServer::start(&world.server(), &[]).await;
    let caller = Caller::mutual(&server.address, world.client()).await;
    let load = Load::start(&caller.manager);
    for _ in 0..10 {
        load.more(100).await;
        server.ask("/replace").await;
    }
    load.more(100).await;
    let calls = load.end().await;
    let connects = caller.manager.channel_status().counters.connects;
    assert!(connects >= 10, "each server was met: {connects}");
    assert_eq!(
        server.count("calls").await,
        calls,
        "each call was executed once"
    );
}

/// V21.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_call_is_lost_or_doubled_when_connections_end_by_age() {
    let world = World::new();
    let server = GoServer::start(&world.server(), &["-max-age", "100ms"]).await;
    let caller = Caller::mutual(&server.address, world.client()).await;
    let load = Load::start(&caller.manager);
    wait_until_async(DEADLINE, || async {
        let ended = server.count("ended").await;
        if ended >= 10 {
            Ok(())
        } else {
            Err(format!("{ended} connections ended"))
        }
    })
    .await;
    let calls = load.end().await;
    assert_eq!(
        server.count("calls").await,
        calls,
        "each call was executed once"
    );
}

/// V4. A server that allows one call at a time on a connection: each further call gets a connection of its own, and once they
/// are there, no more are opened.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_limit_of_one_call_a_connection_opens_more_connections() {
    const CALLS: u64 = 4;
    let world = World::new();
    let flags = ["-hold", "-max-streams", "1"];
    let server = GoServer::start(&world.server(), &flags).await;
    let caller = Caller::mutual(&server.address, world.client()).await;
    for round in 1..=2 {
        let mut calls = JoinSet::new();
        for _ in 0..CALLS {
            let manager = caller.manager.clone();
            calls.spawn(async move { validate(&manager).await });
        }
        wait_until_async(DEADLINE, || async {
            let begun = server.count("calls").await;
            if begun == round * CALLS {
                Ok(())
            } else {
                Err(format!("{begun} calls"))
            }
        })
        .await;
        let now = server.ask("/release").await;
        assert_eq!(now["open"], CALLS, "round {round}");
        while let Some(call) = soon("the calls", calls.join_next()).await {
            call.unwrap().unwrap();
        }
    }
    let counters = caller.manager.channel_status().counters;
    assert_eq!((counters.connects, counters.resends), (CALLS, 0));
}

/// T19.
#[tokio::test]
async fn the_servers_ping_policy_has_nothing_to_complain_about() {
    let world = World::new();
    let strict = ["-plaintext", "-min-ping", "1h"];
    let server = GoServer::start(&world.server(), &strict).await;
    let caller = Caller::new(&server.address, ManagerTls::Plaintext).await;
    validate(&caller.manager).await.unwrap();

    // the twin: a client that pings while it is idle is thrown out by this very server
    let pinging = Endpoint::from_shared(format!("http://{}", server.address))
        .unwrap()
        .http2_keep_alive_interval(Duration::from_millis(50))
        .keep_alive_while_idle(true)
        .connect()
        .await
        .unwrap();
    ProviderClient::new(pinging)
        .validate(pb::ValidateRequest {})
        .await
        .unwrap();
    wait_until_async(DEADLINE, || async {
        let ended = server.count("ended").await;
        if ended >= 1 {
            Ok(())
        } else {
            Err("nobody was thrown out".to_owned())
        }
    })
    .await;

    validate(&caller.manager).await.unwrap();
    let counters = caller.manager.channel_status().counters;
    assert_eq!(counters.connects, 1, "ours is still the first connection");
}
