//! Where a running node listens.

use std::{fs, net::SocketAddr, path::PathBuf};

use serde::{Deserialize, Serialize};
use vidimus_fs::{
    Mode,
    durable::{self, WriteError},
};

use crate::data::DataDir;

/// Where a running node listens; what `endpoints.json` holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Endpoints {
    /// The process.
    pub pid: u32,
    /// The management API over mutual TLS.
    pub management: SocketAddr,
    /// The management API for the owner of the process.
    pub socket: PathBuf,
    /// Health, metrics and status: an address, or `unix:` and a path.
    pub admin: String,
}

/// Removes the file when the node has stopped.
#[derive(Debug)]
pub(super) struct Published(PathBuf);

impl Drop for Published {
    fn drop(&mut self) {
        // What stays after a crash names a process that is gone.
        let _best_effort = fs::remove_file(&self.0);
    }
}

impl Endpoints {
    /// Writes the file and says so in the log.
    pub(super) fn publish(&self, data: &DataDir) -> Result<Published, WriteError> {
        let path = data.endpoints();
        let text = serde_json::json!(self).to_string();
        durable::write(&path, text.as_bytes(), Mode::Private)?;
        tracing::info!(socket = %self.socket.display(), admin = self.admin, "management API on {}", self.management);
        Ok(Published(path))
    }
}
