//! Verifying a peer's certificate: webpki's path building with the checks it leaves out, and what came of it kept.
//!
//! webpki takes a root as a bare name and key. It does not look at the root's dates, at its critical extensions, at whether
//! it is a CA's at all or how long a path it allows, and not at anybody's key usage; [`path`](self) looks at each. rustls drops the
//! path that a verifier built, so each connection gets a verifier of its own that leaves the result in a slot.

#![warn(clippy::indexing_slicing, clippy::arithmetic_side_effects)]

mod approve;
mod client;
#[cfg(feature = "tonic")]
mod danger;
mod explain;
pub(crate) mod facts;
mod judge;
mod path;
mod pinned;
mod refusal;
mod revocation;
mod server;
mod signatures;
mod slot;

pub(crate) use client::RootClientVerifier;
#[cfg(feature = "tonic")]
pub(crate) use danger::UnverifiedServer;
pub use judge::{Judge, JudgeError, judge, judge_client_pem};
pub use path::{Purpose, VerifiedChain};
pub(crate) use path::{check_name as name, since_epoch, verify as path_to_root};
pub use pinned::PinnedClientVerifier;
pub(crate) use pinned::PinnedConnection;
pub use refusal::{PathFault, Refusal};
pub(crate) use server::RootServerVerifier;
use signatures::handshake_signatures;
// For the project's own tests; no promise is made about it.
#[doc(hidden)]
pub use slot::HandshakeSlot;
