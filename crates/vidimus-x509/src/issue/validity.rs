//! From when until when.

use std::time::{Duration, SystemTime};

use der::DateTime;

use super::{BACKDATE, PlanError, Warning};
use crate::{
    asn1::write,
    issuer::Issuer,
    profile::{Profile, ValidityPolicy},
    time,
};

/// Both ends, whole seconds, both included.
#[derive(Debug, Clone, Copy)]
pub(super) struct Validity {
    not_before: DateTime,
    not_after: DateTime,
}

impl Validity {
    /// For a certificate under an issuer; X1: it never outlives it.
    pub(super) fn under(
        issuer: &Issuer,
        profile: &Profile,
        now: SystemTime,
        warnings: &mut Vec<Warning>,
    ) -> Result<Self, PlanError> {
        if now < issuer.not_before() || now > issuer.not_after() {
            return Err(PlanError::IssuerNotValid {
                issuer: issuer.subject_text().to_owned(),
                not_before: issuer.not_before(),
                not_after: issuer.not_after(),
                now,
            });
        }
        let mut validity = Self::of_days(profile.validity_days, now)?;
        validity.not_before = validity.not_before.max(date(issuer.not_before(), now)?);
        let issuer_end = date(issuer.not_after(), now)?;
        if validity.not_after > issuer_end {
            let requested = validity.not_after.to_system_time();
            match profile.validity_policy {
                ValidityPolicy::Cap => warnings.push(Warning::Capped {
                    requested,
                    effective: issuer.not_after(),
                }),
                ValidityPolicy::Reject => {
                    return Err(PlanError::Outlives {
                        profile: profile.name.clone(),
                        requested,
                        issuer_end: issuer.not_after(),
                    });
                }
            }
            validity.not_after = issuer_end;
        }
        Ok(validity)
    }

    /// Days from now, not from the backdated begin.
    pub(super) fn of_days(days: u32, now: SystemTime) -> Result<Self, PlanError> {
        let asked = Duration::from_secs(u64::from(days) * 24 * 60 * 60);
        let end = now.checked_add(asked).map(DateTime::from_system_time);
        Ok(Self {
            not_before: begin(now)?,
            // RFC 5280 §4.1.2.5: what has no end in sight ends with the year 9999.
            not_after: end.and_then(Result::ok).unwrap_or(DateTime::INFINITY),
        })
    }

    /// Calendar years from now: the same date and time, or the first of March for a leap day.
    pub(super) fn of_years(years: u32, now: SystemTime) -> Result<Self, PlanError> {
        let start = date(now, now)?;
        let year =
            u16::try_from(years).map_or(u16::MAX, |years| start.year().saturating_add(years));
        let on = |month, day| {
            DateTime::new(
                year,
                month,
                day,
                start.hour(),
                start.minutes(),
                start.seconds(),
            )
        };
        let end = on(start.month(), start.day()).or_else(|_| on(3, 1));
        Ok(Self {
            not_before: begin(now)?,
            not_after: end.unwrap_or(DateTime::INFINITY),
        })
    }

    pub(super) fn not_before(&self) -> SystemTime {
        self.not_before.to_system_time()
    }

    pub(super) fn not_after(&self) -> SystemTime {
        self.not_after.to_system_time()
    }

    pub(super) fn to_der(self) -> Vec<u8> {
        write::sequence(&[&time::write(self.not_before), &time::write(self.not_after)])
    }
}

fn begin(now: SystemTime) -> Result<DateTime, PlanError> {
    let begin = now.checked_sub(BACKDATE).ok_or(PlanError::Clock { now })?;
    date(begin, now)
}

fn date(time: SystemTime, now: SystemTime) -> Result<DateTime, PlanError> {
    DateTime::from_system_time(time).map_err(|_| PlanError::Clock { now })
}
