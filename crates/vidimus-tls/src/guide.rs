//! Complete programs, each of which is run by the tests of this crate.
//!
//! # A tonic server
//!
//! ```no_run
#![doc = include_str!("../examples/tonic_server.rs")]
//! ```
//!
//! # A tonic client
//!
//! ```no_run
#![doc = include_str!("../examples/tonic_client.rs")]
//! ```
//!
//! # An axum server
//!
//! ```no_run
#![doc = include_str!("../examples/axum_server.rs")]
//! ```
//!
//! # A UNIX socket
//!
//! ```no_run
#![doc = include_str!("../examples/unix_socket.rs")]
//! ```
//!
//! # Kubernetes
//!
//! ```no_run
#![doc = include_str!("../examples/kubernetes.rs")]
//! ```
