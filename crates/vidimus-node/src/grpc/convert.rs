//! Between our types and the messages.

use std::time::SystemTime;

use prost_types::Timestamp;
use vidimus_audit::entry::{Entry, Outcome};
use vidimus_proto::node::v1 as pb;
use vidimus_store::{AuditLine, IssuedCertificate};

use super::RpcError;
use crate::config::Role;

pub(super) fn timestamp(time: SystemTime) -> Option<Timestamp> {
    Some(Timestamp::from(time))
}

pub(super) fn role(role: Role) -> pb::Role {
    match role {
        Role::Issuing => pb::Role::Issuing,
        Role::Intermediate => pb::Role::Intermediate,
        Role::Root => pb::Role::Root,
    }
}

pub(super) fn issued(row: &IssuedCertificate, now: SystemTime) -> pb::IssuedCertificate {
    let status = if row.not_after < now {
        pb::CertificateStatus::Expired
    } else {
        pb::CertificateStatus::Valid
    };
    pb::IssuedCertificate {
        serial_hex: row.serial.to_string(),
        subject: row.subject.clone(),
        profile: row.profile.clone(),
        requester: row.requester.clone(),
        not_before: timestamp(row.not_before),
        not_after: timestamp(row.not_after),
        issued_at: timestamp(row.issued_at),
        status: status.into(),
        names: row.names.clone(),
    }
}

pub(super) fn audit_event(line: &AuditLine) -> Result<pb::AuditEvent, RpcError> {
    let entry: Entry = serde_json::from_str(&line.json).map_err(|source| RpcError::AuditEntry {
        seq: line.seq,
        source,
    })?;
    let outcome = match entry.outcome {
        Outcome::Denied => "DENIED",
        Outcome::Error => "ERROR",
        Outcome::Ok => "OK",
    };
    Ok(pb::AuditEvent {
        sequence: entry.seq,
        time: timestamp(entry.ts.into()),
        actor_subject: entry.actor_subject,
        rpc_method: entry.rpc_method,
        request_digest_sha256: entry
            .request_digest_sha256
            .map(|digest| data_encoding::HEXLOWER.encode(&digest))
            .unwrap_or_default(),
        outcome: outcome.to_owned(),
        details: entry.details.into_iter().collect(),
        line: line.text(),
    })
}
