//! What a quickstart did, for people and programs.

use serde::Serialize;

/// The last line of stdout with `-o json`. The field names are a contract.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Report {
    /// Unary calls of `provider.v1` that were answered or failed.
    pub(crate) calls: u64,
    pub(crate) calls_failed: u64,
    /// Streams of `grpc.health.v1` that were opened.
    pub(crate) streams: u64,
    /// Streams that ended otherwise than by the manager's own will.
    pub(crate) streams_failed: u64,
    pub(crate) leaf_rotations: u64,
    pub(crate) ca_rotations: u64,
    /// Generations of TLS material that new connections were served with, both ends together.
    pub(crate) generations_served: u64,
    pub(crate) seconds: f64,
}

impl Report {
    /// Whether everything went well enough for exit code 0.
    pub(crate) fn clean(&self) -> bool {
        self.calls > 0 && self.calls_failed == 0 && self.streams > 0 && self.streams_failed == 0
    }
}
