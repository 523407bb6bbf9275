//! Reloadable mutual TLS for tonic, hyper and axum servers and tonic clients.
//!
//! Certificate, key, roots and revocation lists are followed while the process runs. New ones are checked as a whole before
//! they are used: the last good set stays, and a fault is said once. A client's calls move to new connections and none is
//! lost; a server ends the connections of peers whose root left, whose certificate was revoked or expired, or who fell off
//! the allow-list, and nobody else's.
//!
//! ```no_run
//! use vidimus_tls::material::{MaterialFiles, Usage};
//! use vidimus_tls::policy::AllowList;
//! use vidimus_tls::runtime::Runtime;
//! use vidimus_tls::server::{Security, Server};
//! use vidimus_tls::watch::WatchOptions;
//!
//! # async fn example(routes: tonic::service::Routes, stop: tokio_util::sync::CancellationToken)
//! # -> Result<(), Box<dyn std::error::Error>> {
//! let mut runtime = Runtime::new();
//! let files = MaterialFiles::in_dir("/etc/example/tls"); // tls.crt, tls.key, ca.crt
//! let material = runtime.material(files, Usage::Server, WatchOptions::default()).await?;
//! let server = Server::builder(Security::mutual(material))
//!     .allow_list(AllowList::parse("client.example")?)
//!     .build();
//! let listener = tokio::net::TcpListener::bind("0.0.0.0:9443").await?;
//! runtime.run_while(server.serve(listener.into(), routes, stop)).await?;
//! # Ok(())
//! # }
//! ```
//!
//! Complete programs for a tonic server, a tonic client, axum, a UNIX socket and Kubernetes are in
#![cfg_attr(any(doc, doctest), doc = "[`guide`].")]
//!
//! # Parts
//!
//! - [`posture`]: how a listener protects itself, decided once at start and closed by default.
//! - [`material`] and [`watch`]: certificate, key and roots, checked as a whole and replaced while the process runs.
//! - [`runtime`]: all of that work as one future beside your own.
//! - [`server`]: accepts, serves and drains connections, and knows each of them; over TCP, UNIX sockets, or as plain streams.
#![cfg_attr(
    feature = "tonic",
    doc = "- [`channel`]: the client side, for tonic's generated clients."
)]
//! - [`identity`] and [`policy`]: who the peer is, and whether it may call.
//! - [`config`] and [`verify`]: what is spoken, and how peers are verified.
//! - [`events`]: what happens to connections and material, as a stream for programs.
//! - [`peers`]: who is connected under which root, for an admin page.
//!
//! # Features
//!
//! None is on by default.
//!
//! | feature | adds |
//! |---|---|
//! | `tonic` | the `channel` module, tonic's `Status` for refusals, and the client's address where tonic's `Request` looks for it |
//! | `axum` | [`identity::PeerIdentity`] and [`server::RemoteAddr`] as extractors of handlers |
//! | `systemd` | listeners that systemd has bound |
//! | `proxy-protocol` | the client's address from a proxy in front (PROXY protocol, version 2) |
//! | `metrics` | what happens, through the [`metrics`](https://docs.rs/metrics) facade |
//! | `fips` | the FIPS 140-3 module of AWS-LC in place of the usual one; building it takes `cmake`, `go`, `perl` and a C compiler |
//!
//! # What holds
//!
//! Nothing is decided by a certificate that was not verified on this very connection: there is no resumption, no early data,
//! and a connection whose verifier left no result is refused. TLS 1.3 alone, with X25519MLKEM768 first; certificates with
//! P-256, P-384, P-521, Ed25519 or RSA keys from 2048 bits.
//!
//! No task is detached. Background work is a future that the caller runs, or a task that a channel owns and aborts when it is
//! dropped. The process-wide default of rustls is neither read nor set.

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
#[cfg(any(doc, doctest))]
pub mod guide;
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
