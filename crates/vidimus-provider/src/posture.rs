//! VirtRigaud's values for the decision between mutual TLS and plaintext.

use std::path::Path;

use vidimus_tls::posture::PostureRule;

/// Where a provider pod finds `tls.crt`, `tls.key` and `ca.crt`.
pub const TLS_DIRECTORY: &str = "/etc/virtrigaud/tls";

/// The variable whose value `true` lets a provider without these files serve plaintext.
pub const INSECURE_VARIABLE: &str = "VIRTRIGAUD_PROVIDER_INSECURE";

/// The variable with the comma-separated names that may call; empty or absent lets every
/// certificate of the CA call.
pub const ALLOWED_SANS_VARIABLE: &str = "VIRTRIGAUD_PROVIDER_ALLOWED_SANS";

/// The rule for files in `directory`; [`TLS_DIRECTORY`] in a pod.
pub fn rule(directory: impl AsRef<Path>) -> PostureRule {
    PostureRule {
        directory: directory.as_ref().to_path_buf(),
        variable: INSECURE_VARIABLE,
        missing: missing_text,
    }
}

/// VirtRigaud's own sentence, byte for byte: people and tests search their logs for it.
fn missing_text(directory: &Path) -> String {
    let directory = directory.display();
    format!(
        "TLS material missing at {directory} and {INSECURE_VARIABLE} is not set to \"true\"; \
         either provision {directory}/{{tls.crt,tls.key,ca.crt}} or set {INSECURE_VARIABLE}=true \
         to opt into plaintext (audit-flagged)"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// V7.
    #[test]
    fn the_sentence_is_virtrigauds_byte_for_byte() {
        assert_eq!(
            missing_text(Path::new(TLS_DIRECTORY)),
            "TLS material missing at /etc/virtrigaud/tls and VIRTRIGAUD_PROVIDER_INSECURE is not set to \"true\"; either provision /etc/virtrigaud/tls/{tls.crt,tls.key,ca.crt} or set VIRTRIGAUD_PROVIDER_INSECURE=true to opt into plaintext (audit-flagged)"
        );
    }
}
