use super::*;

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
