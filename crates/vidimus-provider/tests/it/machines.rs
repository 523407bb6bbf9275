use tonic::Code;
use vidimus_proto::provider::v1::{self as pb, PowerOp};
use vidimus_provider::manager::{CallError, Manager, Outcome};
use vidimus_testkit::wait_until_async;

use crate::support::{DEADLINE, Running, World};

async fn finish(manager: &Manager, task: Option<pb::TaskRef>) {
    let status = wait_until_async(DEADLINE, || async {
        let request = pb::TaskStatusRequest { task: task.clone() };
        match manager.task_status(request).await {
            Ok(status) if status.done => Ok(status),
            Ok(_) => Err("it runs".to_owned()),
            Err(error) => Err(error.to_string()),
        }
    })
    .await;
    assert_eq!(status.error, "");
}

async fn describe(manager: &Manager, id: &str) -> pb::DescribeResponse {
    manager
        .describe(pb::DescribeRequest { id: id.to_owned() })
        .await
        .unwrap()
}

#[tokio::test]
async fn a_machine_lives_from_its_creation_to_its_end_over_the_wire() -> Result<(), CallError> {
    let world = World::new();
    let mut running = Running::start(world.config()).await;
    let manager = running.manager(world.manager_dir()).await;
    let capabilities = manager
        .get_capabilities(pb::GetCapabilitiesRequest {})
        .await?;
    assert!(capabilities.supports_snapshots && !capabilities.supports_disk_export);

    let wanted = pb::CreateRequest {
        name: "web".to_owned(),
        class_json: r#"{"CPU":2,"MemoryMiB":2048}"#.to_owned(),
        networks_json: r#"[{"Name":"lan"}]"#.to_owned(),
        ..pb::CreateRequest::default()
    };
    let created = manager.create(wanted.clone()).await?;
    assert!(created.task.is_some(), "work takes time");
    let id = created.id.clone();
    assert_eq!(
        manager.create(wanted).await?.id,
        id,
        "creating again is the same machine"
    );
    finish(&manager, created.task).await;

    let power = |op: PowerOp| {
        manager.power(pb::PowerRequest {
            id: id.clone(),
            op: op.into(),
            graceful_timeout_seconds: 60,
        })
    };
    finish(&manager, power(PowerOp::On).await?.task).await;
    let running_state = describe(&manager, &id).await;
    assert_eq!(
        (running_state.power_state.as_str(), running_state.ips.len()),
        ("On", 1)
    );

    let snapshot = manager
        .snapshot_create(pb::SnapshotCreateRequest {
            vm_id: id.clone(),
            include_memory: true,
            ..pb::SnapshotCreateRequest::default()
        })
        .await?;
    finish(&manager, snapshot.task).await;
    let desired_json = r#"{"Class":{"CPU":8}}"#.to_owned();
    let change = pb::ReconfigureRequest {
        id: id.clone(),
        desired_json,
    };
    finish(&manager, manager.reconfigure(change).await?.task).await;
    finish(&manager, power(PowerOp::ShutdownGraceful).await?.task).await;
    assert_eq!(manager.list_vms(pb::ListVMsRequest {}).await?.vms[0].cpu, 8);

    let back = pb::SnapshotRevertRequest {
        vm_id: id.clone(),
        snapshot_id: snapshot.snapshot_id.clone(),
    };
    finish(&manager, manager.snapshot_revert(back).await?.task).await;
    assert_eq!(describe(&manager, &id).await.power_state, "On");
    assert_eq!(manager.list_vms(pb::ListVMsRequest {}).await?.vms[0].cpu, 2);

    let copy = pb::CloneRequest {
        source_vm_id: id.clone(),
        target_name: "web2".to_owned(),
        ..pb::CloneRequest::default()
    };
    finish(&manager, manager.clone_vm(copy).await?.task).await;
    let disk = pb::GetDiskInfoRequest {
        vm_id: id.clone(),
        ..pb::GetDiskInfoRequest::default()
    };
    assert_eq!(
        manager.get_disk_info(disk).await?.snapshots,
        [snapshot.snapshot_id]
    );

    let gone = pb::DeleteRequest { id: id.clone() };
    finish(&manager, manager.delete(gone.clone()).await?.task).await;
    assert!(
        !describe(&manager, &id).await.exists,
        "a missing machine is no error"
    );
    assert_eq!(
        manager.delete(gone).await?.task,
        None,
        "deleting again succeeds"
    );
    assert_eq!(manager.list_vms(pb::ListVMsRequest {}).await?.vms.len(), 1);
    running.stop().await;
    Ok(())
}

#[tokio::test]
async fn a_manager_knows_what_to_do_about_each_refusal() {
    let world = World::new();
    let mut running = Running::start(world.config()).await;
    let manager = running.manager(world.manager_dir()).await;
    let missing = manager
        .power(pb::PowerRequest {
            id: "vm-9".into(),
            op: 1,
            graceful_timeout_seconds: 0,
        })
        .await
        .unwrap_err();
    assert_eq!(missing.outcome(), Outcome::NotFound);
    let wrong = manager
        .create(pb::CreateRequest {
            name: "web".to_owned(),
            class_json: r#"{"CPU":"two"}"#.to_owned(),
            ..pb::CreateRequest::default()
        })
        .await
        .unwrap_err();
    assert_eq!(wrong.outcome(), Outcome::InvalidSpec);
    assert!(
        wrong
            .to_string()
            .starts_with("Create: InvalidArgument: class_json.CPU:"),
        "{wrong}"
    );
    let export = manager
        .export_disk(pb::ExportDiskRequest::default())
        .await
        .unwrap_err();
    assert_eq!(export.outcome(), Outcome::Unsupported);
    assert_eq!(export.status().code(), Code::Unimplemented);
    running.stop().await;
}
