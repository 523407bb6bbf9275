//! From a request and a profile to a signed certificate.

use std::{
    fmt,
    net::IpAddr,
    time::{Duration, SystemTime},
};

use crate::{
    csr::VerifiedCsr,
    issuer::Issuer,
    profile::{Profile, ProfileProblem, SubjectFields},
    serial::Serial,
    signer::{SignError, Signer},
};

/// How long before the moment of signing a certificate begins, for clocks that run behind: 5 minutes.
pub const BACKDATE: Duration = Duration::from_secs(5 * 60);

/// The most names a request may bring.
pub const MAX_NAMES: usize = 100;

/// Names asked for beside those of the CSR.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RequestNames {
    /// DNS names.
    pub dns: Vec<String>,
    /// IP addresses.
    pub ip: Vec<IpAddr>,
}

/// Whose matter a refusal is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// The request is wrong; asking again won't help. `INVALID_ARGUMENT`.
    Request,
    /// The CA's state or rules forbid it. `FAILED_PRECONDITION`.
    Policy,
}

/// Why no certificate was planned.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// The profile itself is unusable.
    #[error("profile {profile} has {} problems", problems.len())]
    Profile {
        /// Its name.
        profile: String,
        /// What is wrong with it.
        problems: Vec<ProfileProblem>,
    },
}

impl PlanError {
    /// Whose matter it is.
    #[must_use]
    pub fn kind(&self) -> Refusal {
        match self {
            Self::Profile { .. } => Refusal::Policy,
        }
    }
}

/// What a caller should be told about a certificate that was issued all the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Warning {
    /// It ends with its issuer, earlier than the profile says.
    Capped {
        /// What the profile says.
        requested: SystemTime,
        /// What it got.
        effective: SystemTime,
    },
    /// It may have fewer CAs below it than the profile says.
    PathLenClamped {
        /// What the profile says; `None` is no limit.
        requested: Option<u8>,
        /// What it got.
        effective: u8,
    },
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:?}")
    }
}

/// A certificate but for its signature. Made by [`Profile::certificate`] and [`root_plan`].
#[derive(Debug, Clone)]
pub struct Plan {
    tbs: Vec<u8>,
}

impl Profile {
    /// The certificate that this profile makes of a request, unsigned.
    ///
    /// # Errors
    /// See [`PlanError`].
    pub fn certificate(
        &self,
        csr: &VerifiedCsr,
        names: &RequestNames,
        issuer: &Issuer,
        now: SystemTime,
        serial: Serial,
    ) -> Result<Plan, PlanError> {
        let _ = (csr, names, issuer, now, serial);
        todo!()
    }
}

/// A root's own certificate, unsigned: keyUsage, basicConstraints without path length, key identifiers, no more.
///
/// # Errors
/// A subject that can't be encoded, a key the policy refuses, or not 1 to 30 years.
pub fn root_plan(
    subject: &SubjectFields,
    spki_der: &[u8],
    years: u32,
    now: SystemTime,
    serial: Serial,
) -> Result<Plan, PlanError> {
    let _ = (subject, spki_der, years, now, serial);
    todo!()
}

/// A certification request for a key of ours, DER.
///
/// # Errors
/// The key failed, or the subject or a name can't be encoded.
pub fn request(
    subject: &SubjectFields,
    names: &RequestNames,
    signer: &dyn Signer,
) -> Result<Vec<u8>, RequestError> {
    let _ = (subject, names, signer);
    todo!()
}

/// Why no request was made.
#[derive(Debug, thiserror::Error)]
pub enum RequestError {
    /// The subject or a name can't be encoded.
    #[error(transparent)]
    Names(#[from] PlanError),
    /// The key failed.
    #[error(transparent)]
    Sign(#[from] SignError),
}

impl Plan {
    /// The bytes that will be signed.
    #[must_use]
    pub fn tbs_der(&self) -> &[u8] {
        &self.tbs
    }

    /// Signs it.
    ///
    /// # Errors
    /// The signer holds another key than the issuer's, or failed.
    pub fn sign(self, signer: &dyn Signer) -> Result<Signed, SignError> {
        let _ = signer;
        todo!()
    }
}

/// A signed certificate. Only [`Plan::sign`] makes one.
#[derive(Debug, Clone)]
pub struct Signed {
    der: Vec<u8>,
    serial: Serial,
    warnings: Vec<Warning>,
    not_before: SystemTime,
    not_after: SystemTime,
    subject_text: String,
    names: Vec<String>,
    ski_hex: String,
}

impl Signed {
    /// The certificate.
    #[must_use]
    pub fn der(&self) -> &[u8] {
        &self.der
    }

    /// Its serial number.
    #[must_use]
    pub fn serial(&self) -> Serial {
        self.serial
    }

    /// What the caller should be told.
    #[must_use]
    pub fn warnings(&self) -> &[Warning] {
        &self.warnings
    }

    /// The first moment at which it is valid.
    #[must_use]
    pub fn not_before(&self) -> SystemTime {
        self.not_before
    }

    /// The last moment at which it is valid.
    #[must_use]
    pub fn not_after(&self) -> SystemTime {
        self.not_after
    }

    /// The subject for people.
    #[must_use]
    pub fn subject_text(&self) -> &str {
        &self.subject_text
    }

    /// The names of its subjectAltName for people: DNS and IP names as they are, others with their kind before.
    #[must_use]
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// The subject key identifier in lower-case hex.
    #[must_use]
    pub fn ski_hex(&self) -> &str {
        &self.ski_hex
    }
}
