//! grpc-go's client calls our provider.

use std::{collections::BTreeMap, time::Duration};

use vidimus_testkit::{Pki, wait_until_async};

use crate::support::{DEADLINE, Go, Provider, World, go_client, server_name};

/// V5.
#[tokio::test]
async fn calls_and_health_succeed_with_a_certificate_of_the_ca() {
    let world = World::new();
    let provider = Provider::start(&world.server(), "").await;
    let result = go_client(provider.addresses.grpc, &world.client(), &[]).await;
    assert_eq!(result["code"], "OK", "{result}");
    assert_eq!(result["ok"], true);
    assert_eq!(
        (&result["health"], &result["health_code"]),
        (&"SERVING".into(), &"OK".into())
    );
    provider.stop().await;
}

/// V4.
#[tokio::test]
async fn every_method_of_the_service_is_there() {
    let world = World::new();
    let provider = Provider::start(&world.server(), "").await;
    let (address, name) = (provider.addresses.grpc.to_string(), server_name());
    let dir = world.client();
    let dir = dir.to_str().unwrap();
    let mut go = Go::start(&[
        "client",
        "-addr",
        &address,
        "-server-name",
        &name,
        "-dir",
        dir,
        "-mode",
        "every",
    ]);
    let mut codes = BTreeMap::new();
    while let Some(event) = go.next().await {
        let text = |key: &str| event[key].as_str().unwrap().to_owned();
        codes.insert(text("name"), (text("code"), text("message")));
    }
    // what an empty request meets; the two that memory cannot do say so in their own words
    let expected = [
        ("Clone", "InvalidArgument"),
        ("Create", "InvalidArgument"),
        ("Delete", "OK"),
        ("Describe", "OK"),
        ("ExportDisk", "Unimplemented"),
        ("GetCapabilities", "OK"),
        ("GetDiskInfo", "NotFound"),
        ("HardwareUpgrade", "InvalidArgument"),
        ("ImagePrepare", "InvalidArgument"),
        ("ImportDisk", "Unimplemented"),
        ("ListVMs", "OK"),
        ("Power", "InvalidArgument"),
        ("Reconfigure", "InvalidArgument"),
        ("SnapshotCreate", "NotFound"),
        ("SnapshotDelete", "NotFound"),
        ("SnapshotRevert", "NotFound"),
        ("TaskStatus", "OK"),
        ("Validate", "OK"),
    ];
    let found: Vec<_> = codes
        .iter()
        .map(|(name, (code, _))| (name.as_str(), code.as_str()))
        .collect();
    assert_eq!(found, expected);
    for method in ["ExportDisk", "ImportDisk"] {
        assert!(
            codes[method].1.contains("the in-memory provider cannot"),
            "{codes:?}"
        );
    }
    provider.stop().await;
}

/// V4.
#[tokio::test]
async fn a_machine_made_of_go_structs_lives_and_ends() {
    let world = World::new();
    let provider = Provider::start(&world.server(), "").await;
    let result = go_client(
        provider.addresses.grpc,
        &world.client(),
        &["-mode", "machine"],
    )
    .await;
    assert_eq!(result["message"], "", "{result}");
    assert_eq!(
        result["trail"],
        serde_json::json!(["On", "192.0.2.9", "3", "false"])
    );
    provider.stop().await;
}

/// V5.
#[tokio::test]
async fn no_certificate_a_stranger_an_unknown_server_and_tls_1_2_are_refused() {
    let world = World::new();
    let stranger = Pki::new("Stranger");
    let provider = Provider::start(&world.server(), "").await;
    let client = world.client();
    let leaf = stranger
        .leaf("manager")
        .dns("manager.example")
        .client()
        .issue();
    let strange = world.folder("strange", &leaf, &[&world.pki.root]);
    let other = world
        .folder("other", &leaf, &[&stranger.root])
        .join("ca.crt");
    let cases: [(&str, &std::path::Path, &[&str], &str); 4] = [
        (
            "no certificate",
            &client,
            &["-no-cert"],
            "certificate required",
        ),
        // Go sends nothing if the server's hints name no CA of its chain
        ("a stranger's certificate", &strange, &[], "tls: "),
        (
            "the wrong root",
            &client,
            &["-ca", other.to_str().unwrap()],
            "unknown authority",
        ),
        ("TLS 1.2", &client, &["-max-tls12"], "protocol version"),
    ];
    for (case, dir, extra, reason) in cases {
        let result = go_client(provider.addresses.grpc, dir, extra).await;
        assert_eq!(result["code"], "Unavailable", "{case}: {result}");
        let message = result["message"].as_str().unwrap();
        assert!(message.contains(reason), "{case}: {message}");
    }
    assert_eq!(provider.status.page().counters.calls, 0);
    let result = go_client(provider.addresses.grpc, &client, &[]).await;
    assert_eq!(result["code"], "OK", "the right one gets in: {result}");
    provider.stop().await;
}

/// V6.
#[tokio::test]
async fn the_allow_list_answers_permission_denied_for_every_call() {
    let world = World::new();
    for (list, code) in [
        ("manager.example", "OK"),
        ("another.example", "PermissionDenied"),
    ] {
        let provider = Provider::start(&world.server(), list).await;
        let result = go_client(provider.addresses.grpc, &world.client(), &[]).await;
        assert_eq!(
            (&result["code"], &result["health_code"]),
            (&code.into(), &code.into())
        );
        provider.stop().await;
    }
}

/// V10.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_call_is_lost_while_the_leaf_rotates_and_connections_are_drained() {
    let world = World::new();
    let dir = world.path("mounted");
    let mut volume = world.server_leaf().write_volume(&dir, &[&world.pki.root]);
    let provider = Provider::start(&dir, "").await;
    let (address, name) = (provider.addresses.grpc.to_string(), server_name());
    let client = world.client();
    let mut go = Go::start(&[
        "client",
        "-addr",
        &address,
        "-server-name",
        &name,
        "-dir",
        client.to_str().unwrap(),
        "-mode",
        "loop",
    ]);
    go.more(50).await;
    for generation in 2..=6 {
        volume.swap(&world.server_leaf().files(&[&world.pki.root]));
        wait_until_async(DEADLINE, || async {
            let material = provider.status.material().unwrap();
            if material.generation >= generation {
                Ok(())
            } else {
                Err(format!("{material:?}"))
            }
        })
        .await;
        wait_until_async(DEADLINE, || async {
            // again and again: one may have been made with the leaf before, a moment ago
            let server = provider.status.server();
            server.close_where(|one| one.generation < generation, Duration::from_secs(30));
            let connections = server.connections();
            let met = connections.iter().any(|one| one.generation == generation);
            if met {
                Ok(())
            } else {
                Err(format!("{connections:?}"))
            }
        })
        .await;
        go.more(50).await;
    }
    go.end();
    let done = go.event("done").await;
    assert_eq!(done["failed"], 0, "{done}");
    assert!(done["calls"].as_i64().unwrap() >= 300, "{done}");
    provider.stop().await;
}
