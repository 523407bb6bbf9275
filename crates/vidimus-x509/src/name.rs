//! Distinguished names (X.501, RFC 5280 §4.1.2.4): checked, and shown to people.
#![warn(clippy::indexing_slicing, clippy::arithmetic_side_effects)]

use crate::{
    asn1::{
        BMP_STRING, DerError, Element, IA5_STRING, NUMERIC_STRING, OID, PRINTABLE_STRING, Reader,
        SEQUENCE, SET, TELETEX_STRING, UTF8_STRING,
    },
    oid,
};

/// The largest subject taken from a request, in bytes of DER.
pub const MAX_SUBJECT: usize = 4 * 1024;

/// Why a subject can't be copied into a certificate.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// Not a name.
    #[error(transparent)]
    Der(#[from] DerError),
    /// A value that verifiers refuse to read, or that would deceive them.
    #[error(
        "attribute {attribute} is {found}; accepted: text without control characters, in a string \
         type that X.509 readers know"
    )]
    Value {
        /// Which attribute.
        attribute: String,
        /// What is wrong with its value.
        found: &'static str,
    },
    /// The attributes of a multi-valued part are not in the order that DER asks for.
    #[error("the attributes of a multi-valued part are not in DER's order")]
    Order,
    /// Larger than [`MAX_SUBJECT`].
    #[error("subject of {found} bytes; accepted: at most {MAX_SUBJECT}")]
    TooLarge {
        /// Its size in bytes.
        found: usize,
    },
}

/// Checks a subject that is going to be copied into a certificate byte for byte.
///
/// Strict on purpose: what we copy unread, others must read. Go refuses a certificate whose name
/// has a string of an unknown type or with invalid content, and a NUL inside a common name has
/// fooled verifiers written in C.
pub(crate) fn check(name: &Element<'_>) -> Result<(), NameError> {
    if name.raw.len() > MAX_SUBJECT {
        return Err(NameError::TooLarge {
            found: name.raw.len(),
        });
    }
    let mut parts = name.inside();
    while !parts.is_empty() {
        let part = parts.expect(SET, "a relative distinguished name")?;
        let mut attributes = part.inside();
        let mut last: &[u8] = &[];
        loop {
            let attribute = attributes.expect(SEQUENCE, "a name attribute")?;
            if attribute.raw < last {
                return Err(NameError::Order);
            }
            last = attribute.raw;
            check_attribute(&attribute)?;
            if attributes.is_empty() {
                break;
            }
        }
    }
    Ok(())
}

fn check_attribute(attribute: &Element<'_>) -> Result<(), NameError> {
    let mut inside = attribute.inside();
    let kind = inside.expect(OID, "an attribute type")?;
    oid::check(&kind)?;
    let value = inside.any("an attribute value")?;
    inside.finish()?;
    let found = match string(&value) {
        Some(text) if text.chars().any(char::is_control) => "text with control characters",
        Some(_) => return Ok(()),
        None => "of another type, or not valid for its type",
    };
    Err(NameError::Value {
        attribute: oid::attribute_text(kind.value),
        found,
    })
}

/// For people: RFC 4514, most specific part first. Never fails; what can't be read is shown as hex.
pub(crate) fn text(name: &Element<'_>) -> String {
    let mut parts = Vec::new();
    let mut reader = name.inside();
    while let Ok(part) = reader.expect(SET, "a relative distinguished name") {
        let mut attributes = Vec::new();
        let mut inside = part.inside();
        while let Ok(attribute) = inside.expect(SEQUENCE, "a name attribute") {
            attributes.push(attribute_text(&attribute));
        }
        parts.push(attributes.join("+"));
    }
    parts.reverse();
    parts.join(",")
}

/// The same for a name on its own.
#[cfg(feature = "issue")]
pub(crate) fn text_of_der(name_der: &[u8]) -> String {
    Reader::single(name_der, SEQUENCE, "a name").map_or_else(|_| String::new(), |name| text(&name))
}

/// The most specific common name.
pub(crate) fn common_name(name: &Element<'_>) -> Option<String> {
    let mut found = None;
    let mut reader = name.inside();
    while let Ok(part) = reader.expect(SET, "a relative distinguished name") {
        let mut inside = part.inside();
        while let Ok(attribute) = inside.expect(SEQUENCE, "a name attribute") {
            let mut pair = attribute.inside();
            if pair
                .expect(OID, "type")
                .is_ok_and(|kind| kind.value == oid::COMMON_NAME.as_bytes())
                && let Ok(value) = pair.any("value")
                && let Some(text) = string(&value)
            {
                found = Some(text);
            }
        }
    }
    found
}

fn attribute_text(attribute: &Element<'_>) -> String {
    let mut inside = attribute.inside();
    let kind = inside.expect(OID, "an attribute type");
    let (Ok(kind), Ok(value)) = (kind, inside.any("an attribute value")) else {
        return format!("#{}", hex(attribute.raw));
    };
    let value = string(&value).map_or_else(|| format!("#{}", hex(value.raw)), |text| escape(&text));
    format!("{}={value}", oid::attribute_text(kind.value))
}

