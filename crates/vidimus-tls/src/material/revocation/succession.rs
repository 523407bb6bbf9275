//! Which lists follow which: nobody's list goes back in time, and one that is no longer delivered stays in use.

use std::sync::Arc;

use vidimus_x509::crl::{RevocationList, Scope};

use super::{Held, Issuer, Revocation};
use crate::clock::rfc3339;
use crate::identity::Fingerprint;

/// How many lists of one name and scope are kept from before while nobody knows whose key signed them.
const MAX_UNVERIFIED: usize = 4;

/// Whether `one` was made before `other`: by number where both have one, and by date.
pub(super) fn is_older(one: &RevocationList, other: &RevocationList) -> bool {
    let by_number = match (one.number(), other.number()) {
        (Some(one), Some(other)) => one < other,
        _ => false,
    };
    by_number || one.this_update() < other.this_update()
}

/// The lists of one line follow each other. Which key that is, the signature says alone: CAs of one name exist, and
/// authority key identifiers that are wrong.
#[derive(PartialEq, Eq)]
struct Line<'a> {
    issuer: &'a [u8],
    scope: &'a Scope,
    /// `None` until a CA is known that has signed the list.
    key: Option<Fingerprint>,
}

impl<'a> Line<'a> {
    fn of(held: &'a Held) -> Self {
        Self {
            issuer: held.list().issuer_der(),
            scope: held.list().scope(),
            key: held.signer().map(|signer| signer.key()),
        }
    }

    fn has_name_of(&self, other: &Self) -> bool {
        self.issuer == other.issuer && self.scope == other.scope
    }
}

impl Revocation {
    /// These lists after those of `previous`, which also says what is asked of lists where these leave it open. Every list is
    /// first tried under the CAs that are known, those among them that peers have presented, so that no handshake has to.
    /// The roots that `left` take the lists under them along, once those are no longer delivered.
    pub(crate) fn after(
        mut self,
        previous: &Self,
        present: &[Arc<Issuer>],
        left: &[Arc<Issuer>],
    ) -> Self {
        if self.options.check.is_none() {
            self.options = previous.options;
        }
        let seen = previous.lists.iter().filter_map(|held| held.signer());
        let known: Vec<Arc<Issuer>> = present.iter().cloned().chain(seen).collect();
        for held in self.lists.iter().chain(&previous.lists) {
            held.try_all(&known);
            held.note(left, present);
        }
        let delivered = latest_of_each_line(std::mem::take(&mut self.lists));
        for held in &delivered {
            self.take(held, previous);
        }
        let mut before: Vec<&Arc<Held>> = previous.lists.iter().collect();
        before.sort_by_key(|held| std::cmp::Reverse(held.list().this_update()));
        for held in before {
            self.keep(held, &delivered);
        }
        self
    }

    /// Takes a list that was delivered, unless there is a later one of its line.
    fn take(&mut self, held: &Arc<Held>, previous: &Self) {
        let chosen = match previous.lists.iter().find(|other| is_same(other, held)) {
            // What is known of signatures stays with it.
            Some(same) => same,
            None => match previous.lists.iter().find(|other| is_rival(other, held)) {
                Some(later) if is_older(held.list(), later.list()) => {
                    self.rejected.push(rejected(held.list(), later.list()));
                    later
                }
                Some(_) | None => held,
            },
        };
        if !self.lists.iter().any(|kept| is_same(kept, chosen)) {
            self.lists.push(Arc::clone(chosen));
        }
    }

    /// Keeps a list of before that was not delivered again, unless another one of its line is there.
    fn keep(&mut self, held: &Arc<Held>, delivered: &[Arc<Held>]) {
        let line = Line::of(held);
        let of_its_name = |all: &[Arc<Held>]| {
            let lines = all.iter().map(|other| Line::of(other));
            lines.filter(|other| other.has_name_of(&line)).count()
        };
        let is_there = self
            .lists
            .iter()
            .any(|kept| is_same(kept, held) || is_rival(kept, held));
        let from_before = of_its_name(&self.lists).saturating_sub(of_its_name(delivered));
        if is_there || (line.key.is_none() && from_before >= MAX_UNVERIFIED) {
            return;
        }
        if held.is_retired() {
            tracing::info!(
                issuer = held.list().issuer_text(),
                "revocation list is gone, as is the root above it; it is dropped"
            );
            return;
        }
        if of_its_name(delivered) == 0 {
            tracing::warn!(
                issuer = held.list().issuer_text(),
                next_update = rfc3339(held.list().next_update()),
                "revocation list is gone; it stays in use"
            );
        }
        self.lists.push(Arc::clone(held));
    }
}

/// What one delivery comes to. Somebody who adds the new list to a file and leaves the old ones has gone back nowhere.
fn latest_of_each_line(delivered: Vec<Arc<Held>>) -> Vec<Arc<Held>> {
    let mut latest: Vec<Arc<Held>> = Vec::with_capacity(delivered.len());
    for held in delivered {
        match latest.iter_mut().find(|other| is_rival(other, &held)) {
            Some(rival) if is_older(rival.list(), held.list()) => *rival = held,
            Some(_) => {}
            None => latest.push(held),
        }
    }
    latest
}

/// Whether both are known to be of one line.
fn is_rival(one: &Held, other: &Held) -> bool {
    let line = Line::of(one);
    line.key.is_some() && line == Line::of(other)
}

fn is_same(one: &Held, other: &Held) -> bool {
    one.list().fingerprint_sha256() == other.list().fingerprint_sha256()
}

/// Why a list was not taken into use.
fn rejected(list: &RevocationList, in_use: &RevocationList) -> String {
    let version = |list: &RevocationList| {
        let number = list.number().map(ToString::to_string);
        let number = number.as_deref().unwrap_or("none");
        format!("number {number}, made at {}", rfc3339(list.this_update()))
    };
    format!(
        "revocation list of {:?} ({}) is older than the one in use ({}) and is not taken",
        list.issuer_text(),
        version(list),
        version(in_use)
    )
}
