//! For tests only: certificates made on the spot, programs run under a deadline, waiting for a
//! state, and a gRPC service with every kind of call.
//!
//! Everything here panics when it cannot do what a test asks, with a text that says what it was
//! about: a broken test bench should be loud. Nothing here is a mock of our own code.
//!
//! | need | where |
//! |---|---|
//! | roots, intermediates, leaves | [`Pki`], [`pki`] |
//! | a folder as the kubelet mounts a Secret | [`kubelet`] |
//! | wait for a state, never sleep | [`wait_until`], [`wait_until_async`] |
//! | a program that runs beside the test | [`Process`] |
//! | a program that runs to its end | [`command`], [`mod@openssl`], [`golang`] |
//! | a gRPC service that counts what it executed | [`echo`] |

pub mod command;
pub mod echo;
pub mod golang;
pub mod kubelet;
pub mod openssl;
pub mod pki;
pub mod process;
pub mod wait;

pub use self::{
    echo::EchoService,
    openssl::openssl,
    pki::{Authority, Credential, Pki},
    process::Process,
    wait::{try_wait_until, try_wait_until_async, wait_until, wait_until_async},
};

use std::net::{Ipv4Addr, TcpListener};

/// A loopback TCP port that nobody listened on a moment ago.
///
/// Only for programs that cannot be told to take port 0 and say which one they got: another
/// program may take the port before it does.
///
/// # Panics
///
/// When the loopback interface has no free port.
#[must_use]
pub fn free_port() -> u16 {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
        .and_then(|listener| listener.local_addr())
        .expect("a free port on the loopback interface")
        .port()
}
