//! The proof that something is on disk.

use std::ops::Deref;

/// A value that has been recorded: the transaction that wrote it, and the audit entry that tells
/// of it, is committed and synced. Only the store makes one, after the commit, so that "not
/// recorded means not returned" is checked by the compiler wherever a front door asks for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recorded<T>(T);

impl<T> Recorded<T> {
    /// To be called after the commit of the transaction that wrote `value`, never before.
    pub(crate) fn committed(value: T) -> Self {
        Self(value)
    }

    /// The value, without the proof.
    #[must_use]
    pub fn into_inner(self) -> T {
        self.0
    }
}

impl<T> Deref for Recorded<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}
