//! Certification requests for keys of ours (RFC 2986).

use super::{PlanError, RequestNames, names};
use crate::{
    asn1::{context, write},
    oid,
    profile::SubjectFields,
    signer::{self, SignError, SignatureAlgorithm, Signer},
};

/// Why no request was made.
#[derive(Debug, thiserror::Error)]
pub enum RequestError {
    /// The subject or a name can't be encoded, or the key isn't one that is certified.
    #[error(transparent)]
    Names(#[from] PlanError),
    /// The key failed.
    #[error(transparent)]
    Sign(#[from] SignError),
}

/// A certification request for a key of ours, DER, checked under that key.
///
/// # Errors
/// The key failed, or the subject or a name can't be encoded.
pub fn request(
    subject: &SubjectFields,
    names: &RequestNames,
    signer: &dyn Signer,
) -> Result<Vec<u8>, RequestError> {
    let problems = subject.problems("subject");
    if !problems.is_empty() {
        return Err(PlanError::Subject { problems }.into());
    }
    let names = names::requested([&[], &names.dns], [&[], &names.ip])?;
    let algorithm = SignatureAlgorithm::of_key(signer.spki_der()).map_err(PlanError::Key)?;
    let info = write::sequence(&[
        &write::unsigned(&[0]),
        &subject.to_der(),
        signer.spki_der(),
        &write::element(context(0), &[&extension_request(&names.der)]),
    ]);
    let der = signer::seal(&info, algorithm, signer)?;
    signer::check_seal(&der, signer.spki_der())?;
    Ok(der)
}

/// The attribute with the names (RFC 2985 §5.4.2), or nothing where there are none.
fn extension_request(names: &[u8]) -> Vec<u8> {
    if names.is_empty() {
        return Vec::new();
    }
    let san = write::sequence(&[
        &write::oid(&oid::SUBJECT_ALT_NAME),
        &write::octet_string(&write::sequence(&[names])),
    ]);
    let extensions = write::set_of_one(&write::sequence(&[&san]));
    write::sequence(&[&write::oid(&oid::EXTENSION_REQUEST), &extensions])
}
