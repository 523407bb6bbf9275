//! Revocation lists beside the roots: what is asked of them, and which are in use.

mod held;
mod succession;

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use serde::Serialize;
use vidimus_x509::cert::Certificate;
use vidimus_x509::crl::{CrlNumber, RevocationList};
use vidimus_x509::pem;

pub(crate) use held::Issuer;

use held::Held;

use super::TrustError;
use crate::clock::serialize_time;

/// How far a CA's clock may be ahead of ours.
const MAX_SKEW: Duration = Duration::from_secs(5 * 60);

/// Which certificates of a peer's path must not be revoked. Roots never are: a root leaves by being taken out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum RevocationCheck {
    /// None: lists are not read.
    #[default]
    Off,
    /// The peer's own.
    Leaf,
    /// The peer's own and every CA's above it.
    Chain,
}

/// What to do about a certificate whose revocation nothing current is known of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum RevocationGap {
    /// Its connection is refused: who can hold back a list must not gain by it.
    #[default]
    Refuse,
    /// It is accepted unless it is known to be revoked.
    Accept,
}

/// What is asked of revocation lists.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RevocationOptions {
    /// Which certificates are looked up; `None` means [`RevocationCheck::Leaf`] if there were lists at the start and
    /// [`RevocationCheck::Off`] if not.
    pub check: Option<RevocationCheck>,
    /// Where the issuer's list is past its nextUpdate.
    pub stale: RevocationGap,
    /// Where no list of the issuer's key is known.
    pub missing: RevocationGap,
}

impl RevocationOptions {
    /// Decides what `None` leaves open.
    pub(crate) fn decided(self, lists_are_there: bool) -> Self {
        let default = if lists_are_there {
            RevocationCheck::Leaf
        } else {
            RevocationCheck::Off
        };
        Self {
            check: Some(self.check.unwrap_or(default)),
            ..self
        }
    }

    /// The check, `Off` as long as nothing is decided.
    #[must_use]
    pub fn check(&self) -> RevocationCheck {
        self.check.unwrap_or_default()
    }
}

/// A list in use, for status pages.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct RevocationListInfo {
    /// Whose list it is.
    pub issuer: String,
    /// cRLNumber, if it has one.
    pub number: Option<String>,
    /// When it was made.
    #[serde(serialize_with = "serialize_time")]
    pub this_update: SystemTime,
    /// Until when it counts.
    #[serde(serialize_with = "serialize_time")]
    pub next_update: SystemTime,
    /// How many certificates it lists.
    pub entries: usize,
    /// Whether a CA that is known here has signed it; one that nobody has can still be a CA's that a peer presents.
    pub signed_by_known: bool,
}

/// The lists in use and what is asked of them. Immutable but for what is remembered of signatures.
#[derive(Clone, Debug, Default)]
pub(crate) struct Revocation {
    options: RevocationOptions,
    lists: Vec<Arc<Held>>,
    /// Why lists that were delivered with these are not among them.
    rejected: Vec<String>,
}

impl Revocation {
    /// Reads the lists of `text` and checks their signatures under the CAs that are known; a list of another CA waits for a
    /// peer that presents it.
    pub(crate) fn parse(
        text: &[u8],
        path: &Path,
        options: RevocationOptions,
        known: &[Arc<Issuer>],
        now: SystemTime,
    ) -> Result<Self, TrustError> {
        let latest = now.checked_add(MAX_SKEW);
        let ders = pem::revocation_lists(text).map_err(|source| TrustError::RevocationPem {
            path: path.to_path_buf(),
            source,
        })?;
        let mut lists = Vec::new();
        for (index, der) in ders.iter().enumerate() {
            let position = index.saturating_add(1);
            let list = RevocationList::parse(der).map_err(|source| TrustError::RevocationDer {
                path: path.to_path_buf(),
                position,
                source,
            })?;
            // To count what is to count later would also refuse everything that is made until then, as older.
            if latest.is_some_and(|latest| list.this_update() > latest) {
                return Err(TrustError::RevocationNotYet {
                    path: path.to_path_buf(),
                    position,
                    issuer: list.issuer_text().to_owned(),
                    this_update: list.this_update(),
                });
            }
            let held = Held::new(list);
            if let Some(issuer) = held.broken_under(known) {
                return Err(TrustError::RevocationSignature {
                    path: path.to_path_buf(),
                    position,
                    issuer: issuer.subject().to_owned(),
                });
            }
            lists.push(Arc::new(held));
        }
        Ok(Self {
            options,
            lists,
            rejected: Vec::new(),
        })
    }

    /// No list, and what is asked of those to come.
    pub(crate) fn none(options: RevocationOptions) -> Self {
        Self {
            options,
            ..Self::default()
        }
    }

    /// Why some of the lists that were delivered are not in use, if any.
    pub(crate) fn rejected(&self) -> Option<String> {
        (!self.rejected.is_empty()).then(|| self.rejected.join("; "))
    }

    pub(crate) fn options(&self) -> &RevocationOptions {
        &self.options
    }

    /// The lists that say something about this certificate, signed by this issuer's key; of two with one scope the newer.
    pub(crate) fn about<'a>(
        &'a self,
        certificate: &'a Certificate,
        issuer: &'a Issuer,
    ) -> Vec<&'a RevocationList> {
        let fitting: Vec<&RevocationList> = self
            .lists
            .iter()
            .filter(|held| {
                held.list().issuer_der() == certificate.issuer_der()
                    && held.list().covers(certificate)
                    && held.is_signed_by(issuer)
            })
            .map(|held| held.list())
            .collect();
        let is_superseded = |list: &RevocationList| {
            fitting
                .iter()
                .any(|other| other.scope() == list.scope() && succession::is_older(list, other))
        };
        fitting
            .iter()
            .copied()
            .filter(|list| !is_superseded(list))
            .collect()
    }

    pub(crate) fn infos(&self) -> Vec<RevocationListInfo> {
        let info = |held: &Arc<Held>| RevocationListInfo {
            issuer: held.list().issuer_text().to_owned(),
            number: held.list().number().map(CrlNumber::to_string),
            this_update: held.list().this_update(),
            next_update: held.list().next_update(),
            entries: held.list().len(),
            signed_by_known: held.signer().is_some(),
        };
        self.lists.iter().map(info).collect()
    }

    /// Whether the other one asks the same and has the same lists.
    pub(crate) fn is_same_as(&self, other: &Self) -> bool {
        let of = |set: &Self| -> Vec<[u8; 32]> {
            let lists = set.lists.iter();
            lists.map(|held| held.list().fingerprint_sha256()).collect()
        };
        self.options == other.options && of(self) == of(other)
    }
}
