use super::*;

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
