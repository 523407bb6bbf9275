//! Certificates that a key signs for itself.

use std::time::SystemTime;

use super::{
    Plan, PlanError,
    tbs::{Extensions, Subject},
    validity::Validity,
};
use crate::{
    key::key_id,
    name,
    profile::{BasicConstraints, ExtendedKeyUsage, KeyUsage, SubjectFields},
    serial::Serial,
    signer::SignatureAlgorithm,
};

/// A root's own certificate, unsigned: keyUsage, basicConstraints without a path length (depth is
/// bounded below it), key identifiers, no more.
///
/// # Errors
/// A subject that can't be encoded or is empty, a key the policy refuses, or not 1 to 30 years.
pub fn root_plan(
    subject: &SubjectFields,
    spki_der: &[u8],
    years: u32,
    now: SystemTime,
    serial: Serial,
) -> Result<Plan, PlanError> {
    if !(1..=30).contains(&years) {
        return Err(PlanError::Years { found: years });
    }
    let mut extensions = Extensions::default();
    extensions.basic_constraints(BasicConstraints {
        is_ca: true,
        path_len: None,
    });
    extensions.key_usage(&[KeyUsage::CertSign, KeyUsage::CrlSign]);
    let validity = Validity::of_years(years, now)?;
    self_signed(subject, spki_der, extensions, validity, serial)
}

/// A client certificate that stands for itself, to be pinned by its fingerprint: an
/// administrator's.
///
/// # Errors
/// As [`root_plan`], but for the years.
pub fn self_signed_client_plan(
    subject: &SubjectFields,
    spki_der: &[u8],
    days: u32,
    now: SystemTime,
    serial: Serial,
) -> Result<Plan, PlanError> {
    let mut extensions = Extensions::default();
    extensions.basic_constraints(BasicConstraints::default());
    extensions.key_usage(&[KeyUsage::DigitalSignature]);
    extensions.ext_key_usage(&[ExtendedKeyUsage::ClientAuth]);
    let validity = Validity::of_days(days, now)?;
    self_signed(subject, spki_der, extensions, validity, serial)
}

fn self_signed(
    subject: &SubjectFields,
    spki_der: &[u8],
    mut extensions: Extensions,
    validity: Validity,
    serial: Serial,
) -> Result<Plan, PlanError> {
    let problems = subject.problems("subject");
    if !problems.is_empty() {
        return Err(PlanError::Subject { problems });
    }
    let name_der = subject.to_der();
    let name_text = name::text_of_der(&name_der);
    if name_text.is_empty() {
        return Err(PlanError::NamelessCa);
    }
    let algorithm = SignatureAlgorithm::of_key(spki_der)?;
    let key_id = key_id(spki_der);
    extensions.key_ids(&key_id, &key_id);
    let subject = Subject {
        name_der: &name_der,
        name_text: &name_text,
        spki_der,
        key_id,
    };
    Ok(Plan::self_signed(
        algorithm,
        &subject,
        &extensions,
        validity,
        serial,
    ))
}
