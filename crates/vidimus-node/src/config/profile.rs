//! `pki.profiles[]`: each a [`Profile`] of `vidimus-x509`, which holds the rules about what a certificate may be.

use std::{collections::BTreeMap, net::IpAddr};

use vidimus_x509::profile::{
    BasicConstraints, ExtendedKeyUsage, ExtraExtension, KeyAlgorithm, KeyUsage, ObjectIdentifier,
    Profile, StaticSans, SubjectFields, ValidityPolicy,
};

use super::{
    name::{is_dns_name_or_wildcard, is_email, is_uri},
    pki::KEY_ALGORITHMS,
    problem::{Place, quote},
    reader::{Fields, Text, list_of},
};

/// More profiles than this are no config.
const MAX_PROFILES: usize = 1000;

/// The longest validity, in days: a hundred years.
const MAX_VALIDITY_DAYS: u32 = 36_525;

/// Every key usage with its word in a config.
pub(super) const KEY_USAGES: [(&str, KeyUsage); 5] = [
    ("digital_signature", KeyUsage::DigitalSignature),
    ("key_encipherment", KeyUsage::KeyEncipherment),
    ("key_agreement", KeyUsage::KeyAgreement),
    ("cert_sign", KeyUsage::CertSign),
    ("crl_sign", KeyUsage::CrlSign),
];

/// Both validity policies with their words.
pub(super) const VALIDITY_POLICIES: [(&str, ValidityPolicy); 2] = [
    ("cap", ValidityPolicy::Cap),
    ("reject", ValidityPolicy::Reject),
];

pub(super) fn read(pki: &mut Fields<'_>) -> Vec<Profile> {
    let blocks = pki.blocks("profiles");
    if blocks.len() > MAX_PROFILES {
        let found = format!("{} profiles", blocks.len());
        pki.refuse(pki, found, format!("at most {MAX_PROFILES}"));
        return Vec::new();
    }
    let mut first_uses: BTreeMap<String, Place> = BTreeMap::new();
    let mut profiles = Vec::new();
    for block in blocks {
        if let Some((profile, place)) = one(block, &first_uses) {
            first_uses.entry(profile.name.clone()).or_insert(place);
            profiles.push(profile);
        }
    }
    profiles
}

/// A distinguished name's fields; whether `common_name` must be there is the caller's matter.
pub(super) fn subject_fields(block: &mut Fields<'_>) -> SubjectFields {
    // Upper bounds of RFC 5280 appendix A.1: ub-common-name, ub-organization-name, ub-state-name, ub-locality-name.
    SubjectFields {
        common_name: bounded(block, "common_name", 64),
        organization: bounded(block, "organization", 64),
        country: country(block),
        province: bounded(block, "province", 128),
        locality: bounded(block, "locality", 128),
    }
}

fn bounded(block: &mut Fields<'_>, name: &'static str, most: usize) -> String {
    let Some(text) = block.text(name) else {
        return String::new();
    };
    if text.value.chars().count() > most || text.value.chars().any(char::is_control) {
        block.refuse(
            &text,
            quote(text.value),
            format!("at most {most} characters, none of them control characters"),
        );
    }
    text.value.to_owned()
}

fn country(block: &mut Fields<'_>) -> String {
    let Some(text) = block.text("country") else {
        return String::new();
    };
    if text.value.len() != 2 || !text.value.bytes().all(|byte| byte.is_ascii_uppercase()) {
        block.refuse(&text, quote(text.value), "two capital letters of ISO 3166");
    }
    text.value.to_owned()
}

fn one(mut block: Fields<'_>, first_uses: &BTreeMap<String, Place>) -> Option<(Profile, Place)> {
    let name = profile_name(&mut block, first_uses);
    let key_algorithm = block.required_word("key_alg", &KEY_ALGORITHMS);
    let validity_days = block.number("validity_days", 1..=MAX_VALIDITY_DAYS);
    if block.lacks("validity_days") {
        block.missing(
            "validity_days",
            format!("a whole number from 1 to {MAX_VALIDITY_DAYS}"),
        );
    }
    let subject = match block.block("subject") {
        Some(mut subject) => {
            let fields = subject_fields(&mut subject);
            subject.finish();
            fields
        }
        None => SubjectFields::default(),
    };
    let validity_policy = block
        .word("validity_policy", &VALIDITY_POLICIES)
        .unwrap_or(ValidityPolicy::Cap);
    let before = block.problem_count();
    let basic_constraints = basic_constraints(&mut block);
    let kind_is_known = block.problem_count() == before;
    let key_usage = words(&mut block, "key_usage", &KEY_USAGES);
    let ext_key_usage = ext_key_usage(&mut block);
    let sans = match block.block("sans") {
        Some(sans) => static_sans(sans),
        None => StaticSans::default(),
    };
    let profile = Profile {
        name: name
            .as_ref()
            .map(|name| name.value.to_owned())
            .unwrap_or_default(),
        key_alg: key_algorithm.unwrap_or(KeyAlgorithm::EcdsaP384),
        subject,
        validity_days: validity_days.unwrap_or(1),
        validity_policy,
        basic_constraints,
        key_usage,
        ext_key_usage,
        sans,
        allow_request_sans: block.flag("allow_request_sans"),
        extra_extensions: extra_extensions(&mut block),
    };
    // Whether it is a CA's decides most rules: an unreadable `is_ca` must not make the other fields look wrong.
    if kind_is_known {
        report_rules(&block, &profile);
    }
    block.finish();
    let name = name?;
    Some((profile, name.place))
}

