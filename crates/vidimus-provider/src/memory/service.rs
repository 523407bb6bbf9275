//! `provider.v1` over the hypervisor: reads requests, answers with its state.

use tokio::time::Instant;
use tonic::{Request, Response, Status};
use vidimus_proto::provider::v1::{self as pb, PowerOp, provider_server::Provider};

use super::{
    MemoryError, MemoryProvider,
    effect::{Effect, Power},
    hypervisor::NewMachine,
    spec::{ImageWish, Wish, check_name, check_object, check_word, invalid},
    tasks::TaskId,
};

const MAX_HARDWARE_VERSION: i32 = 100;
const MAX_DESCRIPTION: usize = 1_024;

type Answer<T> = Result<Response<T>, Status>;

#[tonic::async_trait]
impl Provider for MemoryProvider {
    async fn validate(&self, _: Request<pb::ValidateRequest>) -> Answer<pb::ValidateResponse> {
        let machines = self.machines();
        let message = format!("in memory, {machines} virtual machines; nothing survives a restart");
        Ok(Response::new(pb::ValidateResponse { ok: true, message }))
    }

    async fn create(&self, request: Request<pb::CreateRequest>) -> Answer<pb::CreateResponse> {
        let request = request.into_inner();
        check_name("name", &request.name)?;
        check_object("placement_json", &request.placement_json)?;
        let image = ImageWish::read(&request.image_json)?;
        let mut hypervisor = self.at_present();
        let limits = *hypervisor.limits();
        if request.tags.len() > limits.tags {
            return Err(MemoryError::Exhausted {
                what: "tags",
                limit: limits.tags,
            }
            .into());
        }
        for tag in &request.tags {
            check_word("tags", tag)?;
        }
        let mut wish = Wish::default();
        wish.read_class(&request.class_json)?;
        wish.read_disks(&request.disks_json, &limits)?;
        wish.read_networks(&request.networks_json, &limits)?;
        if image.name().is_none() && image.url.is_some() {
            return Err(NO_DOWNLOAD.into());
        }
        let new = NewMachine {
            name: request.name,
            image: image.name().map(str::to_owned),
            tags: request.tags,
            wish,
        };
        let (id, task) = hypervisor.create(new, Instant::now())?;
        Ok(Response::new(pb::CreateResponse {
            id,
            task: reference(task),
        }))
    }

    async fn delete(&self, request: Request<pb::DeleteRequest>) -> Answer<pb::TaskResponse> {
        task(
            self.at_present()
                .delete(&request.into_inner().id, Instant::now()),
        )
    }

    async fn power(&self, request: Request<pb::PowerRequest>) -> Answer<pb::TaskResponse> {
        let request = request.into_inner();
        let power = match PowerOp::try_from(request.op) {
            Ok(PowerOp::On) => Power::On,
            Ok(PowerOp::Off) => Power::Off,
            Ok(PowerOp::Reboot) => Power::Reboot,
            Ok(PowerOp::ShutdownGraceful) => Power::ShutDown,
            Ok(PowerOp::Unspecified) | Err(_) => {
                let accepted = "POWER_OP_ON, _OFF, _REBOOT or _SHUTDOWN_GRACEFUL";
                return Err(invalid("op", request.op.to_string(), accepted).into());
            }
        };
        self.change(&request.id, Effect::Power(power))
    }

    async fn reconfigure(
        &self,
        request: Request<pb::ReconfigureRequest>,
    ) -> Answer<pb::TaskResponse> {
        let request = request.into_inner();
        let limits = *self.at_present().limits();
        let wish = Wish::read_desired(&request.desired_json, &limits)?;
        self.change(&request.id, Effect::Reconfigure(wish))
    }

    async fn hardware_upgrade(
        &self,
        request: Request<pb::HardwareUpgradeRequest>,
    ) -> Answer<pb::TaskResponse> {
        let pb::HardwareUpgradeRequest { id, target_version } = request.into_inner();
        if !(1..=MAX_HARDWARE_VERSION).contains(&target_version) {
            let accepted = format!("1 to {MAX_HARDWARE_VERSION}");
            return Err(invalid("target_version", target_version.to_string(), accepted).into());
        }
        self.change(&id, Effect::Upgrade(target_version))
    }

    async fn describe(
        &self,
        request: Request<pb::DescribeRequest>,
    ) -> Answer<pb::DescribeResponse> {
        Ok(Response::new(
            self.at_present().describe(&request.into_inner().id),
        ))
    }

    async fn task_status(
        &self,
        request: Request<pb::TaskStatusRequest>,
    ) -> Answer<pb::TaskStatusResponse> {
        let id = request
            .into_inner()
            .task
            .map(|task| task.id)
            .unwrap_or_default();
        if id.is_empty() {
            // an answer without a task was a finished one
            let done = pb::TaskStatusResponse {
                done: true,
                error: String::new(),
            };
            return Ok(Response::new(done));
        }
        Ok(Response::new(self.at_present().task(&id)?))
    }

    async fn snapshot_create(
        &self,
        request: Request<pb::SnapshotCreateRequest>,
    ) -> Answer<pb::SnapshotCreateResponse> {
        let request = request.into_inner();
        if request.description.len() > MAX_DESCRIPTION {
            let found = format!("{} bytes", request.description.len());
            let accepted = format!("up to {MAX_DESCRIPTION}");
            return Err(invalid("description", found, accepted).into());
        }
        let (snapshot_id, task) = self.at_present().snapshot(
            &request.vm_id,
            request.name_hint,
            request.description,
            request.include_memory,
            Instant::now(),
        )?;
        Ok(Response::new(pb::SnapshotCreateResponse {
            snapshot_id,
            task: reference(task),
        }))
    }

