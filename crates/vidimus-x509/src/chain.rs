//! Chains: put in order, and checked link by link.

use std::time::SystemTime;

use crate::cert::Certificate;

/// Why a chain was refused. Positions count from 1, the first certificate being the one nearest the leaf.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ChainError {
    /// There is no certificate.
    #[error("the chain is empty")]
    Empty,
}

/// The leaf, then each issuer that `others` has for the one before, by name, key identifier and signature.
///
/// Ends at a self-signed certificate (which is included) or where no issuer is found. Certificates that don't
/// belong are left out.
#[must_use]
pub fn order<'a>(leaf: &'a Certificate, others: &'a [Certificate]) -> Vec<&'a Certificate> {
    let _ = others;
    vec![leaf]
}

/// Checks a CA's chain, its own certificate first, up to one pinned anchor.
///
/// Each must be a CA with `keyCertSign`, valid at `now`, signed by the next, its issuer's name equal byte for byte,
/// within every path length above it; the last must be signed by the anchor or be the anchor itself.
///
/// # Errors
/// The first link that doesn't hold.
pub fn verify_ca_chain(
    chain_der: &[&[u8]],
    anchor_der: &[u8],
    now: SystemTime,
) -> Result<(), ChainError> {
    let _ = (chain_der, anchor_der, now);
    todo!()
}
