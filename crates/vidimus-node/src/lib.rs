//! The CA node: config, ceremony, issuing, management API.

pub mod config;
