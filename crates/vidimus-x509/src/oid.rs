//! The object identifiers this crate knows, and their names.
#![warn(clippy::indexing_slicing, clippy::arithmetic_side_effects)]

use const_oid::ObjectIdentifier;

use crate::asn1::{DerError, Element};

macro_rules! oids {
    ($($name:ident = $arcs:literal;)*) => {
        $(pub(crate) const $name: ObjectIdentifier = ObjectIdentifier::new_unwrap($arcs);)*
    };
}

// Keys: RFC 3279, RFC 4055, RFC 5480, RFC 8410.
oids! {
    RSA_ENCRYPTION = "1.2.840.113549.1.1.1";
    RSASSA_PSS = "1.2.840.113549.1.1.10";
    MGF1 = "1.2.840.113549.1.1.8";
    EC_PUBLIC_KEY = "1.2.840.10045.2.1";
    SECP256R1 = "1.2.840.10045.3.1.7";
    SECP384R1 = "1.3.132.0.34";
    SECP521R1 = "1.3.132.0.35";
    ED25519 = "1.3.101.112";
}

// Digests and signatures.
oids! {
    SHA256 = "2.16.840.1.101.3.4.2.1";
    SHA384 = "2.16.840.1.101.3.4.2.2";
    SHA512 = "2.16.840.1.101.3.4.2.3";
    ECDSA_SHA256 = "1.2.840.10045.4.3.2";
    ECDSA_SHA384 = "1.2.840.10045.4.3.3";
    ECDSA_SHA512 = "1.2.840.10045.4.3.4";
    RSA_SHA256 = "1.2.840.113549.1.1.11";
    RSA_SHA384 = "1.2.840.113549.1.1.12";
    RSA_SHA512 = "1.2.840.113549.1.1.13";
}

// Attributes of names and requests: RFC 4519, RFC 2985.
oids! {
    COMMON_NAME = "2.5.4.3";
    EXTENSION_REQUEST = "1.2.840.113549.1.9.14";
}

// Extensions: RFC 5280 §4.2.
oids! {
    SUBJECT_KEY_ID = "2.5.29.14";
    KEY_USAGE = "2.5.29.15";
    SUBJECT_ALT_NAME = "2.5.29.17";
    BASIC_CONSTRAINTS = "2.5.29.19";
    NAME_CONSTRAINTS = "2.5.29.30";
    CRL_DISTRIBUTION_POINTS = "2.5.29.31";
    CERTIFICATE_POLICIES = "2.5.29.32";
    AUTHORITY_KEY_ID = "2.5.29.35";
    EXT_KEY_USAGE = "2.5.29.37";
}

// Extensions of revocation lists and of their entries: RFC 5280 §5.2, §5.3.
oids! {
    CRL_NUMBER = "2.5.29.20";
    CRL_REASON = "2.5.29.21";
    INVALIDITY_DATE = "2.5.29.24";
    DELTA_CRL_INDICATOR = "2.5.29.27";
    ISSUING_DISTRIBUTION_POINT = "2.5.29.28";
    CERTIFICATE_ISSUER = "2.5.29.29";
    FRESHEST_CRL = "2.5.29.46";
}

#[cfg(feature = "issue")]
oids! {
    COUNTRY = "2.5.4.6";
    LOCALITY = "2.5.4.7";
    PROVINCE = "2.5.4.8";
    ORGANIZATION = "2.5.4.10";
    SERVER_AUTH = "1.3.6.1.5.5.7.3.1";
    CLIENT_AUTH = "1.3.6.1.5.5.7.3.2";
    KRB5_PRINCIPAL = "1.3.6.1.5.2.2";
    UPN = "1.3.6.1.4.1.311.20.2.3";
}

/// What people call a digest, key or signature algorithm; its dotted form where it has no name.
pub(crate) fn algorithm_text(oid: &ObjectIdentifier) -> String {
    named(oid.as_bytes(), ALGORITHMS)
}

/// What people call a purpose of extKeyUsage.
pub(crate) fn purpose_text(id: &[u8]) -> String {
    named(id, PURPOSES)
}

/// The short name of a name attribute (RFC 4514 §3 and the ones OpenSSL prints).
pub(crate) fn attribute_text(id: &[u8]) -> String {
    named(id, ATTRIBUTES)
}

/// The dotted form of an identifier's content, and hex where it has none.
///
/// By hand, since identifiers in the wild are longer than the library's, and wider: the arcs under
/// 2.25 have 128 bits.
pub(crate) fn dotted(id: &[u8]) -> String {
    arcs(id).map_or_else(
        || format!("#{}", crate::name::hex(id)),
        |arcs| {
            let arcs: Vec<String> = arcs.iter().map(u128::to_string).collect();
            arcs.join(".")
        },
    )
}

/// That an element's content is an identifier's (X.690 §8.19).
pub(crate) fn check(element: &Element<'_>) -> Result<(), DerError> {
    if arcs(element.value).is_some() {
        Ok(())
    } else {
        Err(element.bad("OBJECT IDENTIFIER"))
    }
}

fn arcs(id: &[u8]) -> Option<Vec<u128>> {
    let mut subidentifiers = Vec::new();
    let mut arc = 0_u128;
    let mut is_first = true;
    for octet in id {
        if is_first && *octet == 0x80 || arc >> 121 != 0 {
            return None;
        }
        arc = (arc << 7) | u128::from(octet & 0x7f);
        is_first = octet & 0x80 == 0;
        if is_first {
            subidentifiers.push(arc);
            arc = 0;
        }
    }
    let (&first, rest) = subidentifiers.split_first()?;
    let root = (first / 40).min(2);
    let mut arcs = vec![root, first.checked_sub(root.checked_mul(40)?)?];
    arcs.extend(rest);
    is_first.then_some(arcs)
}

