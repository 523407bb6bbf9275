//! A certificate before and after its signature.

use std::time::SystemTime;

use super::{
    PlanError, RequestNames, Warning, names,
    tbs::{Extensions, Subject, tbs},
    validity::Validity,
};
use crate::{
    csr::VerifiedCsr,
    issuer::Issuer,
    name,
    profile::{BasicConstraints, ExtraExtension, Profile, san::GeneralNames},
    serial::Serial,
    signer::{self, SignError, SignatureAlgorithm, Signer},
};

/// A certificate but for its signature.
///
/// Made by [`Profile::certificate`] and [`super::root_plan`].
#[derive(Debug, Clone)]
pub struct Plan {
    tbs: Vec<u8>,
    algorithm: SignatureAlgorithm,
    /// The key that must sign.
    signing_spki: Vec<u8>,
    is_self_signed: bool,
    facts: Facts,
}

/// A signed certificate. Only [`Plan::sign`] makes one.
#[derive(Debug, Clone)]
pub struct Signed {
    der: Vec<u8>,
    facts: Facts,
}

/// What is known of a certificate without reading it again.
#[derive(Debug, Clone)]
struct Facts {
    serial: Serial,
    warnings: Vec<Warning>,
    not_before: SystemTime,
    not_after: SystemTime,
    subject_text: String,
    names: Vec<String>,
    key_id: [u8; 20],
}

impl Profile {
    /// The certificate that this profile makes of a request, unsigned.
    ///
    /// Of the CSR it takes the key and the subject, byte for byte; of names what
    /// `allow_request_sans` says; everything else is the profile's.
    ///
    /// # Errors
    /// See [`PlanError`]; its [`PlanError::kind`] tells a wrong request from a rule.
    pub fn certificate(
        &self,
        csr: &VerifiedCsr,
        names: &RequestNames,
        issuer: &Issuer,
        now: SystemTime,
        serial: Serial,
    ) -> Result<Plan, PlanError> {
        self.check().map_err(|problems| PlanError::Profile {
            profile: self.name.clone(),
            problems,
        })?;
        let mut warnings = Vec::new();
        let path_len = self.clamped_path_len(issuer, &mut warnings)?;
        let validity = Validity::under(issuer, self, now, &mut warnings)?;
        let names = names::general_names(self, csr, names)?;
        let subject = Subject {
            name_der: csr.subject_der(),
            name_text: csr.subject_text(),
            spki_der: csr.spki_der(),
            key_id: csr.key_id(),
        };
        self.check_somebody_is_named(&subject, &names)?;
        let extensions = self.extensions(&subject, &names, issuer, path_len);
        let algorithm = issuer.algorithm();
        Ok(Plan {
            tbs: tbs(
                serial,
                algorithm,
                issuer.subject_der(),
                validity,
                &subject,
                &extensions,
            ),
            algorithm,
            signing_spki: issuer.spki_der().to_vec(),
            is_self_signed: false,
            facts: Facts {
                serial,
                warnings,
                not_before: validity.not_before(),
                not_after: validity.not_after(),
                subject_text: subject.name_text.to_owned(),
                names: names.texts,
                key_id: subject.key_id,
            },
        })
    }

    /// X2: a CA gets at most what its issuer has left, and none where the issuer has 0.
    fn clamped_path_len(
        &self,
        issuer: &Issuer,
        warnings: &mut Vec<Warning>,
    ) -> Result<Option<u8>, PlanError> {
        let requested = self.basic_constraints.path_len;
        if !self.basic_constraints.is_ca {
            return Ok(None);
        }
        let Some(limit) = issuer.path_len() else {
            return Ok(requested);
        };
        let budget = limit
            .checked_sub(1)
            .ok_or_else(|| PlanError::IssuerPathLen {
                issuer: issuer.subject_text().to_owned(),
            })?;
        let budget = u8::try_from(budget).unwrap_or(u8::MAX);
        let effective = requested.map_or(budget, |requested| requested.min(budget));
        if requested != Some(effective) {
            warnings.push(Warning::PathLenClamped {
                requested,
                effective,
            });
        }
        Ok(Some(effective))
    }

