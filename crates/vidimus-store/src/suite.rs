//! The tests that every back end has to pass.
//!
//! A back end gives a [`Database`], a way to open one and the same store again and again, and calls
//! [`store_suite!`](crate::store_suite) with how to make one. What is tested here is what callers
//! rely on; what is peculiar to a back end (files, modes, syncs) it tests itself.

#![expect(
    clippy::panic,
    clippy::missing_panics_doc,
    clippy::unwrap_used,
    reason = "these are tests, compiled with the library so that each back end can run them"
)]

pub mod authority;
mod chain;
mod issuance;
mod state;

pub use authority::Authority;
pub use chain::*;
pub use issuance::*;
pub use state::*;

use aws_lc_rs::rand::SystemRandom;
use vidimus_audit::{AuditKey, AuditSeed, Draft, Outcome};

use crate::error::OpenError;
use crate::reader::Reader;
use crate::store::Store;
use crate::verify::{self, Verdict};

/// A store that can be opened more than once, one after the other.
pub trait Database {
    /// Opens it.
    ///
    /// # Errors
    /// As [`Store::open`].
    fn open(&self, key: AuditKey) -> Result<Store, OpenError>;
}

/// Makes a test of each case, for the back end that `$database` (an expression) makes one of.
#[macro_export]
macro_rules! store_suite {
    ($database:expr) => {
        $crate::store_suite! { @cases $database;
            /// C13.
            an_issuance_is_found_again_after_reopening
            /// C13.
            a_serial_number_is_recorded_once_and_a_refusal_writes_nothing
            /// C13.
            a_bad_request_does_not_fail_its_neighbours
            /// C13.
            many_submitters_record_everything_once
            /// X13.
            lists_are_paged_oldest_first_and_filtered_by_profile
            /// C13.
            what_was_recorded_is_read_at_once
            /// C14.
            the_log_chains_over_everything_written_and_goes_on_after_reopening
            /// C14.
            an_issuance_entry_names_its_certificate
            /// C14.
            a_refusal_has_its_entry
            /// C14.
            another_audit_key_is_refused
            /// C14.
            whoever_waits_for_commits_hears_of_each
            /// C2.
            configs_have_generations_and_an_entry_each
            /// C3.
            identities_await_become_current_and_pass
            /// C3.
            only_a_waiting_identity_is_activated
            /// C14.
            values_are_kept_by_name
        }
    };
    (@cases $database:expr; $($(#[$doc:meta])* $case:ident)*) => {
        $(
            $(#[$doc])*
            #[test]
            fn $case() {
                $crate::suite::run($crate::suite::$case(&$database));
            }
        )*
    };
}

/// Runs a case, with several threads as in a node, and a deadline.
pub fn run(case: impl Future<Output = ()>) {
    let deadline = std::time::Duration::from_secs(60);
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap()
        .block_on(async { tokio::time::timeout(deadline, case).await })
        .expect("the case ends within a minute");
}

/// The seed of the audit key that all cases use.
#[must_use]
pub fn audit_seed() -> AuditSeed {
    AuditSeed::from_bytes(&[7; 32])
}

/// Opens the store with the usual key.
pub fn open(database: &impl Database) -> Store {
    match database.open(audit_seed().key()) {
        Ok(store) => store,
        Err(error) => panic!("open the store: {error:?}"),
    }
}

/// An entry that tells of `method`.
#[must_use]
pub fn draft(method: &str) -> Draft {
    Draft::new("CN=admin", method, Outcome::Ok)
}

/// Demands that the whole log and its certificates are in order; returns how many entries it has.
#[must_use]
pub fn intact(reader: &Reader) -> u64 {
    match verify::store(reader, audit_seed().key().public(), None) {
        Ok(Verdict::Intact(verified)) => verified.entries,
        other => panic!("the log is not intact: {other:?}"),
    }
}

/// Random bytes for what has to differ.
#[must_use]
pub fn random() -> SystemRandom {
    SystemRandom::new()
}
