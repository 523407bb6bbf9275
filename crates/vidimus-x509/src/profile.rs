//! Profiles: everything about a certificate but its key and its subject.

mod check;
pub(crate) mod host;
mod object_id;
pub(crate) mod san;
pub(crate) mod subject;
mod usage;

use std::net::IpAddr;

pub use self::object_id::{InvalidObjectIdentifier, ObjectIdentifier};
pub use self::usage::{ExtendedKeyUsage, KeyUsage, UnknownUsage};
pub use crate::key::KeyAlgorithm;

/// A named set of rules under which certificates are issued. Plain data; see [`Profile::check`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Profile {
    /// Unique among a node's profiles.
    pub name: String,
    /// For keys the node itself makes under this profile; not a rule for the keys it certifies.
    pub key_alg: KeyAlgorithm,
    /// Used only where the node itself makes the request.
    pub subject: SubjectFields,
    /// Days from the moment of signing; at least 1.
    pub validity_days: u32,
    /// What to do where that would outlive the issuer.
    pub validity_policy: ValidityPolicy,
    /// CA or not, and how deep.
    pub basic_constraints: BasicConstraints,
    /// keyUsage.
    pub key_usage: Vec<KeyUsage>,
    /// extKeyUsage.
    pub ext_key_usage: Vec<ExtendedKeyUsage>,
    /// Names put on every certificate.
    pub sans: StaticSans,
    /// Leaf profiles: DNS and IP names of the request and its CSR, where there are any, take the
    /// place of all of `sans`.
    pub allow_request_sans: bool,
    /// Further extensions, as they are.
    pub extra_extensions: Vec<ExtraExtension>,
}

/// A distinguished name made here; empty fields are left out.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SubjectFields {
    /// CN, at most 64 characters.
    pub common_name: String,
    /// O, at most 64 characters.
    pub organization: String,
    /// C, two letters.
    pub country: String,
    /// ST, at most 128 characters.
    pub province: String,
    /// L, at most 128 characters.
    pub locality: String,
}

/// What happens when a certificate would outlive its issuer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum ValidityPolicy {
    /// It ends with its issuer, and a warning says so.
    #[default]
    Cap,
    /// It isn't issued.
    Reject,
}

/// basicConstraints of a profile.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct BasicConstraints {
    /// A CA profile.
    pub is_ca: bool,
    /// CAs allowed below; `None` is no limit of its own. Always clamped to what the issuer grants.
    pub path_len: Option<u8>,
}

/// Names that a profile puts on every certificate.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StaticSans {
    /// DNS names; the first label may be `*`.
    pub dns: Vec<String>,
    /// IP addresses.
    pub ip: Vec<IpAddr>,
    /// Mail addresses.
    pub email: Vec<String>,
    /// URIs.
    pub uri: Vec<String>,
    /// Kerberos principals, `name[/instance]@REALM` (RFC 4556 §3.2.2).
    pub krb5_principal: Vec<String>,
    /// User principal names (Microsoft's otherName).
    pub upn: Vec<String>,
}

/// An extension that a profile adds as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExtraExtension {
    /// extnID.
    pub oid: ObjectIdentifier,
    /// critical.
    pub critical: bool,
    /// The DER inside extnValue.
    pub value: Vec<u8>,
}

/// One thing that is wrong with a profile.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field} is {found}; accepted: {accepted}")]
pub struct ProfileProblem {
    /// Where, dotted, below the profile: `ext_key_usage[1]`.
    pub field: String,
    /// What stands there.
    pub found: String,
    /// What may.
    pub accepted: String,
}

impl ExtraExtension {
    /// Whether it is a subjectAltName.
    pub(crate) fn is_names(&self) -> bool {
        self.oid == crate::oid::SUBJECT_ALT_NAME.into()
    }
}

impl StaticSans {
    /// Whether there is no name at all.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        let Self {
            dns,
            ip,
            email,
            uri,
            krb5_principal,
            upn,
        } = self;
        [dns, email, uri, krb5_principal, upn]
            .iter()
            .all(|names| names.is_empty())
            && ip.is_empty()
    }
}
