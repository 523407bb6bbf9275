//! Helpers: each makes one call and gives its answer.

mod bounds;
mod documents;
mod states;
mod tasks;

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
