//! Material that the program itself replaces.

use super::MaterialWatch;
use super::report::IDENTITY;
use crate::clock::Clock;
use crate::events::Events;
use crate::material::{Identity, IdentityError, Trust, Usage, error_chain};

/// Replaces the material of a watch made by [`MaterialWatch::from_memory`]. What it does is logged and counted as with files.
#[derive(Debug)]
pub struct MaterialPublisher {
    watch: MaterialWatch,
    events: Events,
    clock: Clock,
}

impl MaterialPublisher {
    pub(super) fn of(watch: MaterialWatch) -> Self {
        Self {
            watch,
            events: Events::default(),
            clock: Clock::system(),
        }
    }

    /// Also sends reloads and refusals here, and takes the time from this clock.
    #[must_use]
    pub fn with_events(self, events: Events, clock: Clock) -> Self {
        Self {
            events,
            clock,
            ..self
        }
    }

    /// Takes a new certificate and key, PEM, into use.
    ///
    /// # Errors
    ///
    /// What is wrong with them; the present ones stay.
    pub fn replace_identity(
        &mut self,
        certificates: &[u8],
        key: &[u8],
        usage: Usage,
    ) -> Result<(), IdentityError> {
        let (events, clock) = (&self.events, &self.clock);
        match Identity::from_pem(certificates, key, usage, clock.now()) {
            Ok(identity) => {
                self.watch.accepted(IDENTITY);
                self.watch.publish(Some(identity), None, events, clock);
                Ok(())
            }
            Err(error) => {
                let (reason, text) = (error.reason(), error_chain(&error));
                self.watch.refused(IDENTITY, reason, text, events, clock);
                Err(error)
            }
        }
    }

    /// Takes other roots and revocation lists into use. A list that isn't among the new ones stays in use, and none goes
    /// back in time, as with files. Roots without lists leave what is asked of lists as it is.
    pub fn replace_trust(&mut self, trust: Trust) {
        let (events, clock) = (&self.events, &self.clock);
        let current = self.watch.current();
        let trust = trust.after(current.trust(), current.identity().chain());
        self.watch.accepted_trust(&trust, events, clock);
        self.watch.publish(None, Some(trust), events, clock);
    }
}
