//! The extensions of a list (RFC 5280 §5.2).

use const_oid::ObjectIdentifier;

use super::{CrlError, CrlNumber, Scope};
use crate::{
    asn1::{DerError, Element, INTEGER, SEQUENCE, context_primitive},
    extension::{self, Extension},
    oid,
};

#[derive(Debug, Default)]
pub(super) struct Extensions {
    pub(super) number: Option<CrlNumber>,
    pub(super) authority_key_id: Option<Box<[u8]>>,
    pub(super) scope: Scope,
}

impl Extensions {
    pub(super) fn read(explicit: &Element<'_>) -> Result<Self, CrlError> {
        let mut found = Self::default();
        let duplicate = |oid| CrlError::DuplicateExtension { oid };
        extension::each(explicit, duplicate, |extension| found.take(extension))?;
        Ok(found)
    }

    fn take(&mut self, extension: &Extension<'_>) -> Result<(), CrlError> {
        match ObjectIdentifier::from_bytes(extension.id) {
            Ok(oid::CRL_NUMBER) if extension.critical => {
                return Err(extension
                    .value
                    .bad("cRLNumber: marked critical (RFC 5280 §5.2.3)")
                    .into());
            }
            Ok(oid::CRL_NUMBER) => {
                let mut content = extension.value.inside();
                let number = content.expect(INTEGER, "a list number")?;
                content.finish()?;
                self.number = Some(CrlNumber::read(&number)?);
            }
            Ok(oid::AUTHORITY_KEY_ID) => {
                self.authority_key_id = authority_key_id(&extension.value)?;
            }
            Ok(oid::ISSUING_DISTRIBUTION_POINT) => self.scope = Scope::read(&extension.value)?,
            Ok(oid::DELTA_CRL_INDICATOR) => return Err(CrlError::Delta),
            // Where delta lists are found, which nothing here fetches.
            Ok(oid::FRESHEST_CRL) => {}
            _ if extension.critical => {
                return Err(CrlError::UnknownCritical {
                    oid: oid::dotted(extension.id),
                });
            }
            _ => {}
        }
        Ok(())
    }
}

fn authority_key_id(value: &Element<'_>) -> Result<Option<Box<[u8]>>, DerError> {
    let mut content = value.inside();
    let parts = content.expect(SEQUENCE, "an authority key identifier")?;
    content.finish()?;
    let id = parts.inside().optional(context_primitive(0))?;
    Ok(id.map(|id| id.value.into()))
}
