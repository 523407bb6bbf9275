//! Whether the process's own certificate leads to its own roots: the usual sign of files that don't belong together.

use std::time::SystemTime;

use crate::material::{Material, Usage};
use crate::verify::{self, Purpose};

/// Warns if a peer with the same roots and lists would refuse the certificate. Never a reason to refuse either unit: in a
/// rotation one comes before the other, and peers may have other roots.
pub(super) fn warn(material: &Material, usage: Usage, now: SystemTime) {
    let purposes: &[Purpose] = match usage {
        Usage::Both => &[Purpose::Server, Purpose::Client],
        Usage::Client => &[Purpose::Client],
        Usage::Server => &[Purpose::Server],
    };
    let Some((leaf, above)) = material.identity().chain().split_first() else {
        return;
    };
    let at = verify::since_epoch(now);
    let verified =
        |purpose: &Purpose| verify::path_to_root(material.trust(), leaf, above, at, *purpose).err();
    // What is wrong for one purpose is mostly wrong for the other.
    if let Some(refusal) = purposes.iter().find_map(verified) {
        tracing::warn!(
            generation = material.generation(),
            error = %refusal,
            "peers with the same roots would refuse the certificate in use; it is used all the same"
        );
    }
}
