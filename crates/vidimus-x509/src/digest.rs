//! SHA-256.

use aws_lc_rs::digest::{SHA256, digest};

pub(crate) fn sha256(bytes: &[u8]) -> [u8; 32] {
    let digest = digest(&SHA256, bytes);
    let digest = digest.as_ref().first_chunk();
    *digest.expect("SHA-256 has 32 bytes")
}
