//! Revocation lists.

use std::time::Duration;

use rcgen::{
    CertificateRevocationListParams, KeyIdMethod, RevocationReason, RevokedCertParams, SerialNumber,
};

use super::{Authority, armour, now};

/// What a CA's list is to say; [`RevocationListSpec::pem`] makes it.
#[derive(Debug)]
#[must_use]
pub struct RevocationListSpec<'a> {
    authority: &'a Authority,
    number: u64,
    current: bool,
    revoked: Vec<RevokedCertParams>,
}

impl<'a> RevocationListSpec<'a> {
    pub(super) fn new(authority: &'a Authority, number: u64) -> Self {
        Self {
            authority,
            number,
            current: true,
            revoked: Vec::new(),
        }
    }

    /// Lists a serial number, big-endian, as lost since yesterday.
    pub fn revoke(mut self, serial: &[u8]) -> Self {
        self.revoked.push(RevokedCertParams {
            serial_number: SerialNumber::from_slice(serial),
            revocation_time: (now() - Duration::from_secs(24 * 60 * 60)).into(),
            reason_code: Some(RevocationReason::KeyCompromise),
            invalidity_date: None,
        });
        self
    }

    /// A nextUpdate an hour ago.
    pub fn ended(mut self) -> Self {
        self.current = false;
        self
    }

    /// Makes the list, in DER. Made a day ago, and later by a second for each of its number, for ten days.
    ///
    /// # Panics
    ///
    /// When it cannot be made.
    #[must_use]
    pub fn der(self) -> Vec<u8> {
        const HOUR: Duration = Duration::from_secs(60 * 60);
        let next_update = if self.current {
            now() + 240 * HOUR
        } else {
            now() - HOUR
        };
        let params = CertificateRevocationListParams {
            this_update: (now() - 24 * HOUR + Duration::from_secs(self.number)).into(),
            next_update: next_update.into(),
            crl_number: SerialNumber::from(self.number),
            issuing_distribution_point: None,
            revoked_certs: self.revoked,
            key_identifier_method: KeyIdMethod::Sha256,
        };
        let list = params.signed_by(&self.authority.issuer);
        list.expect("a revocation list").der().to_vec()
    }

    /// Makes the list, as PEM.
    ///
    /// # Panics
    ///
    /// When it cannot be made.
    #[must_use]
    pub fn pem(self) -> String {
        armour("X509 CRL", &self.der())
    }
}