fn named(id: &[u8], table: &[(ObjectIdentifier, &str)]) -> String {
    table
        .iter()
        .find(|(known, _)| known.as_bytes() == id)
        .map_or_else(|| dotted(id), |(_, name)| (*name).to_owned())
}

const fn at(arcs: &str) -> ObjectIdentifier {
    ObjectIdentifier::new_unwrap(arcs)
}

const ALGORITHMS: &[(ObjectIdentifier, &str)] = &[
    (at("1.2.840.113549.1.1.2"), "RSA with MD2"),
    (at("1.2.840.113549.1.1.4"), "RSA with MD5"),
    (at("1.2.840.113549.1.1.5"), "RSA with SHA-1"),
    (at("1.3.14.3.2.29"), "RSA with SHA-1"),
    (at("1.2.840.113549.1.1.14"), "RSA with SHA-224"),
    (RSA_SHA256, "RSA with SHA-256"),
    (RSA_SHA384, "RSA with SHA-384"),
    (RSA_SHA512, "RSA with SHA-512"),
    (RSASSA_PSS, "RSA-PSS"),
    (MGF1, "MGF1"),
    (RSA_ENCRYPTION, "RSA"),
    (at("1.2.840.10040.4.1"), "DSA"),
    (at("1.2.840.10040.4.3"), "DSA with SHA-1"),
    (at("2.16.840.1.101.3.4.3.2"), "DSA with SHA-256"),
    (at("1.2.840.10045.4.1"), "ECDSA with SHA-1"),
    (at("1.2.840.10045.4.3.1"), "ECDSA with SHA-224"),
    (ECDSA_SHA256, "ECDSA with SHA-256"),
    (ECDSA_SHA384, "ECDSA with SHA-384"),
    (ECDSA_SHA512, "ECDSA with SHA-512"),
    (at("2.16.840.1.101.3.4.3.10"), "ECDSA with SHA3-256"),
    (at("2.16.840.1.101.3.4.3.11"), "ECDSA with SHA3-384"),
    (at("1.3.101.110"), "X25519"),
    (ED25519, "Ed25519"),
    (at("1.3.101.113"), "Ed448"),
    (at("2.16.840.1.101.3.4.3.17"), "ML-DSA-44"),
    (at("2.16.840.1.101.3.4.3.18"), "ML-DSA-65"),
    (at("2.16.840.1.101.3.4.3.19"), "ML-DSA-87"),
    (at("1.2.840.113549.2.5"), "MD5"),
    (at("1.3.14.3.2.26"), "SHA-1"),
    (at("2.16.840.1.101.3.4.2.4"), "SHA-224"),
    (SHA256, "SHA-256"),
    (SHA384, "SHA-384"),
    (SHA512, "SHA-512"),
    (SECP256R1, "P-256"),
    (SECP384R1, "P-384"),
    (SECP521R1, "P-521"),
    (at("1.3.132.0.33"), "P-224"),
    (at("1.3.132.0.10"), "secp256k1"),
    (at("1.3.36.3.3.2.8.1.1.7"), "brainpoolP256r1"),
    (at("1.3.36.3.3.2.8.1.1.11"), "brainpoolP384r1"),
];

const PURPOSES: &[(ObjectIdentifier, &str)] = &[
    (at("2.5.29.37.0"), "anyExtendedKeyUsage"),
    (at("1.3.6.1.5.5.7.3.1"), "serverAuth"),
    (at("1.3.6.1.5.5.7.3.2"), "clientAuth"),
    (at("1.3.6.1.5.5.7.3.3"), "codeSigning"),
    (at("1.3.6.1.5.5.7.3.4"), "emailProtection"),
    (at("1.3.6.1.5.5.7.3.8"), "timeStamping"),
    (at("1.3.6.1.5.5.7.3.9"), "OCSPSigning"),
];

const ATTRIBUTES: &[(ObjectIdentifier, &str)] = &[
    (COMMON_NAME, "CN"),
    (at("2.5.4.4"), "SN"),
    (at("2.5.4.5"), "serialNumber"),
    (at("2.5.4.6"), "C"),
    (at("2.5.4.7"), "L"),
    (at("2.5.4.8"), "ST"),
    (at("2.5.4.9"), "STREET"),
    (at("2.5.4.10"), "O"),
    (at("2.5.4.11"), "OU"),
    (at("2.5.4.12"), "title"),
    (at("2.5.4.17"), "postalCode"),
    (at("2.5.4.42"), "GN"),
    (at("2.5.4.97"), "organizationIdentifier"),
    (at("0.9.2342.19200300.100.1.1"), "UID"),
    (at("0.9.2342.19200300.100.1.25"), "DC"),
    (at("1.2.840.113549.1.9.1"), "emailAddress"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers_are_shown_dotted_however_wide() {
        for (id, text) in [
            (&[0x2a, 0x86, 0x48][..], "1.2.840"),
            (&[0x88, 0x37, 1], "2.999.1"),
            (&[0x27], "0.39"),
            (&[], "#"),
            (&[0x2a, 0x80, 1], "#2a8001"),
            (&[0x2a, 0x81], "#2a81"),
        ] {
            assert_eq!(dotted(id), text);
        }
        // 2.25 and a UUID of all ones: 19 groups of 7 bits.
        let mut uuid = vec![0x69, 0x83];
        uuid.extend([0xff; 17]);
        uuid.push(0x7f);
        assert_eq!(dotted(&uuid), format!("2.25.{}", u128::MAX));
    }
}
