use std::path::Path;

use tonic::Code;
use vidimus_provider::{
    manager::Outcome,
    memory::MemoryProvider,
    server::{self, Config, StartError},
};
use vidimus_testkit::{Credential, Pki};

use crate::support::{Running, World, allow, soon, validate};

#[expect(
    clippy::disallowed_methods,
    reason = "a test's files need not survive a crash"
)]
fn put(path: &Path, text: impl AsRef<[u8]>) {
    std::fs::write(path, text).unwrap();
}

/// One certificate of a manager, by name.
fn certificate(pki: &Pki, which: &str) -> Credential {
    let leaf = match which {
        "dns" => pki.leaf("none").dns("other.example").dns("manager.example"),
        "dns, upper case" => pki.leaf("none").dns("MANAGER.example"),
        "dns, wildcard" => pki.leaf("none").dns("*.example"),
        "uri" => pki.leaf("none").uri("spiffe://td/manager"),
        "cn" => pki.leaf("manager.example"),
        "cn beside another dns" => pki.leaf("manager.example").dns("other.example"),
        "ip" => pki.leaf("none").ip("192.0.2.1".parse().unwrap()),
        "email" => pki.leaf("none").email("manager@example.com"),
        "uri as dns" => pki.leaf("none").uri("manager.example:x"),
        _ => panic!("no such certificate: {which}"),
    };
    leaf.client().issue()
}

/// V6.
#[tokio::test]
async fn the_allow_list_judges_every_kind_of_name() {
    let world = World::new();
    let everybody = "";
    let dns = "manager.example";
    let both = "someone.example, manager.example,spiffe://td/manager";
    let cases = [
        (everybody, "dns", true),
        (everybody, "ip", true),
        (everybody, "email", true),
        (dns, "dns", true),
        (dns, "dns, upper case", true),
        (dns, "cn", true),
        (dns, "cn beside another dns", true),
        (dns, "dns, wildcard", false),
        (dns, "uri", false),
        (dns, "ip", false),
        (dns, "email", false),
        (dns, "uri as dns", false),
        (both, "dns", true),
        (both, "uri", true),
        ("*.example", "dns, wildcard", true),
        ("*.example", "dns", false),
        ("192.0.2.1", "ip", false),
        ("manager@example.com", "email", false),
        ("spiffe://td/MANAGER", "uri", false),
        ("nobody.example", "cn", false),
    ];
    for (number, (list, which, accepted)) in cases.into_iter().enumerate() {
        let config = Config {
            allowed_sans: allow(list),
            ..world.config()
        };
        let mut running = Running::start(config).await;
        let leaf = certificate(&world.pki, which);
        let dir = world.folder(&format!("case-{number}"), &leaf, &[&world.pki.root]);
        let manager = running.manager(dir).await;

        let unary = validate(&manager).await.map(drop);
        let stream = soon("watch", manager.watch_health("provider")).await;
        let stream = match stream {
            Ok(mut stream) => soon("state", stream.message())
                .await
                .map(drop)
                .map_err(|s| s.code()),
            Err(error) => Err(error.status().code()),
        };
        if accepted {
            assert!(unary.is_ok(), "{list:?} {which}: {unary:?}");
            assert_eq!(stream, Ok(()), "{list:?} {which}");
        } else {
            let error = unary.unwrap_err();
            assert_eq!(
                error.status().code(),
                Code::PermissionDenied,
                "{list:?} {which}"
            );
            assert_eq!(error.outcome(), Outcome::Unauthorized);
            assert_eq!(
                error.status().message(),
                "client certificate is not on the configured allow-list",
                "a stranger learns nothing about the list"
            );
            assert_eq!(stream, Err(Code::PermissionDenied), "{list:?} {which}");
        }
        running.stop().await;
    }
}

/// V5.
#[tokio::test]
async fn a_certificate_of_another_ca_does_not_get_in_and_the_manager_learns_why() {
    let world = World::new();
    let stranger = Pki::new("Stranger");
    let mut running = Running::start(world.config()).await;
    let leaf = world.manager_leaf(&stranger);
    let dir = world.folder("stranger", &leaf, &[&world.pki.root]);
    let error = validate(&running.manager(dir).await).await.unwrap_err();
    assert_eq!(error.status().code(), Code::Unavailable);
    assert!(error.status().message().contains("UnknownCA"), "{error}");
    assert_eq!(running.status.page().counters.calls, 0);

    let good = running.manager(world.manager_dir()).await;
    assert!(validate(&good).await.unwrap().ok, "the right one gets in");
    running.stop().await;
}