    fn check_somebody_is_named(
        &self,
        subject: &Subject<'_>,
        names: &GeneralNames,
    ) -> Result<(), PlanError> {
        if !subject.is_nameless() {
            return Ok(());
        }
        let has_raw_names = || self.extra_extensions.iter().any(ExtraExtension::is_names);
        if self.basic_constraints.is_ca {
            Err(PlanError::NamelessCa)
        } else if names.texts.is_empty() && !has_raw_names() {
            Err(PlanError::Nameless)
        } else {
            Ok(())
        }
    }

    fn extensions(
        &self,
        subject: &Subject<'_>,
        names: &GeneralNames,
        issuer: &Issuer,
        path_len: Option<u8>,
    ) -> Vec<u8> {
        let mut out = Extensions::default();
        let constraints = BasicConstraints {
            is_ca: self.basic_constraints.is_ca,
            path_len,
        };
        out.basic_constraints(constraints);
        out.key_usage(&self.key_usage);
        out.ext_key_usage(&self.ext_key_usage);
        out.names(names, subject);
        out.key_ids(&subject.key_id, issuer.key_id());
        for extra in &self.extra_extensions {
            // Only the names speak for a certificate without a subject (RFC 5280 §4.2.1.6).
            let speaks_alone = extra.is_names() && subject.is_nameless();
            out.push(
                extra.oid.as_bytes(),
                extra.critical || speaks_alone,
                &extra.value,
            );
        }
        out.0
    }
}

impl Plan {
    /// The bytes that will be signed.
    #[must_use]
    pub fn tbs_der(&self) -> &[u8] {
        &self.tbs
    }

    /// What the caller should be told.
    #[must_use]
    pub fn warnings(&self) -> &[Warning] {
        &self.facts.warnings
    }

    /// The last moment at which it will be valid.
    #[must_use]
    pub fn not_after(&self) -> SystemTime {
        self.facts.not_after
    }

    /// Signs it.
    ///
    /// # Errors
    /// The signer holds another key than the issuer's, or failed. A self-signed certificate is
    /// also checked under the key that it contains (K9): one key, not two.
    pub fn sign(self, signer: &dyn Signer) -> Result<Signed, SignError> {
        if signer.spki_der() != self.signing_spki {
            return Err(SignError::WrongKey);
        }
        let der = signer::seal(&self.tbs, self.algorithm, signer)?;
        if self.is_self_signed {
            signer::check_seal(&der, &self.signing_spki)?;
        }
        Ok(Signed {
            der,
            facts: self.facts,
        })
    }

    /// A certificate signed by the key it contains.
    pub(super) fn self_signed(
        algorithm: SignatureAlgorithm,
        subject: &Subject<'_>,
        extensions: &Extensions,
        validity: Validity,
        serial: Serial,
    ) -> Self {
        let issuer = subject.name_der;
        Self {
            tbs: tbs(serial, algorithm, issuer, validity, subject, &extensions.0),
            algorithm,
            signing_spki: subject.spki_der.to_vec(),
            is_self_signed: true,
            facts: Facts {
                serial,
                warnings: Vec::new(),
                not_before: validity.not_before(),
                not_after: validity.not_after(),
                subject_text: subject.name_text.to_owned(),
                names: Vec::new(),
                key_id: subject.key_id,
            },
        }
    }
}

impl Signed {
    /// The certificate.
    #[must_use]
    pub fn der(&self) -> &[u8] {
        &self.der
    }

    /// Its serial number.
    #[must_use]
    pub fn serial(&self) -> Serial {
        self.facts.serial
    }

    /// What the caller should be told.
    #[must_use]
    pub fn warnings(&self) -> &[Warning] {
        &self.facts.warnings
    }

    /// The first moment at which it is valid.
    #[must_use]
    pub fn not_before(&self) -> SystemTime {
        self.facts.not_before
    }

    /// The last moment at which it is valid, to the second.
    #[must_use]
    pub fn not_after(&self) -> SystemTime {
        self.facts.not_after
    }

    /// The subject for people (RFC 4514).
    #[must_use]
    pub fn subject_text(&self) -> &str {
        &self.facts.subject_text
    }

    /// The names of its subjectAltName for people: DNS and IP names as they are, others with their
    /// kind before.
    #[must_use]
    pub fn names(&self) -> &[String] {
        &self.facts.names
    }

    /// The subject key identifier in lower-case hex.
    #[must_use]
    pub fn ski_hex(&self) -> String {
        name::hex(&self.facts.key_id)
    }
}
