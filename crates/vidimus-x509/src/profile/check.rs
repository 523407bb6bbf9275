//! What makes a profile unusable.

use std::collections::HashSet;

use super::{ExtraExtension, KeyUsage, Profile, ProfileProblem};
use crate::{asn1, oid, san};

/// The most entries that any list of a profile may have.
const MAX_ENTRIES: usize = 100;

/// The most bytes that an extra extension may have.
const MAX_EXTENSION: usize = 8 * 1024;

impl Profile {
    /// Every problem of this profile at once.
    ///
    /// # Errors
    /// The problems, where there are any.
    pub fn check(&self) -> Result<(), Vec<ProfileProblem>> {
        let mut problems = Vec::new();
        if self.name.is_empty() {
            problems.push(problem("name", "empty", "a name"));
        }
        if self.validity_days == 0 {
            problems.push(problem("validity_days", "0", "at least 1"));
        }
        problems.extend(self.subject.problems("subject"));
        self.check_kind(&mut problems);
        self.check_usages(&mut problems);
        self.check_lengths(&mut problems);
        problems.extend(self.sans.problems());
        self.check_extensions(&mut problems);
        if problems.is_empty() {
            Ok(())
        } else {
            Err(problems)
        }
    }

    /// A leaf can't sign certificates, a CA can (RFC 5280 §4.2.1.3, §4.2.1.9).
    fn check_kind(&self, problems: &mut Vec<ProfileProblem>) {
        let cert_sign = self.key_usage.contains(&KeyUsage::CertSign);
        if self.basic_constraints.is_ca {
            if !cert_sign {
                let found = "without cert_sign on a CA profile";
                problems.push(problem(
                    "key_usage",
                    found,
                    "cert_sign among the usages of a CA",
                ));
            }
            if self.allow_request_sans {
                let found = "true on a CA profile";
                problems.push(problem(
                    "allow_request_sans",
                    found,
                    "true on leaf profiles only",
                ));
            }
            return;
        }
        if cert_sign {
            let accepted = "cert_sign on profiles with basic_constraints.is_ca: true only";
            problems.push(problem(
                "key_usage",
                "cert_sign on a leaf profile",
                accepted,
            ));
        }
        if let Some(path_len) = self.basic_constraints.path_len {
            let found = format!("{path_len} on a leaf profile");
            let accepted = "a path length on profiles with basic_constraints.is_ca: true only";
            problems.push(problem("basic_constraints.path_len", &found, accepted));
        }
    }

    fn check_usages(&self, problems: &mut Vec<ProfileProblem>) {
        let accepted = "each usage once";
        let mut seen = HashSet::new();
        for (index, usage) in self.key_usage.iter().enumerate() {
            if !seen.insert(usage) {
                let field = format!("key_usage[{index}]");
                problems.push(problem(&field, &format!("{usage} again"), accepted));
            }
        }
        let mut seen = HashSet::new();
        for (index, usage) in self.ext_key_usage.iter().enumerate() {
            if !seen.insert(usage.oid()) {
                let field = format!("ext_key_usage[{index}]");
                problems.push(problem(&field, &format!("{usage} again"), accepted));
            }
        }
    }

    fn check_lengths(&self, problems: &mut Vec<ProfileProblem>) {
        for (field, length) in [
            ("ext_key_usage", self.ext_key_usage.len()),
            ("sans.dns", self.sans.dns.len()),
            ("sans.ip", self.sans.ip.len()),
            ("sans.email", self.sans.email.len()),
            ("sans.uri", self.sans.uri.len()),
            ("sans.krb5_principal", self.sans.krb5_principal.len()),
            ("sans.upn", self.sans.upn.len()),
            ("extra_extensions", self.extra_extensions.len()),
        ] {
            if length > MAX_ENTRIES {
                let found = format!("{length} entries");
                problems.push(problem(field, &found, "at most 100 entries"));
            }
        }
    }

    fn check_extensions(&self, problems: &mut Vec<ProfileProblem>) {
        let mut seen = HashSet::new();
        for (index, extension) in self.extra_extensions.iter().enumerate() {
            let field = format!("extra_extensions[{index}]");
            if !seen.insert(&extension.oid) {
                let found = format!("{} again", extension.oid);
                problems.push(problem(
                    &format!("{field}.oid"),
                    &found,
                    "each extension once",
                ));
            }
            if self.makes(extension) {
                let found = format!("{}, which this profile makes itself", extension.oid);
                let accepted = "an extension that isn't made from another field of the profile";
                problems.push(problem(&format!("{field}.oid"), &found, accepted));
            }
            let value = &extension.value;
            if value.len() > MAX_EXTENSION {
                let found = format!("{} bytes", value.len());
                problems.push(problem(
                    &format!("{field}.value"),
                    &found,
                    "at most 8192 bytes",
                ));
            } else if let Err(fault) = asn1::check_well_formed(value) {
                let accepted = "exactly one DER element";
                problems.push(problem(
                    &format!("{field}.value"),
                    &fault.to_string(),
                    accepted,
                ));
            } else if extension.is_names()
                && let Err(fault) = san::read(value)
            {
                let accepted = "general names";
                problems.push(problem(
                    &format!("{field}.value"),
                    &fault.to_string(),
                    accepted,
                ));
            }
        }
    }

    /// Whether the profile's other fields already make this extension.
    fn makes(&self, extension: &ExtraExtension) -> bool {
        let is = |known: const_oid::ObjectIdentifier| extension.oid == known.into();
        let always = [
            oid::BASIC_CONSTRAINTS,
            oid::KEY_USAGE,
            oid::SUBJECT_KEY_ID,
            oid::AUTHORITY_KEY_ID,
        ];
        always.into_iter().any(is)
            || (is(oid::EXT_KEY_USAGE) && !self.ext_key_usage.is_empty())
            || (extension.is_names() && (self.allow_request_sans || !self.sans.is_empty()))
    }
}

fn problem(field: &str, found: &str, accepted: &str) -> ProfileProblem {
    ProfileProblem {
        field: field.to_owned(),
        found: found.to_owned(),
        accepted: accepted.to_owned(),
    }
}
