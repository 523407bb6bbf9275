//! Our own servers, as a user starts them.

use std::path::Path;

use anyhow::bail;

use crate::{build::Programs, server::Server};

/// A running issuing node.
pub(crate) struct Node {
    pub(crate) server: Server,
    /// What the client program must be told to call it.
    pub(crate) client_args: Vec<String>,
}

/// A root with an issuing CA below it, and the issuing node running.
pub(crate) fn issuing(programs: &Programs, dir: &Path) -> anyhow::Result<Node> {
    bail!("TODO {programs:?} {dir:?}")
}

/// The in-memory provider with the material of one key type.
pub(crate) fn provider(programs: &Programs, material: &Path) -> anyhow::Result<Server> {
    bail!("TODO {programs:?} {material:?}")
}
