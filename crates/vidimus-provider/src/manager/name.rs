//! The name that a provider's server certificate must carry.

use std::fmt::{self, Display, Formatter};

const PREFIX: &str = "virtrigaud-provider";
/// RFC 1035 §2.3.4.
const MAX_LABEL: usize = 63;

/// A Provider's namespace and name, from which the names of its Service follow.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ProviderName {
    namespace: String,
    name: String,
}

/// Why there can be no Service for a Provider.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// One of the two has a character that a DNS label can't have.
    #[error(
        "{field} {found:?} is no DNS label; accepted: lower-case letters, digits and inner hyphens"
    )]
    NotALabel {
        /// `namespace` or `name`.
        field: &'static str,
        /// What it is.
        found: String,
    },
    /// Together they don't fit the Service's name.
    #[error("Service name {found:?} has {} characters; accepted: up to {MAX_LABEL}, so namespace and name together up to 42", found.len())]
    TooLong {
        /// The Service's name.
        found: String,
    },
}

impl ProviderName {
    /// Checks both parts and their length together.
    ///
    /// # Errors
    ///
    /// No Kubernetes Service could have the name that follows.
    pub fn new(namespace: impl Into<String>, name: impl Into<String>) -> Result<Self, NameError> {
        let (namespace, name) = (namespace.into(), name.into());
        for (field, found) in [("namespace", &namespace), ("name", &name)] {
            if !is_label(found) {
                return Err(NameError::NotALabel {
                    field,
                    found: found.clone(),
                });
            }
        }
        let this = Self { namespace, name };
        let service = this.service();
        if service.len() > MAX_LABEL {
            return Err(NameError::TooLong { found: service });
        }
        Ok(this)
    }

    /// The namespace.
    #[must_use]
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// The Provider's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// `virtrigaud-provider-<namespace>-<name>`.
    #[must_use]
    pub fn service(&self) -> String {
        format!("{PREFIX}-{}-{}", self.namespace, self.name)
    }

    /// `<service>.<namespace>.svc.cluster.local`: what the certificate must be for.
    #[must_use]
    pub fn server_name(&self) -> String {
        format!("{}.{}.svc.cluster.local", self.service(), self.namespace)
    }
}

impl Display for ProviderName {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

fn is_label(text: &str) -> bool {
    !text.is_empty()
        && !text.starts_with('-')
        && !text.ends_with('-')
        && text
            .bytes()
            .all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-'))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// V4.
    #[test]
    fn the_server_name_follows_from_namespace_and_name() {
        let name = ProviderName::new("virtrigaud-system", "provider-vsphere-prod").unwrap();
        assert_eq!(
            name.server_name(),
            "virtrigaud-provider-virtrigaud-system-provider-vsphere-prod.virtrigaud-system.svc.cluster.local"
        );
    }

    /// V4.
    #[test]
    fn names_that_no_service_could_have_are_refused() {
        for (namespace, name) in [
            ("a", "b.c"),
            ("A", "b"),
            ("", "b"),
            ("a", "-b"),
            ("a", "b-"),
        ] {
            let error = ProviderName::new(namespace, name).unwrap_err();
            assert!(matches!(error, NameError::NotALabel { .. }), "{error}");
        }
        let fits = ProviderName::new("n".repeat(20), "p".repeat(22)).unwrap();
        assert_eq!(fits.service().len(), MAX_LABEL);
        let error = ProviderName::new("n".repeat(20), "p".repeat(23)).unwrap_err();
        assert!(matches!(error, NameError::TooLong { .. }));
    }
}
