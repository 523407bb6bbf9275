//! The blocks before `pki`: what file this is, which role, who administers.

use std::fmt;

use super::{
    name::is_dns_name,
    problem::quote,
    reader::{Fields, Text},
};

const API_VERSIONS: [(&str, ()); 2] = [("cryptos.dev/v1alpha1", ()), ("vidimus.dev/v1alpha1", ())];

/// Blocks of the appliance's machine config that mean nothing to a program on somebody's machine.
const APPLIANCE_BLOCKS: [&str; 4] = ["network", "install", "state_key", "management"];

/// What a CA node is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Issues certificates; its own comes from a parent.
    Issuing,
    /// Stands between root and issuing CAs; does what an issuing node does.
    Intermediate,
    /// Signs itself; signs subordinates, and no leaves without an irreversible acknowledgement.
    Root,
}

impl Role {
    /// Every role with its word in a config.
    pub const WORDS: [(&'static str, Self); 3] = [
        ("root", Self::Root),
        ("intermediate", Self::Intermediate),
        ("issuing", Self::Issuing),
    ];

    /// The word of the config.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Issuing => "issuing",
            Self::Intermediate => "intermediate",
            Self::Root => "root",
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.word())
    }
}

/// Whose client certificate administers the node: by the SHA-256 of its DER. Never a trust anchor.
#[derive(Clone, PartialEq, Eq)]
pub struct AdminPin([u8; 32]);

impl AdminPin {
    /// The pin of this certificate.
    #[must_use]
    pub fn of_certificate(der: &[u8]) -> Self {
        let digest = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, der);
        let mut pin = [0; 32];
        pin.copy_from_slice(digest.as_ref());
        Self(pin)
    }

    /// From 64 hex digits in any case.
    #[must_use]
    pub fn from_hex(text: &str) -> Option<Self> {
        let bytes = data_encoding::HEXLOWER_PERMISSIVE
            .decode(text.as_bytes())
            .ok()?;
        Some(Self(bytes.try_into().ok()?))
    }

    /// Lower-case hex.
    #[must_use]
    pub fn to_hex(&self) -> String {
        data_encoding::HEXLOWER.encode(&self.0)
    }

    /// The 32 bytes.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Debug for AdminPin {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "AdminPin({})", self.to_hex())
    }
}

/// Checks what kind of file this is; the node's name.
pub(super) fn read(fields: &mut Fields<'_>) -> String {
    fields.required_word("apiVersion", &API_VERSIONS);
    fields.required_word("kind", &[("MachineConfig", ())]);
    for block in APPLIANCE_BLOCKS {
        fields.refuse_if_present(
            block,
            "a block of the appliance",
            "nothing here: not supported by this version, which runs on a machine that has its own",
        );
    }
    let Some(mut metadata) = fields.block("metadata") else {
        return String::new();
    };
    let name = metadata.text("name");
    if let Some(name) = &name
        && !is_dns_name(name.value)
    {
        metadata.refuse(name, quote(name.value), "a host name");
    }
    metadata.finish();
    name.map(|name| name.value.to_owned()).unwrap_or_default()
}

/// `role.kind`.
pub(super) fn role(fields: &mut Fields<'_>) -> Option<Role> {
    let Some(mut block) = fields.block("role") else {
        if fields.lacks("role") {
            fields.missing("role.kind", super::reader::list_of(&Role::WORDS));
        }
        return None;
    };
    let role = block.required_word("kind", &Role::WORDS);
    block.finish();
    role
}

/// `bootstrap`: at most one of certificate and digest.
pub(super) fn bootstrap(fields: &mut Fields<'_>) -> Option<AdminPin> {
    let mut block = fields.block("bootstrap")?;
    let pem = block.text("admin_cert_pem");
    let sha256 = block.text("admin_cert_sha256");
    let pin = match (&pem, &sha256) {
        (Some(_), Some(sha256)) => {
            block.refuse(
                sha256,
                "a digest beside admin_cert_pem",
                "exactly one of admin_cert_pem and admin_cert_sha256",
            );
            None
        }
        (Some(pem), None) => one_certificate(&block, pem).map(|der| AdminPin::of_certificate(&der)),
        (None, Some(sha256)) => sha256_of(&block, sha256).map(AdminPin),
        (None, None) => {
            block.missing("admin_cert_sha256", "admin_cert_pem or admin_cert_sha256");
            None
        }
    };
    block.finish();
    pin
}

/// Exactly one certificate in PEM that can be read.
pub(super) fn one_certificate(fields: &Fields<'_>, pem: &Text<'_>) -> Option<Vec<u8>> {
    let accepted = "exactly one CERTIFICATE block in PEM";
    let ders = match vidimus_x509::pem::certificates(pem.value.as_bytes()) {
        Ok(ders) => ders,
        Err(error) => {
            fields.refuse(pem, format!("PEM that cannot be read: {error}"), accepted);
            return None;
        }
    };
    let [der]: [Vec<u8>; 1] = match ders.try_into() {
        Ok(one) => one,
        Err(ders) => {
            let ders: Vec<_> = ders;
            fields.refuse(pem, format!("{} certificates", ders.len()), accepted);
            return None;
        }
    };
    if let Err(error) = vidimus_x509::cert::Certificate::parse(&der) {
        fields.refuse(
            pem,
            format!("a certificate that cannot be read: {error}"),
            accepted,
        );
        return None;
    }
    Some(der)
}

/// 64 hex digits.
pub(super) fn sha256_of(fields: &Fields<'_>, text: &Text<'_>) -> Option<[u8; 32]> {
    let pin = AdminPin::from_hex(text.value);
    if pin.is_none() {
        fields.refuse(
            text,
            quote(text.value),
            "64 hex digits: the SHA-256 of the certificate's DER",
        );
    }
    pin.map(|pin| pin.0)
}
