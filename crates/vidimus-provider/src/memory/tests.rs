use std::collections::BTreeMap;

use tonic::{Code, Request, Response, Status};
use vidimus_proto::provider::v1::{self as pb, PowerOp, provider_server::Provider as _};

use super::*;

const TASK_TIME: Duration = Duration::from_secs(10);

fn provider() -> MemoryProvider {
    MemoryProvider::new(MemoryConfig {
        task_time: TASK_TIME,
        limits: Limits::default(),
    })
}

/// Everything is synchronous, so that a test of states needs no waiting.
fn instant() -> MemoryProvider {
    MemoryProvider::new(MemoryConfig {
        task_time: Duration::ZERO,
        limits: Limits::default(),
    })
}

fn named(name: &str) -> pb::CreateRequest {
    pb::CreateRequest {
        name: name.to_owned(),
        ..pb::CreateRequest::default()
    }
}

async fn create(provider: &MemoryProvider, request: pb::CreateRequest) -> pb::CreateResponse {
    provider
        .create(Request::new(request))
        .await
        .unwrap()
        .into_inner()
}

async fn power(
    provider: &MemoryProvider,
    id: &str,
    op: PowerOp,
) -> Result<pb::TaskResponse, Status> {
    let request = pb::PowerRequest {
        id: id.to_owned(),
        op: op.into(),
        graceful_timeout_seconds: 0,
    };
    provider
        .power(Request::new(request))
        .await
        .map(Response::into_inner)
}

async fn describe(provider: &MemoryProvider, id: &str) -> pb::DescribeResponse {
    let request = pb::DescribeRequest { id: id.to_owned() };
    provider
        .describe(Request::new(request))
        .await
        .unwrap()
        .into_inner()
}

async fn raw(provider: &MemoryProvider, id: &str) -> BTreeMap<String, String> {
    serde_json::from_str(&describe(provider, id).await.provider_raw_json).unwrap()
}

async fn status(provider: &MemoryProvider, task: Option<pb::TaskRef>) -> pb::TaskStatusResponse {
    let request = pb::TaskStatusRequest { task };
    provider
        .task_status(Request::new(request))
        .await
        .unwrap()
        .into_inner()
}

async fn reconfigure(provider: &MemoryProvider, id: &str, json: &str) -> Result<(), Status> {
    let request = pb::ReconfigureRequest {
        id: id.to_owned(),
        desired_json: json.to_owned(),
    };
    provider.reconfigure(Request::new(request)).await.map(drop)
}

async fn snapshot(provider: &MemoryProvider, id: &str, with_memory: bool) -> String {
    let request = pb::SnapshotCreateRequest {
        vm_id: id.to_owned(),
        name_hint: "before".to_owned(),
        include_memory: with_memory,
        description: String::new(),
    };
    provider
        .snapshot_create(Request::new(request))
        .await
        .unwrap()
        .into_inner()
        .snapshot_id
}

async fn revert(provider: &MemoryProvider, id: &str, snapshot: &str) -> Result<(), Status> {
    let request = pb::SnapshotRevertRequest {
        vm_id: id.to_owned(),
        snapshot_id: snapshot.to_owned(),
    };
    provider
        .snapshot_revert(Request::new(request))
        .await
        .map(drop)
}

async fn delete(provider: &MemoryProvider, id: &str) -> Option<pb::TaskRef> {
    let request = pb::DeleteRequest { id: id.to_owned() };
    provider
        .delete(Request::new(request))
        .await
        .unwrap()
        .into_inner()
        .task
}

#[tokio::test(start_paused = true)]
async fn a_task_runs_for_its_time_and_its_effect_comes_with_its_end() {
    let provider = provider();
    let created = create(&provider, named("web")).await;
    let task = power(&provider, &created.id, PowerOp::On)
        .await
        .unwrap()
        .task;
    assert!(!status(&provider, created.task.clone()).await.done);
    assert_eq!(describe(&provider, &created.id).await.power_state, "Off");

    tokio::time::advance(TASK_TIME).await;
    assert!(status(&provider, created.task).await.done);
    assert!(
        !status(&provider, task.clone()).await.done,
        "a machine does one thing at a time"
    );

    tokio::time::advance(TASK_TIME).await;
    assert_eq!(
        status(&provider, task).await,
        pb::TaskStatusResponse {
            done: true,
            error: String::new()
        }
    );
    assert_eq!(describe(&provider, &created.id).await.power_state, "On");
}

