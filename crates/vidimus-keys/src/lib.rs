//! Signers: where private keys live. For now a key in an encrypted file.
//!
//! Nothing here is printed, cloned or logged: secrets have types without `Display`, with a `Debug`
//! that shows nothing, and are wiped when they go.

pub mod file;
mod private;
pub mod secret;

pub use private::PrivateFileError;
pub use secret::Secret;