    async fn snapshot_delete(
        &self,
        request: Request<pb::SnapshotDeleteRequest>,
    ) -> Answer<pb::TaskResponse> {
        let request = request.into_inner();
        self.change(&request.vm_id, Effect::DeleteSnapshot(request.snapshot_id))
    }

    async fn snapshot_revert(
        &self,
        request: Request<pb::SnapshotRevertRequest>,
    ) -> Answer<pb::TaskResponse> {
        let request = request.into_inner();
        self.change(&request.vm_id, Effect::Revert(request.snapshot_id))
    }

    async fn clone(&self, request: Request<pb::CloneRequest>) -> Answer<pb::CloneResponse> {
        let request = request.into_inner();
        if request.linked {
            return Err(MemoryError::Unsupported {
                what: "make linked clones",
                why: "its disks have no blocks to share; clone with linked = false",
            }
            .into());
        }
        check_name("target_name", &request.target_name)?;
        check_object("placement_json", &request.placement_json)?;
        check_object("customize_json", &request.customize_json)?;
        let mut wish = Wish::default();
        wish.read_class(&request.class_json)?;
        let (target_vm_id, task) = self.at_present().clone_machine(
            &request.source_vm_id,
            request.target_name,
            &wish,
            Instant::now(),
        )?;
        Ok(Response::new(pb::CloneResponse {
            target_vm_id,
            task: reference(task),
        }))
    }

    async fn image_prepare(
        &self,
        request: Request<pb::ImagePrepareRequest>,
    ) -> Answer<pb::ImagePrepareResponse> {
        let request = request.into_inner();
        let image = ImageWish::read(&request.image_json)?;
        let Some(source) = image.name() else {
            return Err(match image.url {
                Some(_) => NO_DOWNLOAD.into(),
                None => invalid("image_json", "no source", "TemplateName or Path").into(),
            });
        };
        let name = if request.target_name.is_empty() {
            source
        } else {
            &request.target_name
        };
        check_name("target_name", name)?;
        let (prepared_image_id, prepared_image_path) = self
            .at_present()
            .prepare_image(name.to_owned(), source.to_owned())?;
        Ok(Response::new(pb::ImagePrepareResponse {
            task: None,
            prepared_image_id,
            prepared_image_path,
        }))
    }

    async fn get_capabilities(
        &self,
        _: Request<pb::GetCapabilitiesRequest>,
    ) -> Answer<pb::GetCapabilitiesResponse> {
        Ok(Response::new(pb::GetCapabilitiesResponse {
            supports_reconfigure_online: true,
            supports_disk_expansion_online: true,
            supports_snapshots: true,
            supports_memory_snapshots: true,
            supported_disk_types: vec!["thin".to_owned()],
            supported_network_types: vec!["virtual".to_owned()],
            ..pb::GetCapabilitiesResponse::default()
        }))
    }

    async fn export_disk(
        &self,
        _: Request<pb::ExportDiskRequest>,
    ) -> Answer<pb::ExportDiskResponse> {
        Err(MemoryError::Unsupported {
            what: "export disks",
            why: NO_BYTES,
        }
        .into())
    }

    async fn import_disk(
        &self,
        _: Request<pb::ImportDiskRequest>,
    ) -> Answer<pb::ImportDiskResponse> {
        Err(MemoryError::Unsupported {
            what: "import disks",
            why: NO_BYTES,
        }
        .into())
    }

    async fn get_disk_info(
        &self,
        request: Request<pb::GetDiskInfoRequest>,
    ) -> Answer<pb::GetDiskInfoResponse> {
        let request = request.into_inner();
        let hypervisor = self.at_present();
        let (machine, disk) =
            hypervisor.disk(&request.vm_id, &request.disk_id, &request.snapshot_id)?;
        let first = machine.state.hardware.disks.first();
        Ok(Response::new(pb::GetDiskInfoResponse {
            disk_id: disk.id.clone(),
            format: "raw".to_owned(),
            virtual_size_bytes: disk.size_bytes(),
            // a thin disk that nothing was ever written to
            actual_size_bytes: 0,
            path: disk.path(),
            is_bootable: first.is_some_and(|first| first.id == disk.id),
            snapshots: machine.snapshots.keys().cloned().collect(),
            backing_file: String::new(),
            metadata: [("name".to_owned(), disk.name.clone())].into(),
        }))
    }

    async fn list_v_ms(&self, _: Request<pb::ListVMsRequest>) -> Answer<pb::ListVMsResponse> {
        Ok(Response::new(pb::ListVMsResponse {
            vms: self.at_present().list(),
        }))
    }
}

const NO_BYTES: &str = "its disks hold no bytes; use a provider of a real hypervisor";
const NO_DOWNLOAD: MemoryError = MemoryError::Unsupported {
    what: "download images",
    why: "it has nowhere to put them; name a template by TemplateName",
};

impl MemoryProvider {
    fn change(&self, id: &str, effect: Effect) -> Answer<pb::TaskResponse> {
        task(self.at_present().change(id, effect, Instant::now()))
    }
}

fn task(started: Result<Option<TaskId>, MemoryError>) -> Answer<pb::TaskResponse> {
    Ok(Response::new(pb::TaskResponse {
        task: reference(started?),
    }))
}

fn reference(task: Option<TaskId>) -> Option<pb::TaskRef> {
    task.map(|task| pb::TaskRef { id: task.text() })
}
