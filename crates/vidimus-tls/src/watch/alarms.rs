//! What becomes wrong with time alone, said once.

use std::time::{Duration, SystemTime};

use crate::clock::{Clock, rfc3339};
use crate::events::{Event, Events};
use crate::material::{Material, RevocationCheck};

/// An alarm comes when a fifth of the time is left, and no sooner than this before the end.
const SOON: Duration = Duration::from_secs(14 * 24 * 60 * 60);

/// What has been said about the material in use. Judged by a look at the wall clock now and then: one long sleep would miss
/// a clock that is set and a machine that was suspended.
#[derive(Debug, Default)]
pub(super) struct Alarms(Vec<Event>);

impl Alarms {
    /// Says what is new since the last look. Material that has been replaced is forgotten.
    pub(super) fn raise(&mut self, material: &Material, events: &Events, clock: &Clock) {
        let present = raised(material, clock.now());
        for alarm in present.iter().filter(|alarm| !self.0.contains(alarm)) {
            log(alarm);
            events.emit(clock, || alarm.clone());
        }
        self.0 = present;
    }
}

fn raised(material: &Material, now: SystemTime) -> Vec<Event> {
    let leaf = material.identity().names();
    let (subject, not_after) = (leaf.subject().to_owned(), leaf.not_after());
    let of_leaf = if now > not_after {
        Some(Event::LeafExpired { subject, not_after })
    } else if ends_soon(leaf.not_before(), not_after, now) {
        Some(Event::LeafExpiring { subject, not_after })
    } else {
        None
    };
    let trust = material.trust();
    let roots = trust
        .roots()
        .iter()
        .filter(|root| now > root.not_after())
        .map(|root| Event::RootExpired {
            subject: root.subject().to_owned(),
            fingerprint: root.fingerprint(),
            not_after: root.not_after(),
        });
    let lists = match trust.revocation_options().check() {
        RevocationCheck::Off => Vec::new(),
        RevocationCheck::Leaf | RevocationCheck::Chain => trust.revocation_lists(),
    };
    let of_lists = lists.into_iter().filter_map(|list| {
        let (issuer, number, next_update) = (list.issuer, list.number, list.next_update);
        if now > next_update {
            Some(Event::RevocationListEnded {
                issuer,
                number,
                next_update,
            })
        } else if ends_soon(list.this_update, next_update, now) {
            Some(Event::RevocationListEnding {
                issuer,
                number,
                next_update,
            })
        } else {
            None
        }
    });
    of_leaf.into_iter().chain(roots).chain(of_lists).collect()
}

/// Whether a fifth of the time is left, or [`SOON`] where that is less.
fn ends_soon(from: SystemTime, to: SystemTime, now: SystemTime) -> bool {
    let whole = to.duration_since(from).unwrap_or_default();
    let left = to.duration_since(now).unwrap_or_default();
    left < whole.checked_div(5).unwrap_or_default().min(SOON)
}

/// Says an alarm in the log.
fn log(alarm: &Event) {
    match alarm {
        Event::LeafExpired { subject, not_after } => tracing::error!(
            subject,
            not_after = rfc3339(*not_after),
            "the certificate in use has EXPIRED: peers refuse it until the files are renewed"
        ),
        Event::LeafExpiring { subject, not_after } => tracing::warn!(
            subject,
            not_after = rfc3339(*not_after),
            "the certificate in use expires soon"
        ),
        Event::RootExpired {
            subject,
            fingerprint,
            not_after,
        } => tracing::warn!(
            subject,
            %fingerprint,
            not_after = rfc3339(*not_after),
            "a root has expired and verifies nobody any more"
        ),
        Event::RevocationListEnded {
            issuer,
            next_update,
            ..
        } => tracing::error!(
            issuer,
            next_update = rfc3339(*next_update),
            "a revocation list has ENDED: whom it is about is refused until there is a new one, unless the settings accept that"
        ),
        Event::RevocationListEnding {
            issuer,
            next_update,
            ..
        } => tracing::warn!(
            issuer,
            next_update = rfc3339(*next_update),
            "a revocation list ends soon"
        ),
        _ => {}
    }
}
