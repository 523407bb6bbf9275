//! Reloadable mutual TLS for tonic, hyper and axum servers and clients.
//!
//! - [`posture`]: how a listener protects itself, decided once at start and closed by default.
//! - [`material`] and [`watch`]: certificate, key and roots, checked as a whole and replaced while the process runs.
//! - [`config`] and [`verify`]: the one rustls configuration, and how peers are verified.
//! - [`identity`] and [`policy`]: who the peer is, and whether it may call.
//! - [`server`]: accepts, serves and drains connections, and knows each of them.
//! - [`events`]: what happens to connections and material, as a stream for programs.
//! - [`peers`]: who is connected under which root, for an admin page.
//! - [`channel`]: the client side, for tonic's generated clients.
//!
//! **Invariant:** nothing is decided by a certificate that was not verified on this very connection: there is no
//! resumption, no early data, and a connection whose verifier left no result is refused.
//!
//! **Invariant:** no task is detached. Background work is a future that the caller runs, or a task that a channel owns and
//! aborts when it is dropped.

#[cfg(feature = "tonic")]
pub mod channel;
pub mod check;
pub mod clock;
pub mod config;
#[cfg(feature = "tonic")]
pub mod danger;
pub mod events;
#[cfg(feature = "axum")]
mod extract;
#[doc(hidden)]
pub mod fuzzing;
pub mod identity;
pub mod material;
#[cfg(feature = "metrics")]
pub mod metrics;
pub mod peers;
pub mod policy;
pub mod posture;
pub mod runtime;
pub mod server;
pub mod verify;
pub mod watch;
