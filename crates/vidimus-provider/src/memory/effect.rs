//! What tasks do to their machines, and what must be so before.

use super::{
    Limits, MemoryError,
    machine::{Machine, Numbers, PowerState, Snapshot, State},
    spec::Wish,
};

/// What a task does to its machine when it is done.
#[derive(Clone, Debug)]
pub(super) enum Effect {
    Create,
    Delete,
    DeleteSnapshot(String),
    Power(Power),
    Reconfigure(Wish),
    Revert(String),
    Snapshot(String),
    Upgrade(i32),
}

/// A power operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Power {
    Off,
    On,
    Reboot,
    ShutDown,
}

/// What becomes of the machine itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum After {
    Gone,
    Stays,
}

impl Effect {
    /// What must be so before it.
    pub(super) fn check(&self, machine: &Machine, limits: &Limits) -> Result<(), MemoryError> {
        let needs = |needed| MemoryError::State {
            id: machine.id.clone(),
            needed,
        };
        match self {
            Self::Create | Self::Delete | Self::Power(Power::Off | Power::On | Power::ShutDown) => {
                Ok(())
            }
            Self::Power(Power::Reboot) => match machine.state.power {
                PowerState::On => Ok(()),
                PowerState::Off => Err(needs("a reboot needs it to be on")),
            },
            Self::DeleteSnapshot(id) | Self::Snapshot(id) => find_snapshot(machine, id).map(drop),
            Self::Revert(id) => kept(machine, id).map(drop),
            Self::Reconfigure(wish) => machine.state.hardware.check("desired_json", wish, limits),
            Self::Upgrade(version) => {
                if matches!(machine.state.power, PowerState::On) {
                    return Err(needs("a hardware upgrade needs it to be off"));
                }
                if *version <= machine.state.hardware.version {
                    return Err(needs("the hardware version can only be raised"));
                }
                Ok(())
            }
        }
    }

    /// Checks, then does it.
    pub(super) fn perform(
        self,
        machine: &mut Machine,
        numbers: &mut Numbers,
        limits: &Limits,
    ) -> Result<After, MemoryError> {
        self.check(machine, limits)?;
        match self {
            Self::Create => machine.creation = None,
            Self::Delete => return Ok(After::Gone),
            Self::DeleteSnapshot(id) => drop(machine.snapshots.remove(&id)),
            Self::Power(power) => machine.state.apply(power),
            Self::Reconfigure(wish) => machine.state.hardware.apply(&wish, numbers),
            Self::Revert(id) => machine.state = kept(machine, &id)?.clone(),
            Self::Snapshot(id) => {
                let mut state = machine.state.clone();
                if let Some(snapshot) = machine.snapshots.get_mut(&id) {
                    if !snapshot.with_memory {
                        // a disk image alone starts as after a power cut
                        state.power = PowerState::Off;
                    }
                    snapshot.state = Some(state);
                }
            }
            Self::Upgrade(version) => machine.state.hardware.version = version,
        }
        Ok(After::Stays)
    }
}

impl State {
    const fn apply(&mut self, power: Power) {
        match power {
            Power::Off | Power::ShutDown => self.power = PowerState::Off,
            Power::On => {
                if matches!(self.power, PowerState::Off) {
                    self.boots += 1;
                }
                self.power = PowerState::On;
            }
            Power::Reboot => self.boots += 1,
        }
    }
}

/// The state that a finished snapshot keeps.
pub(super) fn kept<'a>(machine: &'a Machine, snapshot: &str) -> Result<&'a State, MemoryError> {
    find_snapshot(machine, snapshot)?
        .state
        .as_ref()
        .ok_or_else(|| busy(machine, "the snapshot is being taken"))
}

fn find_snapshot<'a>(machine: &'a Machine, id: &str) -> Result<&'a Snapshot, MemoryError> {
    machine
        .snapshots
        .get(id)
        .ok_or_else(|| MemoryError::Missing {
            kind: "snapshot",
            id: id.to_owned(),
        })
}

pub(super) fn busy(machine: &Machine, what: &'static str) -> MemoryError {
    MemoryError::Busy {
        id: machine.id.clone(),
        what,
    }
}