#[tokio::test(start_paused = true)]
async fn creating_again_under_a_name_is_the_same_machine_and_the_same_task() {
    let provider = provider();
    let first = create(&provider, named("web")).await;
    assert_eq!(create(&provider, named("web")).await, first);
    tokio::time::advance(TASK_TIME).await;
    let third = create(&provider, named("web")).await;
    assert_eq!((third.id, third.task), (first.id.clone(), None));
    assert_ne!(create(&provider, named("db")).await.id, first.id);
    assert_eq!(provider.machines(), 2);
}

#[tokio::test(start_paused = true)]
async fn deleting_is_idempotent_and_frees_the_name() {
    let provider = provider();
    let created = create(&provider, named("web")).await;
    let task = delete(&provider, &created.id).await;
    assert!(task.is_some());
    assert_eq!(
        delete(&provider, &created.id).await,
        task,
        "the same deletion"
    );
    let busy = provider
        .create(Request::new(named("web")))
        .await
        .unwrap_err();
    assert_eq!(busy.code(), Code::Unavailable);

    tokio::time::advance(TASK_TIME * 2).await;
    assert!(status(&provider, task).await.done);
    assert!(!describe(&provider, &created.id).await.exists);
    assert_eq!(delete(&provider, &created.id).await, None);
    assert_ne!(create(&provider, named("web")).await.id, created.id);
}

#[tokio::test(start_paused = true)]
async fn work_that_turns_out_impossible_ends_its_task_with_an_error() {
    let provider = provider();
    let created = create(&provider, named("web")).await;
    let task = power(&provider, &created.id, PowerOp::Reboot)
        .await
        .unwrap()
        .task;
    tokio::time::advance(TASK_TIME * 2).await;
    let ended = status(&provider, task).await;
    assert!(ended.done);
    assert!(
        ended.error.contains("a reboot needs it to be on"),
        "{}",
        ended.error
    );
}

#[tokio::test]
async fn an_unknown_task_is_not_found_and_no_task_is_done() {
    let provider = provider();
    assert!(status(&provider, None).await.done);
    for id in ["task-77", "nonsense"] {
        let request = pb::TaskStatusRequest {
            task: Some(pb::TaskRef { id: id.to_owned() }),
        };
        let error = provider
            .task_status(Request::new(request))
            .await
            .unwrap_err();
        assert_eq!(error.code(), Code::NotFound);
    }
}

#[tokio::test]
async fn power_operations_move_between_on_and_off_and_count_the_boots() {
    let provider = instant();
    let id = create(&provider, named("web")).await.id;
    let steps = [
        (PowerOp::On, "On", "1"),
        (PowerOp::On, "On", "1"),
        (PowerOp::Reboot, "On", "2"),
        (PowerOp::ShutdownGraceful, "Off", "2"),
        (PowerOp::On, "On", "3"),
        (PowerOp::Off, "Off", "3"),
    ];
    for (op, state, boots) in steps {
        power(&provider, &id, op).await.unwrap();
        assert_eq!(describe(&provider, &id).await.power_state, state, "{op:?}");
        assert_eq!(raw(&provider, &id).await["boots"], boots, "{op:?}");
    }
    let off = power(&provider, &id, PowerOp::Reboot).await.unwrap_err();
    assert_eq!(off.code(), Code::FailedPrecondition);
    let unspecified = power(&provider, &id, PowerOp::Unspecified)
        .await
        .unwrap_err();
    assert_eq!(unspecified.code(), Code::InvalidArgument);
    assert!(
        unspecified.message().starts_with("op:"),
        "{}",
        unspecified.message()
    );
    let nobody = power(&provider, "vm-99", PowerOp::On).await.unwrap_err();
    assert_eq!(nobody.code(), Code::NotFound);
}

