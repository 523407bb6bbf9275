use std::collections::BTreeMap;

use prost::Message as _;
use prost_types::{
    DescriptorProto, FieldDescriptorProto, FileDescriptorProto, FileDescriptorSet,
    field_descriptor_proto::{Label, Type},
};

/// Every message with its fields: number, name, type; `[]` repeats, `map` is a map of strings.
const MESSAGES: [(&str, &str); 36] = [
    ("Empty", ""),
    ("TaskRef", "1 id string"),
    ("TaskResponse", "1 task TaskRef"),
    ("ValidateRequest", ""),
    ("ValidateResponse", "1 ok bool, 2 message string"),
    (
        "CreateRequest",
        "1 name string, 2 user_data bytes, 3 class_json string, 4 image_json string, 5 networks_json string, 6 disks_json string, 7 placement_json string, 8 tags string[], 9 meta_data bytes",
    ),
    ("CreateResponse", "1 id string, 2 task TaskRef"),
    ("DeleteRequest", "1 id string"),
    (
        "PowerRequest",
        "1 id string, 2 op PowerOp, 3 graceful_timeout_seconds int32",
    ),
    ("ReconfigureRequest", "1 id string, 2 desired_json string"),
    (
        "HardwareUpgradeRequest",
        "1 id string, 2 target_version int32",
    ),
    ("DescribeRequest", "1 id string"),
    (
        "DescribeResponse",
        "1 exists bool, 2 power_state string, 3 ips string[], 4 console_url string, 5 provider_raw_json string",
    ),
    ("TaskStatusRequest", "1 task TaskRef"),
    ("TaskStatusResponse", "1 done bool, 2 error string"),
    (
        "SnapshotCreateRequest",
        "1 vm_id string, 2 name_hint string, 3 include_memory bool, 4 description string",
    ),
    (
        "SnapshotCreateResponse",
        "1 snapshot_id string, 2 task TaskRef",
    ),
    (
        "SnapshotDeleteRequest",
        "1 vm_id string, 2 snapshot_id string",
    ),
    (
        "SnapshotRevertRequest",
        "1 vm_id string, 2 snapshot_id string",
    ),
    (
        "CloneRequest",
        "1 source_vm_id string, 2 target_name string, 3 linked bool, 4 class_json string, 5 placement_json string, 6 customize_json string",
    ),
    ("CloneResponse", "1 target_vm_id string, 2 task TaskRef"),
    (
        "ImagePrepareRequest",
        "1 image_json string, 2 target_name string, 3 storage_hint string",
    ),
    (
        "ImagePrepareResponse",
        "1 task TaskRef, 2 prepared_image_id string, 3 prepared_image_path string",
    ),
    ("GetCapabilitiesRequest", ""),
    (
        "GetCapabilitiesResponse",
        "1 supports_reconfigure_online bool, 2 supports_disk_expansion_online bool, 3 supports_snapshots bool, 4 supports_memory_snapshots bool, 5 supports_linked_clones bool, 6 supports_image_import bool, 7 supported_disk_types string[], 8 supported_network_types string[], 9 supports_disk_export bool, 10 supports_disk_import bool, 11 supported_export_formats string[], 12 supported_import_formats string[], 13 supports_export_compression bool, 14 supported_export_backends string[], 15 supported_import_backends string[], 16 supported_transfer_modes string[]",
    ),
    (
        "ExportDiskRequest",
        "1 vm_id string, 2 disk_id string, 3 snapshot_id string, 4 destination_url string, 5 format string, 6 compress bool, 7 credentials map, 8 backend_type string, 9 transfer_mode string, 10 storage_options_json string",
    ),
    (
        "ExportDiskResponse",
        "1 export_id string, 2 task TaskRef, 3 estimated_size_bytes int64, 4 checksum string",
    ),
    (
        "ImportDiskRequest",
        "1 source_url string, 2 storage_hint string, 3 format string, 4 target_name string, 5 verify_checksum bool, 6 expected_checksum string, 7 credentials map, 8 backend_type string, 9 transfer_mode string, 10 storage_options_json string",
    ),
    (
        "ImportDiskResponse",
        "1 disk_id string, 2 path string, 3 task TaskRef, 4 actual_size_bytes int64, 5 checksum string",
    ),
    (
        "GetDiskInfoRequest",
        "1 vm_id string, 2 disk_id string, 3 snapshot_id string",
    ),
    (
        "GetDiskInfoResponse",
        "1 disk_id string, 2 format string, 3 virtual_size_bytes int64, 4 actual_size_bytes int64, 5 path string, 6 is_bootable bool, 7 snapshots string[], 8 backing_file string, 9 metadata map",
    ),
    ("ListVMsRequest", ""),
    ("ListVMsResponse", "1 vms VMInfo[]"),
    (
        "VMInfo",
        "1 id string, 2 name string, 3 power_state string, 4 ips string[], 5 cpu int32, 6 memory_mib int64, 7 disks DiskInfo[], 8 networks NetworkInfo[], 9 provider_raw map",
    ),
    (
        "DiskInfo",
        "1 id string, 2 path string, 3 size_gib int32, 4 format string",
    ),
    (
        "NetworkInfo",
        "1 name string, 2 mac string, 3 ip_address string",
    ),
];

