//! Issuing: the one path that every door takes (management API, offline commands, the node itself).
//!
//! CSR → key policy → profile and its kind → names → gates → plan → signature → record → answer. Nothing after a failed
//! step runs, so no gate is behind the key. A certificate exists outside only after the store has it together with its
//! audit entry; a refusal is in the audit log before the caller learns of it.

mod error;
mod snapshot;
#[cfg(test)]
mod tests;

use std::{net::IpAddr, sync::Arc, time::SystemTime};

use arc_swap::ArcSwap;
use aws_lc_rs::rand::SystemRandom;
use vidimus_audit::entry::Outcome;
use vidimus_daemon::clock::Clock;
use vidimus_store::{Issuance, IssuedCertificate, Recorded, Store};
use vidimus_x509::{
    csr::VerifiedCsr,
    issue::{RequestNames, Signed, Warning},
    profile::Profile,
    serial::Serial,
};

pub use error::{Fault, IssueError};
pub use snapshot::Snapshot;

pub(crate) use snapshot::Kind;

use crate::{call::Call, identity::CaIdentity, time};

/// A leaf that is asked for.
#[derive(Debug, Clone, Copy)]
pub struct LeafRequest<'a> {
    /// PKCS#10 in DER or PEM.
    pub csr: &'a [u8],
    /// The profile's name.
    pub profile: &'a str,
    /// DNS names beside the CSR's.
    pub dns_names: &'a [String],
    /// IP addresses beside the CSR's.
    pub ip_addresses: &'a [String],
}

/// A certificate that is recorded and may leave.
#[derive(Debug)]
pub struct Issued {
    /// The record; only the store makes one.
    pub certificate: Recorded<IssuedCertificate>,
    /// Who issued it: the chain above.
    pub issuer: Arc<CaIdentity>,
    /// What the caller should know: a validity that was capped, a path length that was clamped.
    pub warnings: Vec<String>,
}

/// Issues, records, and answers what was issued.
#[derive(Debug)]
pub struct IssuingService {
    snapshot: ArcSwap<Snapshot>,
    store: Store,
    clock: Arc<dyn Clock>,
    random: SystemRandom,
}

