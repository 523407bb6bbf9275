//! Who asks for what: goes into the audit log whatever the answer is.

use vidimus_audit::entry::{Draft, Outcome};

/// One call of one method, by whichever door it came.
#[derive(Debug, Clone)]
pub struct Call {
    /// The caller's verified subject; empty on the local socket and for offline commands.
    pub actor_subject: String,
    /// Who asked, as it stands in the issued set: `admin`, `local`, `node`.
    pub requester: &'static str,
    /// The full method name.
    pub method: &'static str,
    /// SHA-256 of the request's encoding.
    pub request_digest_sha256: Option<[u8; 32]>,
}

impl Call {
    /// A command on this machine that opened the data directory itself.
    #[must_use]
    pub fn local(method: &'static str) -> Self {
        Self {
            actor_subject: String::new(),
            requester: "local",
            method,
            request_digest_sha256: None,
        }
    }

    /// Something the node does by itself.
    #[must_use]
    pub(crate) fn node(method: &'static str) -> Self {
        Self {
            requester: "node",
            ..Self::local(method)
        }
    }

    /// The audit entry of this call.
    #[must_use]
    pub fn draft(&self, outcome: Outcome) -> Draft {
        let mut draft = Draft::new(self.actor_subject.clone(), self.method, outcome);
        draft.request_digest_sha256 = self.request_digest_sha256;
        draft
    }
}
