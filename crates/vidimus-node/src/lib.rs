//! The CA node: config, ceremony, issuing, management API.
//!
//! [`config`] reads the machine config; [`ceremony`] makes a node in a data directory; [`Node`] is that directory, opened
//! by one process, with the one [`issuing`] path that every door uses; [`run`](mod@run) is the program, with the management
//! API `vidimus.node.v1`.

mod applying;
mod call;
pub mod ceremony;
pub mod config;
pub mod data;
mod grpc;
mod identity;
pub mod issuing;
mod management;
mod node;
mod rotation;
pub mod run;
#[cfg(test)]
mod testing;
mod time;

pub use applying::{Applied, ApplyError};
pub use call::Call;
pub use data::DataDir;
pub use grpc::LocalService;
pub use identity::{CaIdentity, ChainRefused};
pub use management::ManagementError;
pub use node::{Node, OpenError};
pub use rotation::RotationError;
