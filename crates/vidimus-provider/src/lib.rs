//! provider.v1: server kit, manager client and an in-memory provider.

pub mod memory;