/// V5.
#[tokio::test]
async fn certificates_that_are_no_clients_or_out_of_their_time_do_not_get_in() {
    let world = World::new();
    let mut running = Running::start(world.config()).await;
    let name = "manager.example";
    // what a manager's own check of its files would refuse is presented by one that has none
    let cases = [
        (
            "not-yet",
            world.pki.leaf("m").dns(name).client().not_yet_valid(),
        ),
        ("expired", world.pki.leaf("m").dns(name).client().expired()),
        ("server-only", world.pki.leaf("m").dns(name).server()),
    ];
    for (case, leaf) in cases {
        let dir = world.folder(case, &leaf.issue(), &[&world.pki.root]);
        let config = running.manager_config(vidimus_provider::manager::ManagerTls::Mutual(dir));
        match vidimus_provider::manager::Manager::start(config).await {
            // refused where it is loaded, with the reason
            Err(_) => {}
            Ok((manager, _)) => {
                let error = validate(&manager).await.unwrap_err();
                assert_eq!(error.status().code(), Code::Unavailable, "{case}: {error}");
            }
        }
    }
    assert_eq!(running.status.page().counters.calls, 0);
    let good = running.manager(world.manager_dir()).await;
    assert!(validate(&good).await.unwrap().ok);
    running.stop().await;
}

/// V4.
#[tokio::test]
async fn the_manager_calls_only_a_provider_with_the_services_name_under_its_own_root() {
    let world = World::new();
    let other = Pki::new("Other");
    let cases = [
        (
            "another name",
            world.pki.leaf("p").dns("esx.infra.svc").server().issue(),
            false,
        ),
        ("another root", world.server_leaf(&other), false),
        (
            "the name in the common name only",
            {
                let name = crate::support::provider_name().server_name();
                world.pki.leaf(&name).dns("esx").server().issue()
            },
            false,
        ),
        ("the right one", world.server_leaf(&world.pki), true),
    ];
    for (number, (case, leaf, accepted)) in cases.into_iter().enumerate() {
        let dir = world.folder(
            &format!("server-{number}"),
            &leaf,
            &[&world.pki.root, &other.root],
        );
        let mut running = Running::start(crate::support::config(&dir)).await;
        let result = validate(&running.manager(world.manager_dir()).await).await;
        if accepted {
            assert!(result.unwrap().ok, "{case}");
        } else {
            let error = result.unwrap_err();
            assert_eq!(error.status().code(), Code::Unavailable, "{case}: {error}");
            assert_eq!(error.outcome(), Outcome::Retryable);
            assert!(
                error.status().message().contains("certificate"),
                "{case}: {error}"
            );
        }
        running.stop().await;
    }
}

/// V17. A policy file says who may call what, health included, and is followed.
#[tokio::test]
async fn a_policy_file_rules_the_methods_and_is_followed() {
    let world = World::new();
    let file = world.path("policy.yaml");
    let provider_alone =
        "methods: [{match: /provider.v1.Provider/, allow: [dns:manager.example]}]\n";
    put(&file, provider_alone);
    let config = Config {
        policy: Some(file.clone()),
        ..world.config()
    };
    let mut running = Running::start(config).await;
    let manager = running.manager(world.manager_dir()).await;
    assert!(validate(&manager).await.unwrap().ok);
    let health = async || match soon("watch", manager.watch_health("provider")).await {
        Ok(mut stream) => soon("state", stream.message())
            .await
            .map(drop)
            .map_err(|status| status.code()),
        Err(error) => Err(error.status().code()),
    };
    assert_eq!(health().await, Err(Code::PermissionDenied));

    let with_health =
        format!("{provider_alone}  - {{match: /grpc.health.v1.Health/, allow: ['*']}}\n")
            .replace("methods: [", "methods:\n  - ")
            .replace("}]\n", "}\n");
    put(&file, with_health);
    let policy = running.status.server().policy().clone();
    soon("the change", policy.wait_for_generation(2)).await;
    assert_eq!(health().await, Ok(()));
    let page = running.status.page();
    assert_eq!((page.policy.generation, page.policy.last_error), (2, None));
    running.stop().await;
}

/// V17, V6. What can't be meant doesn't start.
#[tokio::test]
async fn a_bad_policy_or_two_of_them_do_not_start() {
    let world = World::new();
    let file = world.path("policy.yaml");
    let start = async |text: &str, list: &str| {
        put(&file, text);
        let config = Config {
            policy: Some(file.clone()),
            allowed_sans: allow(list),
            ..world.config()
        };
        server::bind(config, MemoryProvider::default())
            .await
            .map(drop)
    };
    start("allow: []\n", "").await.unwrap();
    let error = start("allow: []\n", "manager.example").await.unwrap_err();
    assert!(matches!(error, StartError::TwoPolicies { .. }), "{error}");
    let error = start("allow: [ip:x]\n", "").await.unwrap_err();
    assert!(matches!(error, StartError::Policy(_)), "{error}");
    let bad = Config::from_variables(|_| Some("uid:root".into())).unwrap_err();
    assert!(bad.to_string().contains("uid:NUMBER"), "{bad}");
}
