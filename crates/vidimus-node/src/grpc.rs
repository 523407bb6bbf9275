//! The management API, `vidimus.node.v1`: over mutual TLS for the pinned administrator, over a UNIX socket for the owner of
//! the process, and in this process for offline commands. All three end in the same methods.
//!
//! Who may call is checked by the listener's verifier and once more by every method. Every call but `GetStatus` and
//! `GetIdentity` has its audit entry before it is answered; if that can't be written, the call fails.

mod access;
mod convert;
mod local;
mod read;
mod service;
mod status;
#[cfg(test)]
mod tests;

use std::{sync::Arc, time::SystemTime};

pub use local::LocalService;

pub(crate) use access::InProcess;
pub(crate) use status::RpcError;

use crate::node::Node;

/// The service over one node. Clones are the same service.
#[derive(Debug, Clone)]
pub(crate) struct Rpc {
    node: Arc<Node>,
    started_at: SystemTime,
}

impl Rpc {
    pub(crate) fn new(node: Arc<Node>) -> Self {
        let started_at = node.service().now();
        Self { node, started_at }
    }
}