/// The text of a string of a type that names may have.
fn string(value: &Element<'_>) -> Option<String> {
    let ascii = |accept: fn(&u8) -> bool| {
        let fits = value.value.iter().all(accept);
        fits.then(|| String::from_utf8_lossy(value.value).into_owned())
    };
    match value.tag {
        UTF8_STRING => std::str::from_utf8(value.value).ok().map(str::to_owned),
        // '*', '@' and '&' are not PrintableString's, but are found in the wild and read by all.
        PRINTABLE_STRING => {
            ascii(|byte| byte.is_ascii_alphanumeric() || b" '()+,-./:=?*@&".contains(byte))
        }
        IA5_STRING => ascii(u8::is_ascii),
        NUMERIC_STRING => ascii(|byte| byte.is_ascii_digit() || *byte == b' '),
        TELETEX_STRING => Some(value.value.iter().copied().map(char::from).collect()),
        BMP_STRING => {
            let (units, rest) = value.value.as_chunks::<2>();
            let units = units.iter().copied().map(u16::from_be_bytes);
            let text = char::decode_utf16(units)
                .collect::<Result<String, _>>()
                .ok()?;
            rest.is_empty().then_some(text)
        }
        _ => None,
    }
}

/// RFC 4514 §2.4, and beyond it whatever could move a terminal's cursor or turn its direction.
fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let last = text.chars().count().saturating_sub(1);
    for (position, character) in text.chars().enumerate() {
        let special = match character {
            ',' | '+' | '"' | '\\' | '<' | '>' | ';' => true,
            '#' => position == 0,
            ' ' => position == 0 || position == last,
            _ => false,
        };
        if special {
            out.push('\\');
            out.push(character);
        } else if character.is_control() || is_invisible(character) {
            let mut bytes = [0; 4];
            for byte in character.encode_utf8(&mut bytes).bytes() {
                out.push_str(&format!("\\{byte:02X}"));
            }
        } else {
            out.push(character);
        }
    }
    out
}

fn is_invisible(character: char) -> bool {
    matches!(character,
        '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    data_encoding::HEXLOWER.encode(bytes)
}

/// A name that someone else wrote, whole.
pub(crate) fn read<'a>(reader: &mut Reader<'a>) -> Result<Element<'a>, DerError> {
    reader.expect(SEQUENCE, "a name")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::asn1::write::{element, oid, sequence, set_of_one};

    fn attribute(arcs: &str, tag: u8, value: &[u8]) -> Vec<u8> {
        let kind = const_oid::ObjectIdentifier::new_unwrap(arcs);
        sequence(&[&oid(&kind), &element(tag, &[value])])
    }

    fn check_and_text(parts: &[Vec<u8>]) -> (Result<(), NameError>, String) {
        let parts: Vec<&[u8]> = parts.iter().map(Vec::as_slice).collect();
        let der = sequence(&parts);
        let name = Reader::single(&der, SEQUENCE, "a name").unwrap();
        (check(&name), text(&name))
    }

    #[test]
    fn names_are_shown_most_specific_first_and_escaped() {
        let (checked, shown) = check_and_text(&[
            set_of_one(&attribute("2.5.4.10", PRINTABLE_STRING, b"Example, Inc")),
            set_of_one(&attribute("2.5.4.3", UTF8_STRING, "#héllo ".as_bytes())),
        ]);
        assert_eq!(checked, Ok(()));
        assert_eq!(shown, "CN=\\#héllo\\ ,O=Example\\, Inc");
    }

    #[test]
    fn an_escape_sequence_in_a_name_is_refused_and_never_reaches_a_terminal() {
        let (checked, shown) =
            check_and_text(&[set_of_one(&attribute("2.5.4.3", UTF8_STRING, b"a\x1b[2Jb"))]);
        assert!(matches!(checked, Err(NameError::Value { .. })));
        assert_eq!(shown, "CN=a\\1B[2Jb");
        let (_, shown) = check_and_text(&[set_of_one(&attribute(
            "2.5.4.3",
            UTF8_STRING,
            "\u{202e}x".as_bytes(),
        ))]);
        assert_eq!(shown, "CN=\\E2\\80\\AEx");
    }

    #[test]
    fn strings_that_verifiers_refuse_are_refused() {
        for (tag, value, good) in [
            (PRINTABLE_STRING, &b"plain"[..], true),
            (PRINTABLE_STRING, b"under_score", false),
            (UTF8_STRING, &[0xff], false),
            (BMP_STRING, &[0, b'a'], true),
            (BMP_STRING, &[0], false),
            (TELETEX_STRING, &[0xe9], true),
            (0x1c, &[0, 0, 0, b'a'], false),
            (IA5_STRING, b"a\0b", false),
        ] {
            let (checked, _) = check_and_text(&[set_of_one(&attribute("2.5.4.3", tag, value))]);
            assert_eq!(checked.is_ok(), good, "{tag:#x} {value:?}: {checked:?}");
        }
    }

    #[test]
    fn a_multi_valued_part_must_be_in_order() {
        let a = attribute("2.5.4.3", UTF8_STRING, b"a");
        let b = attribute("2.5.4.3", UTF8_STRING, b"b");
        assert_eq!(
            check_and_text(&[element(SET, &[&a, &b])]),
            (Ok(()), "CN=a+CN=b".to_owned())
        );
        assert_eq!(
            check_and_text(&[element(SET, &[&b, &a])]).0,
            Err(NameError::Order)
        );
        assert!(
            check_and_text(&[element(SET, &[])]).0.is_err(),
            "an empty part"
        );
    }
}
