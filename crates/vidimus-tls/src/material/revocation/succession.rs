//! Which lists follow which: nobody's list goes back in time, and one that is no longer delivered stays in use.

use std::sync::Arc;

use vidimus_x509::crl::{RevocationList, Scope};

use super::{Held, Issuer, Revocation};
use crate::clock::rfc3339;
use crate::identity::Fingerprint;

/// Whether `one` was made before `other`: by number where both have one, and by date.
pub(super) fn is_older(one: &RevocationList, other: &RevocationList) -> bool {
    let by_number = match (one.number(), other.number()) {
        (Some(one), Some(other)) => one < other,
        _ => false,
    };
    by_number || one.this_update() < other.this_update()
}

/// The lists of one line follow each other.
#[derive(PartialEq, Eq)]
struct Line<'a> {
    issuer: &'a [u8],
    scope: &'a Scope,
    key: Key,
}

/// Which of its issuer's keys signed a list, as well as that is known.
#[derive(PartialEq, Eq)]
enum Key {
    Verified(Fingerprint),
    Named(Vec<u8>),
    Unknown,
}

impl<'a> Line<'a> {
    fn of(held: &'a Held) -> Self {
        let key = match (held.signer(), held.list().authority_key_id()) {
            (Some(signer), _) => Key::Verified(signer.key()),
            (None, Some(named)) => Key::Named(named.to_vec()),
            (None, None) => Key::Unknown,
        };
        Self {
            issuer: held.list().issuer_der(),
            scope: held.list().scope(),
            key,
        }
    }

    fn is_same_but_for_the_key(&self, other: &Self) -> bool {
        self.issuer == other.issuer && self.scope == other.scope
    }
}

impl Revocation {
    /// These lists after those of `previous`. Every list is first tried under the CAs that are known, those among them that
    /// peers have presented, so that no handshake has to.
    pub(crate) fn after(mut self, previous: &Self, known: &[Arc<Issuer>]) -> Self {
        let seen = previous.lists.iter().filter_map(|held| held.signer());
        let known: Vec<Arc<Issuer>> = known.iter().cloned().chain(seen).collect();
        for held in self.lists.iter().chain(&previous.lists) {
            held.try_all(&known);
        }
        let new = std::mem::take(&mut self.lists);
        let delivered: Vec<Arc<Held>> = new.clone();
        for held in new {
            self.take(held, previous);
        }
        for held in &previous.lists {
            let line = Line::of(held);
            // A line without a key can't be told from another CA's of the same name: any new list of that name ends it.
            let goes_on = delivered.iter().any(|new| {
                let new = Line::of(new);
                new == line || (line.key == Key::Unknown && new.is_same_but_for_the_key(&line))
            });
            let is_kept = self.lists.iter().any(|kept| Arc::ptr_eq(kept, held));
            if !goes_on && !is_kept {
                tracing::warn!(
                    issuer = held.list().issuer_text(),
                    next_update = rfc3339(held.list().next_update()),
                    "revocation list is gone; it stays in use"
                );
                self.lists.push(Arc::clone(held));
            }
        }
        self
    }

    /// Takes one list, or that of the same line which is newer.
    fn take(&mut self, held: Arc<Held>, previous: &Self) {
        let line = Line::of(&held);
        let is_rival = |other: &&Arc<Held>| line.key != Key::Unknown && Line::of(other) == line;
        // Two of one line in one delivery: the newer. Which of two that nobody is known to have signed is genuine shows
        // when a peer presents their issuer.
        let is_verified = matches!(line.key, Key::Verified(_));
        if let Some(rival) = self.lists.iter().position(|other| is_rival(&other))
            && is_verified
        {
            if let Some(slot) = self.lists.get_mut(rival)
                && is_older(slot.list(), held.list())
            {
                *slot = held;
            }
            return;
        }
        let same = |other: &&Arc<Held>| {
            other.list().fingerprint_sha256() == held.list().fingerprint_sha256()
        };
        // The same bytes: what is known of signatures stays with them.
        if let Some(known) = previous.lists.iter().find(same) {
            self.lists.push(Arc::clone(known));
            return;
        }
        match previous.lists.iter().find(is_rival) {
            Some(newer) if is_older(held.list(), newer.list()) => {
                let number = |list: &RevocationList| {
                    list.number()
                        .map_or_else(|| "none".to_owned(), ToString::to_string)
                };
                tracing::warn!(
                    issuer = held.list().issuer_text(),
                    number = number(held.list()),
                    this_update = rfc3339(held.list().this_update()),
                    number_in_use = number(newer.list()),
                    this_update_in_use = rfc3339(newer.list().this_update()),
                    "revocation list is older than the one in use and is not taken"
                );
                self.lists.push(Arc::clone(newer));
            }
            Some(_) | None => self.lists.push(held),
        }
    }
}
