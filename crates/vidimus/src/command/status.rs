//! `vidimus status`: a node at a glance.

use clap::Args;
use serde::Serialize;
use vidimus_proto::node::v1 as proto;

use crate::{
    cli::{NodeArgs, OutputArgs},
    endpoint, output, time,
};

/// Arguments of `vidimus status`.
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  vidimus status --node 127.0.0.1:9550 --identity ./admin")]
pub(crate) struct StatusArgs {
    #[command(flatten)]
    node: NodeArgs,

    #[command(flatten)]
    output: OutputArgs,
}

#[derive(Serialize)]
struct Status {
    name: String,
    version: String,
    role: &'static str,
    identity: &'static str,
    subject: String,
    subject_key_id: String,
    not_after: String,
    started_at: String,
    issued: u64,
    audit_entries: u64,
    profiles: Vec<String>,
    config_generation: u64,
    config_digest_sha256: String,
    config_reboot_pending: bool,
    rotation_pending: bool,
}

impl From<proto::GetStatusResponse> for Status {
    fn from(answer: proto::GetStatusResponse) -> Self {
        Self {
            role: role(answer.role()),
            identity: identity(answer.identity()),
            name: answer.name,
            version: answer.version,
            subject: answer.subject,
            subject_key_id: answer.subject_key_id,
            not_after: time::of_proto(answer.not_after),
            started_at: time::of_proto(answer.started_at),
            issued: answer.issued,
            audit_entries: answer.audit_entries,
            profiles: answer.profiles,
            config_generation: answer.config_generation,
            config_digest_sha256: answer.config_digest_sha256,
            config_reboot_pending: answer.config_reboot_pending,
            rotation_pending: answer.rotation_pending,
        }
    }
}

impl StatusArgs {
    pub(crate) async fn run(self) -> anyhow::Result<()> {
        let client = endpoint::connect(&self.node).await?;
        let status = Status::from(client.status().await?);
        let yes = |value: bool| if value { "yes" } else { "no" }.to_owned();
        let fields = [
            ("name", status.name.clone()),
            ("version", status.version.clone()),
            ("role", status.role.to_owned()),
            ("identity", status.identity.to_owned()),
            ("subject", status.subject.clone()),
            ("key id", status.subject_key_id.clone()),
            ("not after", status.not_after.clone()),
            ("started", status.started_at.clone()),
            ("issued", status.issued.to_string()),
            ("audit entries", status.audit_entries.to_string()),
            ("profiles", status.profiles.join(", ")),
            ("config generation", status.config_generation.to_string()),
            ("config digest", status.config_digest_sha256.clone()),
            ("restart pending", yes(status.config_reboot_pending)),
            ("rotation pending", yes(status.rotation_pending)),
        ];
        output::print_fields(self.output.format, &status, &fields)
    }
}

fn role(role: proto::Role) -> &'static str {
    match role {
        proto::Role::Root => "root",
        proto::Role::Intermediate => "intermediate",
        proto::Role::Issuing => "issuing",
        proto::Role::Unspecified => "unknown",
    }
}

fn identity(state: proto::IdentityState) -> &'static str {
    match state {
        proto::IdentityState::None => "none",
        proto::IdentityState::AwaitingCert => "awaiting its certificate",
        proto::IdentityState::Established => "established",
        proto::IdentityState::Unspecified => "unknown",
    }
}
