//! A distinguished name made from fields.

use const_oid::ObjectIdentifier;

use super::{ProfileProblem, SubjectFields};
use crate::{
    asn1::{PRINTABLE_STRING, UTF8_STRING, write},
    oid,
};

impl SubjectFields {
    /// What can't be encoded, below `prefix`.
    ///
    /// The lengths are the upper bounds of RFC 5280 appendix A.1.
    pub(crate) fn problems(&self, prefix: &str) -> Vec<ProfileProblem> {
        let mut problems = Vec::new();
        for (field, value, most) in [
            ("common_name", &self.common_name, 64),
            ("organization", &self.organization, 64),
            ("province", &self.province, 128),
            ("locality", &self.locality, 128),
        ] {
            let length = value.chars().count();
            if length > most || value.chars().any(char::is_control) {
                problems.push(ProfileProblem {
                    field: format!("{prefix}.{field}"),
                    found: format!("{:?} ({length} characters)", cut(value)),
                    accepted: format!("at most {most} characters, none a control character"),
                });
            }
        }
        let country = self.country.as_bytes();
        let is_code = country.len() == 2 && country.iter().all(u8::is_ascii_alphabetic);
        if !country.is_empty() && !is_code {
            problems.push(ProfileProblem {
                field: format!("{prefix}.country"),
                found: format!("{:?}", cut(&self.country)),
                accepted: "two letters (ISO 3166)".to_owned(),
            });
        }
        problems
    }

    /// The name, from the least specific part to the most.
    pub(crate) fn to_der(&self) -> Vec<u8> {
        let parts: Vec<Vec<u8>> = [
            (oid::COUNTRY, &self.country),
            (oid::PROVINCE, &self.province),
            (oid::LOCALITY, &self.locality),
            (oid::ORGANIZATION, &self.organization),
            (oid::COMMON_NAME, &self.common_name),
        ]
        .into_iter()
        .filter(|(_, value)| !value.is_empty())
        .map(|(kind, value)| write::set_of_one(&attribute(&kind, value)))
        .collect();
        let parts: Vec<&[u8]> = parts.iter().map(Vec::as_slice).collect();
        write::sequence(&parts)
    }
}

/// `PrintableString` where the text fits, `UTF8String` otherwise (RFC 5280 §4.1.2.4).
fn attribute(kind: &ObjectIdentifier, value: &str) -> Vec<u8> {
    let printable = value
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || b" '()+,-./:=?".contains(&byte));
    let tag = if printable {
        PRINTABLE_STRING
    } else {
        UTF8_STRING
    };
    let value = write::element(tag, &[value.as_bytes()]);
    write::sequence(&[&write::oid(kind), &value])
}

/// At most 80 characters of a text, for messages.
pub(crate) fn cut(text: &str) -> String {
    text.chars().take(80).collect()
}