const METHODS: &str = "\
Validate(ValidateRequest) ValidateResponse
Create(CreateRequest) CreateResponse
Delete(DeleteRequest) TaskResponse
Power(PowerRequest) TaskResponse
Reconfigure(ReconfigureRequest) TaskResponse
HardwareUpgrade(HardwareUpgradeRequest) TaskResponse
Describe(DescribeRequest) DescribeResponse
TaskStatus(TaskStatusRequest) TaskStatusResponse
SnapshotCreate(SnapshotCreateRequest) SnapshotCreateResponse
SnapshotDelete(SnapshotDeleteRequest) TaskResponse
SnapshotRevert(SnapshotRevertRequest) TaskResponse
Clone(CloneRequest) CloneResponse
ImagePrepare(ImagePrepareRequest) ImagePrepareResponse
GetCapabilities(GetCapabilitiesRequest) GetCapabilitiesResponse
ExportDisk(ExportDiskRequest) ExportDiskResponse
ImportDisk(ImportDiskRequest) ImportDiskResponse
GetDiskInfo(GetDiskInfoRequest) GetDiskInfoResponse
ListVMs(ListVMsRequest) ListVMsResponse";

fn file() -> FileDescriptorProto {
    let set = FileDescriptorSet::decode(vidimus_proto::FILE_DESCRIPTOR_SET).unwrap();
    set.file
        .into_iter()
        .find(|file| file.package() == "provider.v1")
        .unwrap()
}

fn short(name: &str) -> &str {
    name.rsplit('.').next().unwrap_or(name)
}

fn field(message: &DescriptorProto, field: &FieldDescriptorProto) -> String {
    let kind = match field.r#type() {
        Type::Bool => "bool",
        Type::Bytes => "bytes",
        Type::Enum | Type::Message => short(field.type_name()),
        Type::Int32 => "int32",
        Type::Int64 => "int64",
        Type::String => "string",
        other => panic!("{other:?} is not used by VirtRigaud"),
    };
    let is_map = message.nested_type.iter().any(|nested| {
        nested.name() == kind
            && nested
                .options
                .as_ref()
                .is_some_and(prost_types::MessageOptions::map_entry)
    });
    let kind = match field.label() {
        Label::Repeated if is_map => "map".to_owned(),
        Label::Repeated => format!("{kind}[]"),
        _ => kind.to_owned(),
    };
    format!("{} {} {kind}", field.number(), field.name())
}

/// V4.
#[test]
fn every_field_has_virtrigauds_number_name_and_type() {
    let ours: BTreeMap<_, _> = file()
        .message_type
        .iter()
        .map(|message| {
            let fields: Vec<_> = message
                .field
                .iter()
                .map(|one| field(message, one))
                .collect();
            (message.name().to_owned(), fields.join(", "))
        })
        .collect();
    let theirs: BTreeMap<_, _> = MESSAGES
        .iter()
        .map(|(name, fields)| ((*name).to_owned(), (*fields).to_owned()))
        .collect();
    assert_eq!(ours, theirs);
}

/// V4.
#[test]
fn every_method_is_unary_and_takes_and_gives_virtrigauds_messages() {
    let file = file();
    let [service] = file.service.as_slice() else {
        panic!("one service")
    };
    assert_eq!(service.name(), "Provider");
    let methods: Vec<_> = service
        .method
        .iter()
        .map(|method| {
            assert!(
                !method.client_streaming() && !method.server_streaming(),
                "{}",
                method.name()
            );
            let (request, response) = (short(method.input_type()), short(method.output_type()));
            format!("{}({request}) {response}", method.name())
        })
        .collect();
    assert_eq!(methods.join("\n"), METHODS);
}

/// V4.
#[test]
fn the_power_operations_have_virtrigauds_numbers() {
    let file = file();
    let [power] = file.enum_type.as_slice() else {
        panic!("one enumeration")
    };
    let values: Vec<_> = power
        .value
        .iter()
        .map(|value| format!("{} {}", value.number(), value.name()))
        .collect();
    assert_eq!(
        values,
        [
            "0 POWER_OP_UNSPECIFIED",
            "1 POWER_OP_ON",
            "2 POWER_OP_OFF",
            "3 POWER_OP_REBOOT",
            "4 POWER_OP_SHUTDOWN_GRACEFUL"
        ]
    );
}
