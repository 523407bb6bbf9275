//! X.509 rules of a private CA: requests, key policy, profiles, issuing and chains.
//!
//! Pure: nothing here reads a file, a clock or the network. Everything that comes from outside (a
//! request, a certificate, a PEM bundle) has a size bound, and its reader never panics.
//!
//! A certificate is made in one line of types, each of which only the step before it can make:
//! bytes → [`csr::VerifiedCsr`] → `issue::Plan` (a profile applied; no key needed) →
//! `issue::Signed`. The request gives the subject, the key and, where the profile allows it, DNS
//! and IP names; everything else is the profile's.
//!
//! The feature `issue` adds the making of certificates; without it the crate only reads.

mod asn1;
pub mod cert;
pub mod chain;
pub mod crl;
pub mod csr;
mod digest;
mod extension;
#[doc(hidden)]
pub mod fuzzing;
pub mod key;
mod name;
mod oid;
pub mod pem;
mod san;
mod signature;
mod time;

pub use asn1::{DerError, DerFault};
pub use name::{MAX_SUBJECT, NameError};
pub use signature::ACCEPTED_SIGNATURES;

#[cfg(feature = "issue")]
pub mod issue;
#[cfg(feature = "issue")]
pub mod issuer;
#[cfg(feature = "issue")]
pub mod profile;
#[cfg(feature = "issue")]
pub mod serial;
#[cfg(feature = "issue")]
pub mod signer;
