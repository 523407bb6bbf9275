//! Which names a certificate gets.

use std::{collections::HashSet, net::IpAddr};

use super::{MAX_NAMES, PlanError, RequestNames};
use crate::{
    csr::VerifiedCsr,
    profile::{Profile, host},
};

use crate::profile::san::GeneralNames;

/// The names of the request and its CSR where the profile allows them and there are any, in place
/// of all the profile's own; otherwise the profile's own.
///
/// A name that can't be certified is refused, never left out: a certificate without it would fail
/// later and elsewhere.
pub(super) fn general_names(
    profile: &Profile,
    csr: &VerifiedCsr,
    request: &RequestNames,
) -> Result<GeneralNames, PlanError> {
    if !profile.allow_request_sans {
        if request.dns.is_empty() && request.ip.is_empty() {
            return Ok(profile.sans.general_names());
        }
        return Err(PlanError::NamesNotAllowed {
            profile: profile.name.clone(),
        });
    }
    let found =
        request.dns.len() + request.ip.len() + csr.dns_names().len() + csr.ip_addresses().len();
    if found > MAX_NAMES {
        return Err(PlanError::TooManyNames { found });
    }
    let names = requested(
        [csr.dns_names(), &request.dns],
        [csr.ip_addresses(), &request.ip],
    )?;
    if names.texts.is_empty() {
        return Ok(profile.sans.general_names());
    }
    Ok(names)
}

/// Names of two sources: one twice in the same source is an error, one in both is one name.
pub(super) fn requested(
    dns: [&[String]; 2],
    ip: [&[IpAddr]; 2],
) -> Result<GeneralNames, PlanError> {
    let mut names = GeneralNames::default();
    for source in dns {
        let mut seen = HashSet::new();
        for name in source {
            let certified = host::normalize_request_name(name).ok_or_else(|| PlanError::Name {
                found: name.chars().take(80).collect(),
            })?;
            names.dns(&certified);
            if let Some(name) = seen.replace(certified) {
                return Err(PlanError::DuplicateName { name });
            }
        }
    }
    for source in ip {
        let mut seen = HashSet::new();
        for &address in source {
            let certified = host::normalize_ip(address);
            if host::is_no_peer(certified) {
                return Err(PlanError::Address { found: address });
            }
            names.ip(certified);
            if !seen.insert(certified) {
                let name = certified.to_string();
                return Err(PlanError::DuplicateName { name });
            }
        }
    }
    Ok(names)
}