fn profile_name<'tree>(
    block: &mut Fields<'tree>,
    first_uses: &BTreeMap<String, Place>,
) -> Option<Text<'tree>> {
    let name = block.required_text("name", "a name of its own")?;
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    if name.value.len() > 64 || !name.value.chars().all(plain) {
        block.refuse(
            &name,
            quote(name.value),
            "at most 64 letters, digits, `-`, `_` and `.`",
        );
    }
    if let Some(first) = first_uses.get(name.value) {
        block.refuse(
            &name,
            format!("{} again (first on line {})", quote(name.value), first.line),
            "a name of its own",
        );
    }
    Some(name)
}

/// What `vidimus-x509` says about the profile as a whole, at the field that it names.
fn report_rules(block: &Fields<'_>, profile: &Profile) {
    let Err(problems) = profile.check() else {
        return;
    };
    for problem in problems {
        block.refuse_field(&problem.field, problem.found, problem.accepted);
    }
}

fn basic_constraints(block: &mut Fields<'_>) -> BasicConstraints {
    let Some(mut constraints) = block.block("basic_constraints") else {
        return BasicConstraints::default();
    };
    let read = BasicConstraints {
        is_ca: constraints.flag("is_ca"),
        path_len: constraints
            .number("path_len", 0..=255)
            .and_then(|number| u8::try_from(number).ok()),
    };
    constraints.finish();
    read
}

fn words<T: Copy + PartialEq>(
    block: &mut Fields<'_>,
    name: &'static str,
    words: &[(&str, T)],
) -> Vec<T> {
    let mut values = Vec::new();
    for text in block.texts(name) {
        match words.iter().find(|(word, _)| *word == text.value) {
            Some((_, value)) if values.contains(value) => {
                block.refuse(&text, format!("{} again", quote(text.value)), "each once");
            }
            Some((_, value)) => values.push(*value),
            None => block.refuse(&text, quote(text.value), list_of(words)),
        }
    }
    values
}

fn ext_key_usage(block: &mut Fields<'_>) -> Vec<ExtendedKeyUsage> {
    let mut usages = Vec::new();
    for text in block.texts("ext_key_usage") {
        match extended_key_usage(text.value) {
            Some(usage) if usages.contains(&usage) => {
                block.refuse(&text, format!("{} again", quote(text.value)), "each once");
            }
            Some(usage) => usages.push(usage),
            None => block.refuse(
                &text,
                quote(text.value),
                "`server_auth`, `client_auth` or a dotted object identifier such as 1.3.6.1.5.5.7.3.4",
            ),
        }
    }
    usages
}

fn extended_key_usage(text: &str) -> Option<ExtendedKeyUsage> {
    match text {
        "server_auth" => return Some(ExtendedKeyUsage::ServerAuth),
        "client_auth" => return Some(ExtendedKeyUsage::ClientAuth),
        _ => {}
    }
    let oid = object_identifier(text)?;
    // The same purpose under its name and its number is a duplicate.
    Some(match oid.to_string().as_str() {
        "1.3.6.1.5.5.7.3.1" => ExtendedKeyUsage::ServerAuth,
        "1.3.6.1.5.5.7.3.2" => ExtendedKeyUsage::ClientAuth,
        _ => ExtendedKeyUsage::Oid(oid),
    })
}

/// Two arcs or more, decimal without leading zeros, each below 2^31.
fn object_identifier(text: &str) -> Option<ObjectIdentifier> {
    let plain = |arc: &str| {
        arc.bytes().all(|byte| byte.is_ascii_digit())
            && (arc == "0" || !arc.starts_with('0'))
            && arc.parse::<i32>().is_ok()
    };
    if text.split('.').all(plain) {
        ObjectIdentifier::new(text).ok()
    } else {
        None
    }
}

fn static_sans(mut block: Fields<'_>) -> StaticSans {
    let sans = StaticSans {
        dns: checked(&mut block, "dns", is_dns_name_or_wildcard, "a DNS name"),
        ip: checked(
            &mut block,
            "ip",
            |text| text.parse::<IpAddr>().is_ok(),
            "an IP address",
        )
        .iter()
        .filter_map(|text| text.parse().ok())
        .collect(),
        email: checked(
            &mut block,
            "email",
            is_email,
            "an address such as ops@example.org",
        ),
        uri: checked(&mut block, "uri", is_uri, "an absolute URI"),
        krb5_principal: checked(
            &mut block,
            "krb5_principal",
            is_ascii_pair,
            "`name[/instance]@REALM`",
        ),
        upn: checked(&mut block, "upn", is_ascii_pair, "`user@domain`"),
    };
    block.finish();
    sans
}

fn is_ascii_pair(text: &str) -> bool {
    text.split_once('@').is_some_and(|(left, right)| {
        !left.is_empty() && !right.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic())
    })
}

fn checked(
    block: &mut Fields<'_>,
    name: &'static str,
    accepts: impl Fn(&str) -> bool,
    accepted: &str,
) -> Vec<String> {
    let mut values: Vec<String> = Vec::new();
    for text in block.texts(name) {
        if !accepts(text.value) {
            block.refuse(&text, quote(text.value), accepted);
        } else if values.iter().any(|value| value == text.value) {
            block.refuse(&text, format!("{} again", quote(text.value)), "each once");
        } else {
            values.push(text.value.to_owned());
        }
    }
    values
}

fn extra_extensions(block: &mut Fields<'_>) -> Vec<ExtraExtension> {
    let mut extensions = Vec::new();
    for mut extension in block.blocks("extra_extensions") {
        let oid = extension.required_text("oid", "a dotted object identifier");
        let critical = extension.flag("critical");
        let value = extension.bytes("value");
        extension.finish();
        if let Some(oid) = oid {
            match object_identifier(oid.value) {
                Some(oid) => extensions.push(ExtraExtension {
                    oid,
                    critical,
                    value,
                }),
                None => block.refuse(&oid, quote(oid.value), "a dotted object identifier"),
            }
        }
    }
    extensions
}
