//! The extensions of a certificate (RFC 5280 §4.2).
#![warn(clippy::indexing_slicing, clippy::arithmetic_side_effects)]

use const_oid::ObjectIdentifier;

use super::{CertError, NameForm};
use crate::{
    asn1::{
        BIT_STRING, BOOLEAN, DerError, Element, INTEGER, OCTET_STRING, OID, Reader, SEQUENCE,
        context, context_primitive,
    },
    extension::{self, Extension},
    oid,
    san::{self, Names},
};

/// keyUsage, bit 0 first (RFC 5280 §4.2.1.3).
const KEY_USAGES: [&str; 9] = [
    "digitalSignature",
    "nonRepudiation",
    "keyEncipherment",
    "dataEncipherment",
    "keyAgreement",
    "keyCertSign",
    "cRLSign",
    "encipherOnly",
    "decipherOnly",
];

#[derive(Debug, Clone, Default)]
pub(super) struct Extensions {
    pub(super) is_ca: bool,
    pub(super) path_len: Option<u32>,
    pub(super) key_usage: Option<Vec<&'static str>>,
    pub(super) ext_key_usage: Vec<String>,
    pub(super) names: Names,
    pub(super) name_constraints: Option<Vec<NameForm>>,
    pub(super) subject_key_id: Option<Vec<u8>>,
    pub(super) authority_key_id: Option<Vec<u8>>,
    pub(super) crl_distribution_points: Option<Vec<u8>>,
    pub(super) unknown_critical: Vec<String>,
}

impl Extensions {
    pub(super) fn read(explicit: &Element<'_>) -> Result<Self, CertError> {
        let mut found = Self::default();
        let duplicate = |oid| CertError::DuplicateExtension { oid };
        extension::each(explicit, duplicate, |extension| Ok(found.take(extension)?))?;
        Ok(found)
    }

    fn take(&mut self, extension: &Extension<'_>) -> Result<(), DerError> {
        let mut content = extension.value.inside();
        match ObjectIdentifier::from_bytes(extension.id) {
            Ok(oid::BASIC_CONSTRAINTS) => {
                (self.is_ca, self.path_len) = basic_constraints(&mut content)?;
            }
            Ok(oid::KEY_USAGE) => self.key_usage = Some(key_usage(&mut content)?),
            Ok(oid::EXT_KEY_USAGE) => self.ext_key_usage = ext_key_usage(&mut content)?,
            Ok(oid::SUBJECT_ALT_NAME) => {
                self.names = san::read(extension.value.value)?;
                return Ok(());
            }
            Ok(oid::SUBJECT_KEY_ID) => {
                let id = content.expect(OCTET_STRING, "a key identifier")?;
                self.subject_key_id = Some(id.value.to_vec());
            }
            Ok(oid::AUTHORITY_KEY_ID) => {
                let parts = content.expect(SEQUENCE, "an authority key identifier")?;
                let id = parts.inside().optional(context_primitive(0))?;
                self.authority_key_id = id.map(|id| id.value.to_vec());
            }
            // Where lists are found; nothing is fetched, but the parts of a list are told apart by it.
            Ok(oid::CRL_DISTRIBUTION_POINTS) => {
                self.crl_distribution_points = Some(extension.value.value.to_vec());
                return Ok(());
            }
            Ok(oid::NAME_CONSTRAINTS) => {
                self.name_constraints = Some(constrained_forms(&mut content)?);
            }
            // Rules about policies of certificates below: verifiers apply them.
            Ok(oid::CERTIFICATE_POLICIES) => return Ok(()),
            _ => {
                if extension.critical {
                    self.unknown_critical.push(oid::dotted(extension.id));
                }
                return Ok(());
            }
        }
        content.finish()
    }
}

fn basic_constraints(content: &mut Reader<'_>) -> Result<(bool, Option<u32>), DerError> {
    let mut inside = content.expect(SEQUENCE, "basic constraints")?.inside();
    // FALSE is the default and must be left out; CAs that write it exist.
    let is_ca = match inside.optional(BOOLEAN)? {
        Some(value) => value.boolean()?,
        None => false,
    };
    let path_len = match inside.optional(INTEGER)? {
        Some(value) => Some(value.unsigned_u32()?),
        None => None,
    };
    inside.finish()?;
    Ok((is_ca, path_len))
}

fn key_usage(content: &mut Reader<'_>) -> Result<Vec<&'static str>, DerError> {
    let bits = content.expect(BIT_STRING, "key usages")?;
    let [unused @ 0..=7, octets @ ..] = bits.value else {
        return Err(bits.bad("BIT STRING"));
    };
    if *unused > 0 && octets.is_empty() {
        return Err(bits.bad("BIT STRING"));
    }
    let is_set = |index: usize| {
        let octet = octets.get(index / 8).copied().unwrap_or(0);
        octet & (0x80 >> (index % 8)) != 0
    };
    let set = KEY_USAGES
        .into_iter()
        .enumerate()
        .filter(|(index, _)| is_set(*index));
    Ok(set.map(|(_, name)| name).collect())
}

fn ext_key_usage(content: &mut Reader<'_>) -> Result<Vec<String>, DerError> {
    let mut inside = content.expect(SEQUENCE, "purposes")?.inside();
    let mut purposes = Vec::new();
    while !inside.is_empty() {
        let purpose = inside.expect(OID, "a purpose")?;
        purposes.push(oid::purpose_text(purpose.value));
    }
    Ok(purposes)
}

/// The forms of the bases of all subtrees, permitted and excluded (RFC 5280 §4.2.1.10), each once.
fn constrained_forms(content: &mut Reader<'_>) -> Result<Vec<NameForm>, DerError> {
    let mut inside = content.expect(SEQUENCE, "name constraints")?.inside();
    let mut forms = Vec::new();
    for list in [inside.optional(context(0))?, inside.optional(context(1))?] {
        let Some(list) = list else { continue };
        let mut subtrees = list.inside();
        while !subtrees.is_empty() {
            let subtree = subtrees.expect(SEQUENCE, "a subtree")?;
            let form = NameForm::of(&subtree.inside().any("a subtree's base")?);
            if !forms.contains(&form) {
                forms.push(form);
            }
        }
    }
    inside.finish()?;
    Ok(forms)
}
