//! Which certificates of its issuer a list is about: issuingDistributionPoint (RFC 5280 §5.2.5) against a certificate's
//! basicConstraints and cRLDistributionPoints (§4.2.1.13).

use super::CrlError;
use crate::{
    asn1::{DerError, Element, Reader, SEQUENCE, context, context_primitive},
    cert::Certificate,
};

/// Which certificates of its issuer a list is about. The default is all of them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Scope {
    covers: Covers,
    /// The names of the distribution point, as encoded; none for a list that isn't one of several parts.
    points: Vec<Box<[u8]>>,
}

/// Which kind of certificates a list is about.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Covers {
    /// Both.
    #[default]
    All,
    /// Those of CAs: `onlyContainsCACerts`.
    Authorities,
    /// Those of anybody else: `onlyContainsUserCerts`.
    EndEntities,
}

impl Scope {
    /// Which kind of certificates.
    #[must_use]
    pub fn kinds(&self) -> Covers {
        self.covers
    }

    /// Whether it is one part of several, told apart by their distribution points.
    #[must_use]
    pub fn is_part(&self) -> bool {
        !self.points.is_empty()
    }

    pub(super) fn read(value: &Element<'_>) -> Result<Self, CrlError> {
        let refuse = |found| Err(CrlError::Scope { found });
        let mut content = value.inside();
        let mut inside = content
            .expect(SEQUENCE, "an issuing distribution point")?
            .inside();
        content.finish()?;
        let points = match inside.optional(context(0))? {
            Some(point) => match full_names(&point)? {
                Some(names) => names,
                None => return refuse("has a distribution point named relative to its issuer"),
            },
            None => Vec::new(),
        };
        let only_users = flag(&mut inside, 1)?;
        let only_authorities = flag(&mut inside, 2)?;
        if inside.optional(context_primitive(3))?.is_some() {
            return refuse("is about some reasons only");
        }
        if flag(&mut inside, 4)? {
            return Err(CrlError::Indirect);
        }
        if flag(&mut inside, 5)? {
            return refuse("is about attribute certificates only");
        }
        inside.finish()?;
        let covers = match (only_users, only_authorities) {
            (false, false) => Covers::All,
            (true, false) => Covers::EndEntities,
            (false, true) => Covers::Authorities,
            (true, true) => return refuse("is about CAs only and about others only"),
        };
        Ok(Self { covers, points })
    }

    /// RFC 5280 §6.3.3 (b) (2).
    pub(super) fn covers(&self, certificate: &Certificate) -> bool {
        let kind = match self.covers {
            Covers::All => true,
            Covers::Authorities => certificate.is_ca(),
            Covers::EndEntities => !certificate.is_ca(),
        };
        kind && (self.points.is_empty() || self.names_a_point_of(certificate))
    }

    /// Names are compared as they are encoded. A certificate without distribution points has its issuer as one (RFC 5280
    /// §6.3.3, last paragraph).
    fn names_a_point_of(&self, certificate: &Certificate) -> bool {
        let is_ours = |name: &[u8]| self.points.iter().any(|point| **point == *name);
        match certificate.crl_distribution_points_der() {
            Some(extension) => {
                points_of(extension).is_ok_and(|names| names.iter().any(|name| is_ours(name)))
            }
            None => self
                .points
                .iter()
                .any(|point| directory_name(point) == Some(certificate.issuer_der())),
        }
    }
}

/// The name in a `directoryName`, which is `[4] EXPLICIT`.
fn directory_name(general_name: &[u8]) -> Option<&[u8]> {
    let name = Reader::single(general_name, context(4), "a directory name").ok()?;
    Some(name.value)
}

/// A `[n] IMPLICIT BOOLEAN DEFAULT FALSE`.
fn flag(inside: &mut Reader<'_>, number: u8) -> Result<bool, DerError> {
    match inside.optional(context_primitive(number))? {
        Some(value) => value.boolean(),
        None => Ok(false),
    }
}

/// The general names of a `DistributionPointName`; `None` if it is a name relative to the issuer's.
fn full_names(point: &Element<'_>) -> Result<Option<Vec<Box<[u8]>>>, DerError> {
    let mut inside = point.inside();
    let Some(names) = inside.optional(context(0))? else {
        inside.expect(context(1), "a relative name")?;
        inside.finish()?;
        return Ok(None);
    };
    inside.finish()?;
    let mut rest = names.inside();
    let mut found = Vec::new();
    loop {
        // GeneralNames is SIZE (1..MAX).
        found.push(rest.any("a general name")?.raw.into());
        if rest.is_empty() {
            return Ok(Some(found));
        }
    }
}

/// The names of those distribution points of a certificate that its own issuer serves, for all reasons.
fn points_of(extension: &[u8]) -> Result<Vec<Box<[u8]>>, DerError> {
    let mut points = Reader::single(extension, SEQUENCE, "distribution points")?.inside();
    let mut found = Vec::new();
    while !points.is_empty() {
        let mut inside = points.expect(SEQUENCE, "a distribution point")?.inside();
        let name = inside.optional(context(0))?;
        let for_some_reasons = inside.optional(context_primitive(1))?.is_some();
        let of_another = inside.optional(context(2))?.is_some();
        inside.finish()?;
        if for_some_reasons || of_another {
            continue;
        }
        if let Some(name) = name {
            found.extend(full_names(&name)?.unwrap_or_default());
        }
    }
    Ok(found)
}
