//! From a request and a profile to a signed certificate (RFC 5280 §4).
//!
//! [`Profile::certificate`] decides everything and needs no key: what it refuses costs no
//! signature. [`Plan::sign`] decides nothing.

mod names;
mod plan;
mod request;
mod root;
mod tbs;
mod validity;

use std::{fmt, net::IpAddr, time::Duration, time::SystemTime};

pub use self::{
    plan::{Plan, Signed},
    request::{RequestError, request},
    root::{root_plan, self_signed_client_plan},
};
use crate::{
    key::KeyPolicyError,
    profile::{ProfileProblem, host},
    time,
};

#[cfg(doc)]
use crate::profile::Profile;

/// How long before the moment of signing a certificate begins, for clocks that run behind: 5
/// minutes.
pub const BACKDATE: Duration = Duration::from_secs(5 * 60);

/// The most names a requested certificate may have.
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
    /// The request is wrong; asking the same again won't help. gRPC `INVALID_ARGUMENT`.
    Request,
    /// The CA's state or rules forbid it. gRPC `FAILED_PRECONDITION`.
    Policy,
}

/// Why no certificate was planned.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// The profile itself is unusable.
    #[error("profile {profile} is unusable: {}", list(problems))]
    Profile {
        /// Its name.
        profile: String,
        /// What is wrong with it.
        problems: Vec<ProfileProblem>,
    },
    /// A subject that can't be encoded.
    #[error("subject can't be encoded: {}", list(problems))]
    Subject {
        /// What is wrong with it.
        problems: Vec<ProfileProblem>,
    },
    /// The profile doesn't let requests bring names.
    #[error(
        "profile {profile} does not take names from requests; accepted: a profile with \
         allow_request_sans: true"
    )]
    NamesNotAllowed {
        /// The profile.
        profile: String,
    },
    /// More than [`MAX_NAMES`].
    #[error("{found} names requested; accepted: at most {MAX_NAMES}")]
    TooManyNames {
        /// How many, those of the CSR included.
        found: usize,
    },
    /// A DNS name that isn't certified.
    #[error("requested name {found:?}; accepted: {}", host::ACCEPTED_REQUEST_NAME)]
    Name {
        /// The name, cut to 80 characters.
        found: String,
    },
    /// An IP address that no peer can have.
    #[error("requested address {found}; accepted: an address that a peer can have")]
    Address {
        /// The address.
        found: IpAddr,
    },
    /// The same name twice in one request.
    #[error("name {name} is requested twice; accepted: each name once")]
    DuplicateName {
        /// The name.
        name: String,
    },
    /// Neither a subject nor a name (RFC 5280 §4.1.2.6).
    #[error("certificate would name nobody; accepted: a subject in the CSR, or at least one name")]
    Nameless,
    /// A CA without a subject: nothing it signs could name it (RFC 5280 §4.1.2.6).
    #[error("certification request for a CA has an empty subject; accepted: a CA with a name")]
    NamelessCa,
    /// The key isn't one that is certified.
    #[error(transparent)]
    Key(#[from] KeyPolicyError),
    /// The issuer's path length is 0: no CA may stand below it.
    #[error("issuer {issuer} has pathLenConstraint 0; accepted below it: leaf certificates only")]
    IssuerPathLen {
        /// The issuer.
        issuer: String,
    },
    /// The issuer isn't valid at the time of signing.
    #[error(
        "issuer {issuer} is valid from {} to {}, and it is {}",
        time::text(*not_before), time::text(*not_after), time::text(*now)
    )]
    IssuerNotValid {
        /// The issuer.
        issuer: String,
        /// When it begins.
        not_before: SystemTime,
        /// When it ends.
        not_after: SystemTime,
        /// The time of signing.
        now: SystemTime,
    },
    /// The certificate would outlive its issuer, and the profile's policy is `reject`.
    #[error(
        "profile {profile} would make it end at {}, after its issuer at {}; accepted: a shorter \
         validity_days, or validity_policy: cap",
        time::text(*requested), time::text(*issuer_end)
    )]
    Outlives {
        /// The profile.
        profile: String,
        /// When it would end.
        requested: SystemTime,
        /// When its issuer ends.
        issuer_end: SystemTime,
    },
    /// A root's lifetime outside its bounds.
    #[error("root of {found} years; accepted: 1 to 30")]
    Years {
        /// How many.
        found: u32,
    },
    /// A clock far off.
    #[error("it can't be {}; accepted: a clock between 1970 and 9999", time::text(*now))]
    Clock {
        /// What it says.
        now: SystemTime,
    },
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

impl PlanError {
    /// Whose matter it is.
    #[must_use]
    pub fn kind(&self) -> Refusal {
        match self {
            Self::Subject { .. }
            | Self::TooManyNames { .. }
            | Self::Name { .. }
            | Self::Address { .. }
            | Self::DuplicateName { .. }
            | Self::Nameless
            | Self::NamelessCa
            | Self::Key(_)
            | Self::Years { .. } => Refusal::Request,
            Self::Profile { .. }
            | Self::NamesNotAllowed { .. }
            | Self::IssuerPathLen { .. }
            | Self::IssuerNotValid { .. }
            | Self::Outlives { .. }
            | Self::Clock { .. } => Refusal::Policy,
        }
    }
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Capped {
                requested,
                effective,
            } => write!(
                f,
                "certificate ends at {}, with its issuer, instead of {}",
                time::text(*effective),
                time::text(*requested)
            ),
            Self::PathLenClamped {
                requested: Some(requested),
                effective,
            } => write!(
                f,
                "pathLenConstraint is {effective}, as far as the issuer's goes, instead of \
                 {requested}"
            ),
            Self::PathLenClamped {
                requested: None,
                effective,
            } => write!(
                f,
                "pathLenConstraint is {effective}, as far as the issuer's goes, instead of none"
            ),
        }
    }
}

fn list(problems: &[ProfileProblem]) -> String {
    let problems: Vec<String> = problems.iter().map(ToString::to_string).collect();
    problems.join("; ")
}
