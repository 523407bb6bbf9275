//! Signers: where CA keys live. For now the encrypted key file.

pub mod file;
pub mod secret;

pub use secret::Secret;
