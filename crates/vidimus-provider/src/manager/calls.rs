//! `provider.v1`, each method under its deadline.

use std::time::Duration;

use tonic::Request;
use vidimus_proto::provider::v1::{self as pb, provider_client::ProviderClient};

use super::{CallError, Manager};

/// How long calls may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deadlines {
    /// `TaskStatus`.
    pub task: Duration,
    /// `Validate`, `GetCapabilities`, `Describe`.
    pub look: Duration,
    /// `Power`, `Delete`, `SnapshotDelete`, `GetDiskInfo`, `ListVMs`.
    pub short: Duration,
    /// `Create`, `Reconfigure`, `HardwareUpgrade`, `Clone`, `ImagePrepare`, `SnapshotCreate`,
    /// `SnapshotRevert`.
    pub long: Duration,
    /// `ExportDisk`, `ImportDisk`.
    pub transfer: Duration,
}

impl Default for Deadlines {
    /// VirtRigaud's: 10 and 30 seconds, 2, 5 and 30 minutes.
    fn default() -> Self {
        Self {
            task: Duration::from_secs(10),
            look: Duration::from_secs(30),
            short: Duration::from_secs(2 * 60),
            long: Duration::from_secs(5 * 60),
            transfer: Duration::from_secs(30 * 60),
        }
    }
}

macro_rules! calls {
    ($($(#[$doc:meta])* $name:ident = $rpc:ident($request:ty) -> $response:ty, $method:literal, $deadline:ident;)*) => {
        impl Manager {
            $(
                $(#[$doc])*
                ///
                /// # Errors
                ///
                /// The provider could not be reached, refused the call, failed, or took too long.
                pub async fn $name(&self, request: $request) -> Result<$response, CallError> {
                    let mut request = Request::new(request);
                    request.set_timeout(self.deadlines.$deadline);
                    let mut client = self.client.clone();
                    // by its path: the method `clone` of `provider.v1` is not that of `Clone`
                    let answer = ProviderClient::$rpc(&mut client, request).await;
                    answer
                        .map(tonic::Response::into_inner)
                        .map_err(|status| CallError::new($method, status))
                }
            )*
        }
    };
}

calls! {
    /// Says whether the provider can use its hypervisor.
    validate = validate(pb::ValidateRequest) -> pb::ValidateResponse, "Validate", look;
    /// Creates a virtual machine.
    create = create(pb::CreateRequest) -> pb::CreateResponse, "Create", long;
    /// Deletes a virtual machine.
    delete = delete(pb::DeleteRequest) -> pb::TaskResponse, "Delete", short;
    /// Changes a virtual machine's power state.
    power = power(pb::PowerRequest) -> pb::TaskResponse, "Power", short;
    /// Changes a virtual machine towards the desired state.
    reconfigure = reconfigure(pb::ReconfigureRequest) -> pb::TaskResponse, "Reconfigure", long;
    /// Raises the virtual hardware version.
    hardware_upgrade = hardware_upgrade(pb::HardwareUpgradeRequest) -> pb::TaskResponse, "HardwareUpgrade", long;
    /// Describes a virtual machine; a missing one is `exists: false`.
    describe = describe(pb::DescribeRequest) -> pb::DescribeResponse, "Describe", look;
    /// Says how far a task is.
    task_status = task_status(pb::TaskStatusRequest) -> pb::TaskStatusResponse, "TaskStatus", task;
    /// Takes a snapshot.
    snapshot_create = snapshot_create(pb::SnapshotCreateRequest) -> pb::SnapshotCreateResponse, "SnapshotCreate", long;
    /// Deletes a snapshot.
    snapshot_delete = snapshot_delete(pb::SnapshotDeleteRequest) -> pb::TaskResponse, "SnapshotDelete", short;
    /// Returns a virtual machine to a snapshot.
    snapshot_revert = snapshot_revert(pb::SnapshotRevertRequest) -> pb::TaskResponse, "SnapshotRevert", long;
    /// Copies a virtual machine.
    clone_vm = clone(pb::CloneRequest) -> pb::CloneResponse, "Clone", long;
    /// Prepares an image.
    image_prepare = image_prepare(pb::ImagePrepareRequest) -> pb::ImagePrepareResponse, "ImagePrepare", long;
    /// Says what the provider can do.
    get_capabilities = get_capabilities(pb::GetCapabilitiesRequest) -> pb::GetCapabilitiesResponse, "GetCapabilities", look;
    /// Exports a disk.
    export_disk = export_disk(pb::ExportDiskRequest) -> pb::ExportDiskResponse, "ExportDisk", transfer;
    /// Imports a disk.
    import_disk = import_disk(pb::ImportDiskRequest) -> pb::ImportDiskResponse, "ImportDisk", transfer;
    /// Describes a disk.
    get_disk_info = get_disk_info(pb::GetDiskInfoRequest) -> pb::GetDiskInfoResponse, "GetDiskInfo", short;
    /// Lists every virtual machine.
    list_vms = list_v_ms(pb::ListVMsRequest) -> pb::ListVMsResponse, "ListVMs", short;
}
