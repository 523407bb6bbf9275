//! The meaning of a config as JSON with sorted keys: what its digest covers, and what a restart is needed for.

use aws_lc_rs::digest::{SHA256, digest as hash};
use serde_json::{Map, Value, json};
use vidimus_x509::profile::{ExtendedKeyUsage, Profile, StaticSans, SubjectFields};

use super::{
    AdminListen, AdminPin, Api, Config, Parent, Pki,
    profile::{KEY_USAGES, VALIDITY_POLICIES},
};

/// SHA-256 of the canonical JSON, lower-case hex.
pub(super) fn digest(config: &Config) -> String {
    let mut value = boot_part(config);
    if let Some(fields) = value.as_object_mut() {
        fields.insert("hot".to_owned(), hot_part(&config.pki));
    }
    let mut text = String::new();
    write(&value, &mut text);
    data_encoding::HEXLOWER.encode(hash(&SHA256, text.as_bytes()).as_ref())
}

/// What a running node takes from its config at the start only.
pub(super) fn boot_part(config: &Config) -> Value {
    json!({
        "name": config.name,
        "role": config.role.word(),
        "bootstrap": config.bootstrap.as_ref().map(AdminPin::to_hex),
        "api": api(&config.api),
        "root_key_alg": config.pki.key_algorithm.to_string(),
        "root_subject": subject(&config.pki.subject),
        "root_validity_years": config.pki.root_validity_years,
        "path_len_constraint": config.pki.path_len_constraint,
    })
}

fn hot_part(pki: &Pki) -> Value {
    json!({
        "root_leaf_issuance": pki.root_leaf_issuance,
        "parent": pki.parent.as_ref().map(parent),
        "profiles": pki.profiles.iter().map(profile).collect::<Vec<_>>(),
    })
}

fn api(api: &Api) -> Value {
    json!({
        "listen": api.listen.to_string(),
        "names": api.names,
        "socket": api.socket.as_ref().map(|path| path.to_string_lossy()),
        "admin_listen": match api.admin_listen {
            AdminListen::Tcp(address) => address.to_string(),
            AdminListen::Unix => "unix".to_owned(),
        },
    })
}

fn parent(parent: &Parent) -> Value {
    match parent {
        Parent::Certificate(der) => json!({ "ca_cert": data_encoding::HEXLOWER.encode(der) }),
        Parent::Sha256(sha256) => json!({ "sha256": data_encoding::HEXLOWER.encode(sha256) }),
    }
}

fn subject(fields: &SubjectFields) -> Value {
    json!({
        "common_name": fields.common_name,
        "organization": fields.organization,
        "country": fields.country,
        "province": fields.province,
        "locality": fields.locality,
    })
}

fn profile(profile: &Profile) -> Value {
    let extensions = profile.extra_extensions.iter().map(|extension| {
        json!({
            "oid": extension.oid.to_string(),
            "critical": extension.critical,
            "value": extension.value,
        })
    });
    let usages = profile.ext_key_usage.iter().map(|usage| match usage {
        ExtendedKeyUsage::ServerAuth => "server_auth".to_owned(),
        ExtendedKeyUsage::ClientAuth => "client_auth".to_owned(),
        ExtendedKeyUsage::Oid(oid) => oid.to_string(),
    });
    json!({
        "name": profile.name,
        "key_alg": profile.key_alg.to_string(),
        "subject": subject(&profile.subject),
        "validity_days": profile.validity_days,
        "validity_policy": word_of(&VALIDITY_POLICIES, profile.validity_policy),
        "is_ca": profile.basic_constraints.is_ca,
        "path_len": profile.basic_constraints.path_len,
        "key_usage": profile
            .key_usage
            .iter()
            .map(|usage| word_of(&KEY_USAGES, *usage))
            .collect::<Vec<_>>(),
        "ext_key_usage": usages.collect::<Vec<_>>(),
        "sans": sans(&profile.sans),
        "allow_request_sans": profile.allow_request_sans,
        "extra_extensions": extensions.collect::<Vec<_>>(),
    })
}

fn sans(sans: &StaticSans) -> Value {
    json!({
        "dns": sans.dns,
        "ip": sans.ip.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "email": sans.email,
        "uri": sans.uri,
        "krb5_principal": sans.krb5_principal,
        "upn": sans.upn,
    })
}

fn word_of<T: PartialEq>(words: &[(&'static str, T)], value: T) -> Option<&'static str> {
    words
        .iter()
        .find(|(_, candidate)| *candidate == value)
        .map(|(word, _)| *word)
}

/// JSON with sorted keys and no white space, whatever order the map type of this build keeps.
fn write(value: &Value, text: &mut String) {
    match value {
        Value::Object(fields) => write_object(fields, text),
        Value::Array(items) => {
            text.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    text.push(',');
                }
                write(item, text);
            }
            text.push(']');
        }
        scalar @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_)) => {
            text.push_str(&scalar.to_string());
        }
    }
}

fn write_object(fields: &Map<String, Value>, text: &mut String) {
    let mut sorted: Vec<_> = fields.iter().collect();
    sorted.sort_by_key(|(name, _)| name.as_str());
    text.push('{');
    for (index, (name, value)) in sorted.into_iter().enumerate() {
        if index > 0 {
            text.push(',');
        }
        text.push_str(&Value::from(name.as_str()).to_string());
        text.push(':');
        write(value, text);
    }
    text.push('}');
}
