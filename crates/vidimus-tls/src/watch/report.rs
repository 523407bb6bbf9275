//! What is counted, logged and reported when material is taken into use and when it isn't.

use std::sync::Arc;

use super::{MaterialStatus, MaterialWatch, UnitStatus};
use crate::clock::{Clock, rfc3339};
use crate::events::{Event, Events, Unit};
use crate::material::{Identity, Material, Trust};

/// One of the units, with the place of its state.
#[derive(Clone, Copy)]
pub(super) struct Slot {
    unit: Unit,
    of: fn(&mut MaterialStatus) -> &mut UnitStatus,
}

pub(super) const IDENTITY: Slot = Slot {
    unit: Unit::Identity,
    of: |status| &mut status.identity,
};

pub(super) const TRUST: Slot = Slot {
    unit: Unit::Trust,
    of: |status| &mut status.trust,
};

impl MaterialWatch {
    /// Takes new units into use as the next generation.
    pub(super) fn publish(
        &self,
        identity: Option<Identity>,
        trust: Option<Trust>,
        events: &Events,
        clock: &Clock,
    ) {
        let units = [
            identity.as_ref().map(|_| Unit::Identity),
            trust.as_ref().map(|_| Unit::Trust),
        ];
        let current = self.current();
        let identity = identity.map_or_else(|| Arc::clone(current.identity()), Arc::new);
        let trust = trust.map_or_else(|| Arc::clone(current.trust()), Arc::new);
        let generation = current.generation().saturating_add(1);
        let material = Arc::new(Material::new(generation, identity, trust));
        self.lock_status().reloaded(&material, clock.now());
        self.0.sender.send_replace(Arc::clone(&material));
        for unit in units.into_iter().flatten() {
            events.emit(clock, || Event::Reloaded { unit, generation });
        }
        log_reload(&material, clock);
        if units.contains(&Some(Unit::Trust)) {
            material.trust().warn(clock.now());
        }
    }

    /// The unit as it is offered now is good.
    pub(super) fn accepted(&self, slot: Slot) {
        let mut status = self.lock_status();
        let state = (slot.of)(&mut status);
        state.last_error = None;
        state.reason = None;
    }

    /// The same of roots; some of the lists beside them can be bad all the same.
    pub(super) fn accepted_trust(&self, trust: &Trust, events: &Events, clock: &Clock) {
        match trust.revocation().rejected() {
            None => self.accepted(TRUST),
            Some(reason) => self.refused(TRUST, reason.clone(), reason, events, clock),
        }
    }

    /// The unit as it is offered now is not taken into use, or not all of it: said and counted once until the reason changes.
    pub(super) fn refused(
        &self,
        slot: Slot,
        reason: String,
        text: String,
        events: &Events,
        clock: &Clock,
    ) {
        let generation = {
            let mut status = self.lock_status();
            let state = (slot.of)(&mut status);
            if state.reason.as_ref() == Some(&reason) {
                return;
            }
            state.reason = Some(reason);
            state.failures = state.failures.saturating_add(1);
            state.last_error = Some(text.clone());
            status.failures = status.failures.saturating_add(1);
            status.generation
        };
        tracing::warn!(
            unit = slot.unit.name(),
            generation,
            error = text,
            "new TLS material is not usable; the last good one stays in use"
        );
        events.emit(clock, || Event::ReloadRefused {
            unit: slot.unit,
            generation,
            reason: text,
        });
    }
}

fn log_reload(material: &Material, clock: &Clock) {
    let leaf = material.identity().names();
    let left = leaf.not_after().duration_since(clock.now());
    tracing::info!(
        generation = material.generation(),
        subject = leaf.subject(),
        serial = leaf.serial(),
        not_after = rfc3339(leaf.not_after()),
        roots = material.trust().roots().len(),
        valid_for_seconds = left.unwrap_or_default().as_secs(),
        "TLS material reloaded"
    );
}
