//! What weakens security, kept under a name that says so.

/// Asks a client to take any server certificate. For development only.
///
/// The connection is still TLS 1.3, the client's own certificate is still presented, and the server still has to prove
/// that it holds the key of the certificate it shows; but anybody in the path can be that server.
#[derive(Clone, Copy, Debug)]
pub struct InsecureServerVerification(());

impl InsecureServerVerification {
    /// Says that the server's identity doesn't matter.
    #[must_use]
    pub fn accept_any_server_certificate() -> Self {
        Self(())
    }
}
