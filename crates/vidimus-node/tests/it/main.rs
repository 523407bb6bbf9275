//! What the node promises: config, ceremony, issuing, management API.

#[cfg(test)]
mod config;