#[tokio::test]
async fn a_created_machine_is_what_its_documents_say() {
    let provider = instant();
    let request = pb::CreateRequest {
        class_json: r#"{"CPU":4,"MemoryMiB":8192,"Firmware":"UEFI","DiskDefaults":{"Type":"thin","SizeGiB":40},"ExtraConfig":null}"#.to_owned(),
        image_json: r#"{"TemplateName":"debian-13"}"#.to_owned(),
        networks_json: r#"[{"Name":"lan","StaticIP":"192.0.2.7","MacAddress":"52:54:00:aa:bb:cc","VLAN":0}]"#.to_owned(),
        disks_json: r#"[{"SizeGiB":100,"Name":"data"}]"#.to_owned(),
        tags: vec!["blue".to_owned()],
        ..named("web")
    };
    let id = create(&provider, request).await.id;
    power(&provider, &id, PowerOp::On).await.unwrap();
    let listed = provider
        .list_v_ms(Request::new(pb::ListVMsRequest {}))
        .await
        .unwrap();
    let [vm] = listed.into_inner().vms.try_into().unwrap();
    assert_eq!(
        (vm.cpu, vm.memory_mib, vm.power_state.as_str()),
        (4, 8192, "On")
    );
    assert_eq!(vm.ips, ["192.0.2.7"]);
    assert_eq!(vm.networks[0].mac, "52:54:00:aa:bb:cc");
    let sizes: Vec<_> = vm.disks.iter().map(|disk| disk.size_gib).collect();
    assert_eq!(sizes, [40, 100]);
    let raw = raw(&provider, &id).await;
    assert_eq!(raw["image"], "debian-13");
    assert_eq!(raw["firmware"], "UEFI");
    assert_eq!(raw["tags"], "blue");
}

