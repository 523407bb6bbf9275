use super::*;

#[tokio::test(start_paused = true)]
async fn every_bound_holds_and_says_what_it_is() {
    let limits = Limits {
        machines: 2,
        snapshots: 1,
        disks: 2,
        networks: 1,
        tags: 1,
        images: 1,
        tasks_running: 3,
        tasks_done: 2,
    };
    let provider = MemoryProvider::new(MemoryConfig {
        task_time: TASK_TIME,
        limits,
    });
    let first = create(&provider, named("one")).await;
    let second = create(&provider, named("two")).await;
    let exhausted = |status: Status, what: &str| {
        assert_eq!(status.code(), Code::ResourceExhausted, "{status}");
        assert!(status.message().contains(what), "{status}");
    };
    exhausted(
        provider
            .create(Request::new(named("three")))
            .await
            .unwrap_err(),
        "machines",
    );

    snapshot(&provider, &first.id, false).await;
    exhausted(
        power(&provider, &first.id, PowerOp::On).await.unwrap_err(),
        "running tasks",
    );
    tokio::time::advance(TASK_TIME * 2).await;
    let task = power(&provider, &first.id, PowerOp::On).await.unwrap().task;
    let again = pb::SnapshotCreateRequest {
        vm_id: first.id.clone(),
        ..pb::SnapshotCreateRequest::default()
    };
    let again = provider
        .snapshot_create(Request::new(again))
        .await
        .unwrap_err();
    exhausted(again, "snapshots");
    tokio::time::advance(TASK_TIME).await;
    assert!(status(&provider, task).await.done);
    // four tasks are done, the last two are remembered
    let forgotten = pb::TaskStatusRequest { task: second.task };
    let forgotten = provider
        .task_status(Request::new(forgotten))
        .await
        .unwrap_err();
    assert_eq!(forgotten.code(), Code::NotFound);

    let tags = vec!["a".to_owned(), "b".to_owned()];
    let tagged = pb::CreateRequest {
        tags,
        ..named("one")
    };
    exhausted(
        provider.create(Request::new(tagged)).await.unwrap_err(),
        "tags",
    );
    let disks = r#"{"Disks":[{"SizeGiB":1,"Name":"a"},{"SizeGiB":1,"Name":"b"}]}"#;
    exhausted(
        reconfigure(&provider, &first.id, disks).await.unwrap_err(),
        "disks",
    );
}

#[tokio::test]
async fn the_longest_list_of_machines_fits_a_message() {
    use prost::Message as _;
    let provider = instant();
    let limits = Limits::default();
    let (name, word) = ("n".repeat(240), "w".repeat(63));
    let network =
        |i| format!(r#"{{"Name":"{name}{i}","MacAddress":"{word}","StaticIP":"{word}"}}"#);
    let disk = |i| format!(r#"{{"Name":"{name}{i}","SizeGiB":60000}}"#);
    let list = |item: &dyn Fn(usize) -> String, count| {
        format!("[{}]", (0..count).map(item).collect::<Vec<_>>().join(","))
    };
    for machine in 0..limits.machines {
        let request = pb::CreateRequest {
            class_json: format!(r#"{{"CPU":1000,"MemoryMiB":9999999,"Firmware":"{word}"}}"#),
            image_json: format!(r#"{{"TemplateName":"{name}"}}"#),
            networks_json: list(&network, limits.networks),
            disks_json: list(&disk, limits.disks - 1),
            tags: vec![word.clone(); limits.tags],
            ..named(&format!("{name}{machine}"))
        };
        let id = create(&provider, request).await.id;
        power(&provider, &id, PowerOp::On).await.unwrap();
    }
    let list = provider
        .list_v_ms(Request::new(pb::ListVMsRequest {}))
        .await
        .unwrap();
    let size = list.into_inner().encoded_len();
    assert!(size < 4 * 1024 * 1024, "{size}");
}
