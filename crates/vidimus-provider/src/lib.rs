//! `provider.v1`: the server kit, the manager's client and an in-memory provider.

pub mod health;
pub mod manager;
pub mod memory;
pub mod posture;
pub mod server;
