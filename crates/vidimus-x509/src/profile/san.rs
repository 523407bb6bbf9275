//! Static names of a profile, in the form of `GeneralName` (RFC 5280 §4.2.1.6).

use super::{ProfileProblem, StaticSans, host, subject::cut};
use crate::{
    asn1::{context, context_primitive, write},
    oid,
};

/// `GeneralString` (X.680): what Kerberos writes its names in.
const GENERAL_STRING: u8 = 0x1b;

/// Names as they go into a certificate, and as people are shown them.
#[derive(Debug, Clone, Default)]
pub(crate) struct GeneralNames {
    /// Each a `GeneralName`, one after the other.
    pub(crate) der: Vec<u8>,
    pub(crate) texts: Vec<String>,
}

impl GeneralNames {
    pub(crate) fn dns(&mut self, name: &str) {
        self.push(
            &write::element(context_primitive(2), &[name.as_bytes()]),
            name.to_owned(),
        );
    }

    pub(crate) fn ip(&mut self, ip: std::net::IpAddr) {
        let der = match ip {
            std::net::IpAddr::V4(v4) => write::element(context_primitive(7), &[&v4.octets()]),
            std::net::IpAddr::V6(v6) => write::element(context_primitive(7), &[&v6.octets()]),
        };
        self.push(&der, ip.to_string());
    }

    /// Each name once; its text says all of it.
    fn push(&mut self, der: &[u8], text: String) {
        if !self.texts.contains(&text) {
            self.der.extend_from_slice(der);
            self.texts.push(text);
        }
    }
}

impl StaticSans {
    /// What can't be encoded or would deceive.
    pub(super) fn problems(&self) -> Vec<ProfileProblem> {
        let mut problems = Vec::new();
        let mut list = |kind: &str, names: &[String], good: fn(&str) -> bool, accepted: &str| {
            for (index, name) in names.iter().enumerate() {
                if !good(name) {
                    problems.push(ProfileProblem {
                        field: format!("sans.{kind}[{index}]"),
                        found: format!("{:?}", cut(name)),
                        accepted: accepted.to_owned(),
                    });
                }
            }
        };
        let is_static_name = |name: &str| host::normalize_static_name(name).is_some();
        list("dns", &self.dns, is_static_name, host::ACCEPTED_STATIC_NAME);
        list(
            "email",
            &self.email,
            is_mail,
            "local@domain in ASCII, at most 254 characters",
        );
        list(
            "uri",
            &self.uri,
            is_uri,
            "an absolute URI in ASCII, at most 2048 characters",
        );
        let principal = |name: &str| Principal::parse(name).is_some();
        list(
            "krb5_principal",
            &self.krb5_principal,
            principal,
            "name[/instance]@REALM in ASCII",
        );
        list(
            "upn",
            &self.upn,
            is_upn,
            "user@domain, at most 1024 characters",
        );
        for (index, ip) in self.ip.iter().enumerate() {
            if host::is_no_peer(*ip) {
                problems.push(ProfileProblem {
                    field: format!("sans.ip[{index}]"),
                    found: ip.to_string(),
                    accepted: "an address that a peer can have".to_owned(),
                });
            }
        }
        problems
    }

    /// As they go into every certificate of the profile. What [`Self::problems`] names is left out.
    pub(crate) fn general_names(&self) -> GeneralNames {
        let mut names = GeneralNames::default();
        for name in self
            .dns
            .iter()
            .filter_map(|name| host::normalize_static_name(name))
        {
            names.dns(&name);
        }
        for ip in &self.ip {
            names.ip(host::normalize_ip(*ip));
        }
        for mail in self.email.iter().filter(|mail| is_mail(mail)) {
            let der = write::element(context_primitive(1), &[mail.as_bytes()]);
            names.push(&der, format!("email:{mail}"));
        }
        for uri in self.uri.iter().filter(|uri| is_uri(uri)) {
            let der = write::element(context_primitive(6), &[uri.as_bytes()]);
            names.push(&der, format!("URI:{uri}"));
        }
        for text in &self.krb5_principal {
            if let Some(principal) = Principal::parse(text) {
                let der = other_name(&oid::KRB5_PRINCIPAL, &principal.to_der());
                names.push(&der, format!("krb5:{text}"));
            }
        }
        for upn in self.upn.iter().filter(|upn| is_upn(upn)) {
            let value = write::element(crate::asn1::UTF8_STRING, &[upn.as_bytes()]);
            names.push(&other_name(&oid::UPN, &value), format!("upn:{upn}"));
        }
        names
    }
}

/// `[0] { type-id, [0] EXPLICIT value }`.
fn other_name(kind: &const_oid::ObjectIdentifier, value: &[u8]) -> Vec<u8> {
    let value = write::element(context(0), &[value]);
    write::element(context(0), &[&write::oid(kind), &value])
}

fn is_visible_ascii(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_graphic())
}

fn is_mail(text: &str) -> bool {
    text.len() <= 254
        && is_visible_ascii(text)
        && text.split_once('@').is_some_and(|(local, domain)| {
            !local.is_empty()
                && !domain.contains('@')
                && host::normalize_static_name(domain).is_some()
        })
}

fn is_uri(text: &str) -> bool {
    let scheme = |scheme: &str| {
        scheme.starts_with(|c: char| c.is_ascii_alphabetic())
            && scheme
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b"+-.".contains(&b))
    };
    text.len() <= 2048
        && is_visible_ascii(text)
        && text
            .split_once(':')
            .is_some_and(|(s, rest)| scheme(s) && !rest.is_empty())
}

fn is_upn(text: &str) -> bool {
    text.len() <= 1024
        && !text.chars().any(char::is_control)
        && text.split_once('@').is_some_and(|(user, domain)| {
            !user.is_empty() && !domain.is_empty() && !domain.contains('@')
        })
}

/// A Kerberos principal (RFC 4120 §5.2.2), as RFC 4556 §3.2.2 puts it into certificates.
struct Principal<'a> {
    components: Vec<&'a str>,
    realm: &'a str,
}

impl<'a> Principal<'a> {
    fn parse(text: &'a str) -> Option<Self> {
        let (name, realm) = text.rsplit_once('@')?;
        let components: Vec<&str> = name.split('/').collect();
        let good = |part: &str| !part.is_empty() && is_visible_ascii(part) && !part.contains('@');
        let well_formed = text.len() <= 1024
            && components.len() <= 2
            && components.iter().all(|part| good(part))
            && good(realm)
            && !realm.contains('/');
        well_formed.then_some(Self { components, realm })
    }

    fn to_der(&self) -> Vec<u8> {
        let string = |text: &str| write::element(GENERAL_STRING, &[text.as_bytes()]);
        // NT-PRINCIPAL is 1, NT-SRV-INST, for the ticket-granting service, is 2.
        let is_tgs = self.components.len() > 1 && self.components.first() == Some(&"krbtgt");
        let name_type = write::unsigned(&[if is_tgs { 2 } else { 1 }]);
        let components: Vec<Vec<u8>> = self.components.iter().map(|part| string(part)).collect();
        let components: Vec<&[u8]> = components.iter().map(Vec::as_slice).collect();
        let principal = write::sequence(&[
            &write::element(context(0), &[&name_type]),
            &write::element(context(1), &[&write::sequence(&components)]),
        ]);
        write::sequence(&[
            &write::element(context(0), &[&string(self.realm)]),
            &write::element(context(1), &[&principal]),
        ])
    }
}