/// What an audit entry says beside who, what and how it ended.
#[derive(Debug, Default)]
struct Details(Vec<(&'static str, String)>);

/// Signed, but not yet recorded: must not leave.
struct Prepared {
    signed: Signed,
    profile: String,
    issuer: Arc<CaIdentity>,
}

impl IssuingService {
    pub(crate) fn new(snapshot: Snapshot, store: Store, clock: Arc<dyn Clock>) -> Self {
        Self {
            snapshot: ArcSwap::from_pointee(snapshot),
            store,
            clock,
            random: SystemRandom::new(),
        }
    }

    /// Config and identity in force.
    #[must_use]
    pub fn snapshot(&self) -> Arc<Snapshot> {
        self.snapshot.load_full()
    }

    pub(crate) fn replace(&self, snapshot: Snapshot) {
        self.snapshot.store(Arc::new(snapshot));
    }

    pub(crate) fn now(&self) -> SystemTime {
        self.clock.now()
    }

    pub(crate) fn clock(&self) -> Arc<dyn Clock> {
        Arc::clone(&self.clock)
    }

    /// Certifies a leaf.
    ///
    /// # Errors
    /// Every refusal is in the audit log when this returns.
    pub async fn issue_leaf(
        &self,
        call: &Call,
        request: &LeafRequest<'_>,
    ) -> Result<Issued, IssueError> {
        let snapshot = self.snapshot();
        let mut details = Details::of(request.profile, &snapshot);
        if !request.dns_names.is_empty() {
            details.add("request_dns_names", joined(request.dns_names));
        }
        if !request.ip_addresses.is_empty() {
            details.add("request_ip_addresses", joined(request.ip_addresses));
        }
        let prepared = self.prepare_leaf(&snapshot, request);
        self.conclude(call, details, prepared).await
    }

    /// Certifies a CA below this one.
    ///
    /// # Errors
    /// Every refusal is in the audit log when this returns.
    pub async fn sign_subordinate(
        &self,
        call: &Call,
        csr: &[u8],
        profile: &str,
    ) -> Result<Issued, IssueError> {
        let snapshot = self.snapshot();
        let details = Details::of(profile, &snapshot);
        let prepared = self.prepare_subordinate(&snapshot, csr, profile);
        self.conclude(call, details, prepared).await
    }

    /// Certifies a key of the node's own under a profile that no config has. A root's gate is for others' leaves.
    pub(crate) async fn issue_internal(
        &self,
        call: &Call,
        csr: &[u8],
        profile: &Profile,
    ) -> Result<Issued, IssueError> {
        let snapshot = self.snapshot();
        let details = Details::of(&profile.name, &snapshot);
        let prepared = VerifiedCsr::parse(csr)
            .map_err(IssueError::from)
            .and_then(|csr| self.sign(&snapshot, &csr, profile, &RequestNames::default()));
        self.conclude(call, details, prepared).await
    }

    fn prepare_leaf(
        &self,
        snapshot: &Snapshot,
        request: &LeafRequest<'_>,
    ) -> Result<Prepared, IssueError> {
        let csr = VerifiedCsr::parse(request.csr)?;
        let profile = snapshot.profile(request.profile, Kind::Leaf)?;
        let names = request_names(profile, request)?;
        snapshot.require_leaves()?;
        self.sign(snapshot, &csr, profile, &names)
    }

    fn prepare_subordinate(
        &self,
        snapshot: &Snapshot,
        csr: &[u8],
        profile: &str,
    ) -> Result<Prepared, IssueError> {
        let csr = VerifiedCsr::parse(csr)?;
        let profile = snapshot.profile(profile, Kind::Subordinate)?;
        self.sign(snapshot, &csr, profile, &RequestNames::default())
    }

    /// The only place that uses the CA's key for a certificate; everything was decided before.
    fn sign(
        &self,
        snapshot: &Snapshot,
        csr: &VerifiedCsr,
        profile: &Profile,
        names: &RequestNames,
    ) -> Result<Prepared, IssueError> {
        let identity = snapshot.require_identity()?;
        let serial = Serial::random(&self.random)?;
        let plan = profile.certificate(csr, names, identity.issuer(), self.now(), serial)?;
        Ok(Prepared {
            signed: plan.sign(identity.signer())?,
            profile: profile.name.clone(),
            issuer: Arc::clone(identity),
        })
    }

    /// Records what was signed, or that it was refused, before anybody learns of it.
    async fn conclude(
        &self,
        call: &Call,
        details: Details,
        prepared: Result<Prepared, IssueError>,
    ) -> Result<Issued, IssueError> {
        let Prepared {
            signed,
            profile,
            issuer,
        } = match prepared {
            Ok(prepared) => prepared,
            Err(refusal) => return Err(self.refuse(call, details, refusal).await),
        };
        let mut draft = call.draft(Outcome::Ok);
        for (key, value) in details.0.into_iter().chain(validity_details(&signed)) {
            draft = draft.with(key, value);
        }
        let warnings = signed.warnings().iter().map(ToString::to_string).collect();
        let issuance = Issuance {
            signed,
            profile,
            requester: call.requester.to_owned(),
            audit: draft,
        };
        match self.store.record_issuance(issuance).await {
            Ok(certificate) => Ok(Issued {
                certificate,
                issuer,
                warnings,
            }),
            Err(source) => Err(IssueError::Record { source }),
        }
    }

    async fn refuse(&self, call: &Call, details: Details, refusal: IssueError) -> IssueError {
        let reason = vidimus_daemon::telemetry::chain(&refusal).to_string();
        let mut draft = call.draft(Outcome::Error).with("reason", reason.clone());
        for (key, value) in details.0 {
            draft = draft.with(key, value);
        }
        match self.store.append_audit(draft).await {
            Ok(_) => refusal,
            Err(source) => IssueError::RecordRefusal {
                refusal: reason,
                source,
            },
        }
    }
}

impl Details {
    fn of(profile: &str, snapshot: &Snapshot) -> Self {
        let mut details = Self::default();
        details.add("profile", profile.chars().take(64).collect());
        details.add(
            "config_generation",
            snapshot.config_generation().to_string(),
        );
        details
    }

    fn add(&mut self, key: &'static str, value: String) {
        self.0.push((key, value));
    }
}

fn request_names(profile: &Profile, request: &LeafRequest<'_>) -> Result<RequestNames, IssueError> {
    let none = request.dns_names.is_empty() && request.ip_addresses.is_empty();
    if !none && !profile.allow_request_sans {
        return Err(IssueError::NamesNotAllowed {
            profile: profile.name.clone(),
        });
    }
    let ip = request.ip_addresses.iter().map(|text| {
        text.parse::<IpAddr>().map_err(|_| IssueError::IpAddress {
            found: text.chars().take(64).collect(),
        })
    });
    Ok(RequestNames {
        dns: request.dns_names.to_vec(),
        ip: ip.collect::<Result<_, _>>()?,
    })
}

fn validity_details(signed: &Signed) -> Vec<(&'static str, String)> {
    let mut details = vec![("effective_not_after", time::rfc3339(signed.not_after()))];
    for warning in signed.warnings() {
        if let Warning::Capped { requested, .. } = warning {
            details.push(("requested_not_after", time::rfc3339(*requested)));
        }
    }
    details
}

/// As much of a list as an audit entry should carry.
fn joined(texts: &[String]) -> String {
    const MOST: usize = 100;
    let mut text: String = texts
        .iter()
        .take(MOST)
        .map(|text| text.chars().take(253).collect::<String>())
        .collect::<Vec<_>>()
        .join(",");
    if texts.len() > MOST {
        text.push_str(",…");
    }
    text
}