#[tokio::test]
async fn reconfiguring_takes_go_structs_and_the_short_form() {
    let provider = instant();
    let id = create(&provider, named("web")).await.id;
    let whole = r#"{"Name":"web","Class":{"CPU":2,"MemoryMiB":0,"DiskDefaults":null},"Disks":[{"SizeGiB":20,"Name":"root"}],"Networks":null,"UserData":null}"#;
    reconfigure(&provider, &id, whole).await.unwrap();
    reconfigure(&provider, &id, r#"{"memorymib":4096}"#)
        .await
        .unwrap();
    let raw = raw(&provider, &id).await;
    assert_eq!(
        (raw["cpu"].as_str(), raw["memory_mib"].as_str()),
        ("2", "4096")
    );

    let shrunk = reconfigure(&provider, &id, r#"{"Disks":[{"SizeGiB":5,"Name":"root"}]}"#).await;
    let shrunk = shrunk.unwrap_err();
    assert_eq!(shrunk.code(), Code::InvalidArgument);
    assert!(
        shrunk.message().contains("disks cannot shrink"),
        "{}",
        shrunk.message()
    );
}

#[tokio::test]
async fn a_bad_document_is_refused_with_the_name_of_the_field() {
    let provider = instant();
    let id = create(&provider, named("web")).await.id;
    let cases = [
        (r#"{"CPU":"four"}"#, "desired_json.CPU: found text"),
        (r#"{"CPU":-1}"#, "desired_json.CPU: found -1"),
        (r#"{"CPU":1.5}"#, "desired_json.CPU: found 1.5"),
        (
            r#"{"Class":{"MemoryMiB":99999999999}}"#,
            "desired_json.Class.MemoryMiB: found 99999999999",
        ),
        (r#"{"Class":[]}"#, "desired_json.Class: found a list"),
        (
            r#"{"Disks":[{"Name":"x"}]}"#,
            "desired_json.Disks[0].SizeGiB: found nothing",
        ),
        (
            r#"{"Disks":[{"SizeGiB":1,"Name":"x"},{"SizeGiB":2,"Name":"x"}]}"#,
            "Disks[1].Name",
        ),
        (r#"{"CPU":4"#, "desired_json: found a text that is no JSON"),
        ("[]", "desired_json: found a list"),
        ("", "desired_json: found nothing"),
    ];
    for (json, expected) in cases {
        let error = reconfigure(&provider, &id, json).await.unwrap_err();
        assert_eq!(error.code(), Code::InvalidArgument, "{json}");
        assert!(
            error.message().contains(expected),
            "{json}: {}",
            error.message()
        );
    }
    let request = pb::CreateRequest {
        networks_json: "{}".to_owned(),
        ..named("db")
    };
    let error = provider.create(Request::new(request)).await.unwrap_err();
    assert!(
        error
            .message()
            .starts_with("networks_json: found an object"),
        "{}",
        error.message()
    );
    let error = provider.create(Request::new(named(""))).await.unwrap_err();
    assert!(
        error.message().starts_with("name: found nothing"),
        "{}",
        error.message()
    );
    assert_eq!(
        provider.machines(),
        1,
        "nothing was created by a refused request"
    );
}

#[tokio::test]
async fn a_revert_brings_back_hardware_and_power_as_the_snapshot_kept_them() {
    for (with_memory, power_after) in [(true, "On"), (false, "Off")] {
        let provider = instant();
        let id = create(&provider, named("web")).await.id;
        power(&provider, &id, PowerOp::On).await.unwrap();
        reconfigure(&provider, &id, r#"{"CPU":2}"#).await.unwrap();
        let kept = snapshot(&provider, &id, with_memory).await;

        reconfigure(
            &provider,
            &id,
            r#"{"CPU":8,"Disks":[{"SizeGiB":7,"Name":"scratch"}]}"#,
        )
        .await
        .unwrap();
        power(&provider, &id, PowerOp::Off).await.unwrap();
        assert_eq!(raw(&provider, &id).await["cpu"], "8");

        revert(&provider, &id, &kept).await.unwrap();
        let raw = raw(&provider, &id).await;
        assert_eq!((raw["cpu"].as_str(), raw["disks"].as_str()), ("2", "1"));
        assert_eq!(describe(&provider, &id).await.power_state, power_after);
        assert_eq!(raw["snapshots"], "1", "a revert keeps the snapshot");

        let gone = pb::SnapshotDeleteRequest {
            vm_id: id.clone(),
            snapshot_id: kept.clone(),
        };
        provider.snapshot_delete(Request::new(gone)).await.unwrap();
        assert_eq!(
            revert(&provider, &id, &kept).await.unwrap_err().code(),
            Code::NotFound
        );
    }
}

#[tokio::test]
async fn a_clone_has_its_own_identity_and_its_own_fate() {
    let provider = instant();
    let request = pb::CreateRequest {
        class_json: r#"{"CPU":4}"#.to_owned(),
        networks_json: r#"[{"Name":"lan"}]"#.to_owned(),
        ..named("web")
    };
    let source = create(&provider, request).await.id;
    let wanted = pb::CloneRequest {
        source_vm_id: source.clone(),
        target_name: "web2".to_owned(),
        class_json: r#"{"MemoryMiB":2048}"#.to_owned(),
        ..pb::CloneRequest::default()
    };
    // the server's method: machines are Clone, too
    let copy = async |request: pb::CloneRequest| {
        pb::provider_server::Provider::clone(&provider, Request::new(request))
            .await
            .map(|answer| answer.into_inner().target_vm_id)
    };
    let target = copy(wanted.clone()).await.unwrap();
    assert_eq!(
        copy(wanted.clone()).await.unwrap(),
        target,
        "idempotent by name"
    );
    let [a, b] = provider
        .list_v_ms(Request::new(pb::ListVMsRequest {}))
        .await
        .unwrap()
        .into_inner()
        .vms
        .try_into()
        .unwrap();
    assert_eq!((a.cpu, b.cpu, b.memory_mib), (4, 4, 2048));
    assert_ne!(a.networks[0].mac, b.networks[0].mac);
    assert_ne!(a.disks[0].id, b.disks[0].id);

    delete(&provider, &source).await;
    assert!(describe(&provider, &target).await.exists);

    let other = create(&provider, named("db")).await.id;
    let taken = copy(pb::CloneRequest {
        source_vm_id: other,
        ..wanted.clone()
    })
    .await;
    assert_eq!(taken.unwrap_err().code(), Code::AlreadyExists);
    let linked = copy(pb::CloneRequest {
        linked: true,
        ..wanted
    })
    .await;
    assert_eq!(linked.unwrap_err().code(), Code::Unimplemented);
}

#[tokio::test]
async fn disks_are_described_now_and_as_a_snapshot_keeps_them() {
    let provider = instant();
    let id = create(&provider, named("web")).await.id;
    let kept = snapshot(&provider, &id, false).await;
    reconfigure(
        &provider,
        &id,
        r#"{"Disks":[{"SizeGiB":30,"Name":"root"}]}"#,
    )
    .await
    .unwrap();
    let info = async |disk: &str, snapshot: &str| {
        let request = pb::GetDiskInfoRequest {
            vm_id: id.clone(),
            disk_id: disk.to_owned(),
            snapshot_id: snapshot.to_owned(),
        };
        provider
            .get_disk_info(Request::new(request))
            .await
            .map(Response::into_inner)
    };
    let now = info("", "").await.unwrap();
    assert_eq!(now.virtual_size_bytes, 30 << 30);
    assert!(now.is_bootable);
    assert_eq!(now.snapshots, std::slice::from_ref(&kept));
    assert_eq!(
        info("root", &kept).await.unwrap().virtual_size_bytes,
        10 << 30
    );
    assert_eq!(
        info("missing", "").await.unwrap_err().code(),
        Code::NotFound
    );
}

#[tokio::test]
async fn what_memory_cannot_do_is_unimplemented_and_not_a_capability() {
    let provider = instant();
    let capabilities = provider
        .get_capabilities(Request::new(pb::GetCapabilitiesRequest {}))
        .await
        .unwrap()
        .into_inner();
    assert!(capabilities.supports_snapshots);
    assert!(!capabilities.supports_disk_export && !capabilities.supports_disk_import);
    assert!(!capabilities.supports_image_import && !capabilities.supports_linked_clones);

    let export = provider
        .export_disk(Request::new(pb::ExportDiskRequest::default()))
        .await;
    let import = provider
        .import_disk(Request::new(pb::ImportDiskRequest::default()))
        .await;
    let image = pb::ImagePrepareRequest {
        image_json: r#"{"URL":"https://images.example/debian.qcow2"}"#.to_owned(),
        ..pb::ImagePrepareRequest::default()
    };
    let prepare = provider.image_prepare(Request::new(image)).await;
    let refused = [
        export.unwrap_err(),
        import.unwrap_err(),
        prepare.unwrap_err(),
    ];
    for status in refused {
        assert_eq!(status.code(), Code::Unimplemented);
        assert!(
            status
                .message()
                .starts_with("the in-memory provider cannot "),
            "{status}"
        );
    }
    let template = pb::ImagePrepareRequest {
        image_json: r#"{"TemplateName":"debian-13"}"#.to_owned(),
        ..pb::ImagePrepareRequest::default()
    };
    let prepared = provider
        .image_prepare(Request::new(template))
        .await
        .unwrap()
        .into_inner();
    assert_eq!(prepared.prepared_image_id, "debian-13");
}

#[tokio::test]
async fn a_hardware_upgrade_needs_a_machine_that_is_off_and_goes_up_only() {
    let provider = instant();
    let id = create(&provider, named("web")).await.id;
    let upgrade = async |target_version| {
        let request = pb::HardwareUpgradeRequest {
            id: id.clone(),
            target_version,
        };
        provider
            .hardware_upgrade(Request::new(request))
            .await
            .map(drop)
            .map_err(|e| e.code())
    };
    upgrade(19).await.unwrap();
    assert_eq!(raw(&provider, &id).await["hardware_version"], "19");
    assert_eq!(upgrade(19).await, Err(Code::FailedPrecondition));
    assert_eq!(upgrade(0).await, Err(Code::InvalidArgument));
    power(&provider, &id, PowerOp::On).await.unwrap();
    assert_eq!(upgrade(20).await, Err(Code::FailedPrecondition));
}

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
