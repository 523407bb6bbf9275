//! The `pki` block: what this CA is, whose it is, and what it issues.

use vidimus_x509::profile::{KeyAlgorithm, Profile, SubjectFields};

use super::{
    header::{self, Role},
    profile,
    reader::Fields,
};

/// The only value of `pki.root_leaf_issuance` that lets a root issue leaves.
pub const ROOT_LEAF_ACKNOWLEDGEMENT: &str = "acknowledged-irreversible";

/// Every key algorithm with its word in a config.
pub(super) const KEY_ALGORITHMS: [(&str, KeyAlgorithm); 3] = [
    ("ECDSA-P384", KeyAlgorithm::EcdsaP384),
    ("RSA-3072", KeyAlgorithm::Rsa3072),
    ("RSA-4096", KeyAlgorithm::Rsa4096),
];

/// Blocks and fields of protocols that a later version brings.
const LATER: [&str; 9] = [
    "est",
    "scep",
    "tsa",
    "revocation_base_url",
    "allow_unverified_revocation_url",
    "crl_next_update_hours",
    "revocation_http_port",
    "allow_unsynced_clock",
    "name_constraints",
];

/// What this CA is and what it issues.
#[derive(Debug, Clone, PartialEq)]
pub struct Pki {
    /// `root_key_alg`: the algorithm of this CA's own key, on every role.
    pub key_algorithm: KeyAlgorithm,
    /// `root_subject`: this CA's own name, on every role.
    pub subject: SubjectFields,
    /// `root_validity_years`: 1 to 30 on a root, without meaning elsewhere.
    pub root_validity_years: Option<u32>,
    /// `path_len_constraint`: accepted for the appliance's files and applied nowhere, as there; a subordinate's limit
    /// is its parent's profile.
    pub path_len_constraint: u32,
    /// `root_leaf_issuance`, as written.
    pub root_leaf_issuance: String,
    /// `parent`: whom this CA's own chain must lead to; `None` on a root.
    pub parent: Option<Parent>,
    /// `profiles`, in the order of the file.
    pub profiles: Vec<Profile>,
}

impl Pki {
    /// Whether a root may issue leaves.
    #[must_use]
    pub fn acknowledges_root_leaves(&self) -> bool {
        self.root_leaf_issuance == ROOT_LEAF_ACKNOWLEDGEMENT
    }

    /// The profile of this name.
    #[must_use]
    pub fn find_profile(&self, name: &str) -> Option<&Profile> {
        self.profiles.iter().find(|profile| profile.name == name)
    }
}

/// The one anchor of this CA's own chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Parent {
    /// `ca_cert_pem`: the certificate, as DER.
    Certificate(Vec<u8>),
    /// `ca_cert_sha256`: the SHA-256 of a certificate that the offered chain contains.
    Sha256([u8; 32]),
}

pub(super) fn read(mut block: Fields<'_>, role: Option<Role>) -> Option<Pki> {
    refuse_later_features(&mut block, role);
    let key_algorithm = block.required_word("root_key_alg", &KEY_ALGORITHMS);
    let subject = own_subject(&mut block);
    let years = root_validity_years(&mut block, role);
    let path_len_constraint = block.number("path_len_constraint", 0..=5).unwrap_or(0);
    let root_leaf_issuance = block
        .text("root_leaf_issuance")
        .map(|text| text.value.to_owned())
        .unwrap_or_default();
    let parent = parent(&mut block, role);
    let profiles = profile::read(&mut block);
    block.finish();
    Some(Pki {
        key_algorithm: key_algorithm?,
        subject: subject?,
        root_validity_years: years,
        path_len_constraint,
        root_leaf_issuance,
        parent,
        profiles,
    })
}

fn refuse_later_features(block: &mut Fields<'_>, role: Option<Role>) {
    let accepted = match role {
        Some(Role::Root) => "nothing here: a root never serves ACME",
        Some(Role::Intermediate | Role::Issuing) | None => {
            "nothing here: not supported by this version"
        }
    };
    block.refuse_if_present("acme", "an ACME block", accepted);
    for name in LATER {
        block.refuse_if_present(
            name,
            "a feature of a later version",
            "nothing here: not supported by this version",
        );
    }
}

fn own_subject(block: &mut Fields<'_>) -> Option<SubjectFields> {
    let Some(mut subject) = block.block("root_subject") else {
        if block.lacks("root_subject") {
            block.missing("root_subject.common_name", "this CA's name");
        }
        return None;
    };
    let common_name = subject.required_text("common_name", "this CA's name");
    let fields = profile::subject_fields(&mut subject);
    subject.finish();
    common_name.map(|_| fields)
}

fn root_validity_years(block: &mut Fields<'_>, role: Option<Role>) -> Option<u32> {
    let (range, required) = match role {
        Some(Role::Root) => (1..=30, true),
        Some(Role::Intermediate | Role::Issuing) | None => (0..=u32::MAX, false),
    };
    let years = block.number("root_validity_years", range);
    if required && block.lacks("root_validity_years") {
        block.missing("root_validity_years", "a whole number from 1 to 30");
    }
    years
}

fn parent(block: &mut Fields<'_>, role: Option<Role>) -> Option<Parent> {
    if role == Some(Role::Root) {
        block.refuse_if_present(
            "parent",
            "a parent on a root",
            "nothing here: a root signs itself",
        );
        return None;
    }
    let Some(mut parent) = block.block("parent") else {
        if role.is_some() && block.lacks("parent") {
            block.missing(
                "parent",
                "ca_cert_pem or ca_cert_sha256 of the CA that this node's chain must lead to",
            );
        }
        return None;
    };
    let pem = parent.text("ca_cert_pem");
    let sha256 = parent.text("ca_cert_sha256");
    let anchor = match (&pem, &sha256) {
        (Some(_), Some(sha256)) => {
            parent.refuse(
                sha256,
                "a digest beside ca_cert_pem",
                "exactly one of ca_cert_pem and ca_cert_sha256",
            );
            None
        }
        (Some(pem), None) => header::one_certificate(&parent, pem).map(Parent::Certificate),
        (None, Some(sha256)) => header::sha256_of(&parent, sha256).map(Parent::Sha256),
        (None, None) => {
            parent.missing("ca_cert_sha256", "ca_cert_pem or ca_cert_sha256");
            None
        }
    };
    parent.finish();
    anchor
}
