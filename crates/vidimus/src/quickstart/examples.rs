//! What to try next while the provider runs: callers that it refuses, each with the command and the answer.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use vidimus_keys::file::FileKey;
use vidimus_x509::{
    csr::VerifiedCsr,
    issue::{self, RequestNames},
    issuer::Issuer,
    key::KeyAlgorithm,
    profile::{ExtendedKeyUsage, KeyUsage, Profile, SubjectFields},
    serial::Serial,
    signer::Signer as _,
};

use super::{layout::Side, leaf::Leaf, rotation::Stage};
use crate::endpoint;

const STRANGER: &str = "stranger.vidimus-system.svc.cluster.local";

/// Makes the certificates that the commands use.
pub(crate) async fn prepare(stage: &Stage) -> anyhow::Result<()> {
    let ca = &stage.root.certificate_pem;
    let unlisted = Leaf::issue(&stage.node.client, Side::Manager.profile(), STRANGER).await?;
    unlisted.publish_at(&stage.layout.try_folder("unlisted"), ca)?;
    foreign_leaf()
        .context("make a certificate of another CA")?
        .publish_at(&stage.layout.try_folder("foreign"), ca)
}

/// The commands with their answers.
pub(crate) async fn lines(stage: &Stage) -> anyhow::Result<Vec<String>> {
    let page = stage.provider.page("/tls").await?;
    let endpoint = page["addresses"]["grpc"]
        .as_str()
        .unwrap_or_default()
        .to_owned();
    let program = std::env::args()
        .next()
        .unwrap_or_else(|| "vidimus".to_owned());
    let command = |folder: PathBuf, more: &str| {
        let folder = from_here(&folder);
        format!(
            "    {program} provider validate {endpoint} --provider vidimus-system/demo --tls {}{more}",
            folder.display()
        )
    };
    let manager = stage.layout.tls_of(Side::Manager);
    Ok([
        "\nWhat to try next, in another terminal:".to_owned(),
        "  the manager's certificate: accepted".to_owned(),
        command(manager.clone(), ""),
        "  no certificate: UNAVAILABLE, the provider's alert is CertificateRequired".to_owned(),
        command(manager, " --no-certificate"),
        "  a certificate of another CA: UNAVAILABLE, the provider's alert is UnknownCA".to_owned(),
        command(stage.layout.try_folder("foreign"), ""),
        "  a certificate of this CA with a name that is not on the list: PERMISSION_DENIED"
            .to_owned(),
        command(stage.layout.try_folder("unlisted"), ""),
        String::new(),
    ]
    .into())
}

/// The path as a person in this folder would type it.
fn from_here(path: &Path) -> PathBuf {
    let here = std::env::current_dir().unwrap_or_default();
    path.strip_prefix(here).unwrap_or(path).to_path_buf()
}

/// A leaf of a CA that exists only in this function.
fn foreign_leaf() -> anyhow::Result<Leaf> {
    let random = aws_lc_rs::rand::SystemRandom::new();
    let now = endpoint::clock().now();
    let authority = FileKey::generate(KeyAlgorithm::EcdsaP384)?;
    let named = |name: &str| SubjectFields {
        common_name: name.to_owned(),
        ..SubjectFields::default()
    };
    let root = issue::root_plan(
        &named("Somebody else's CA"),
        authority.spki_der(),
        1,
        now,
        Serial::random(&random)?,
    )?
    .sign(&authority)?;
    let key = FileKey::generate(KeyAlgorithm::EcdsaP384)?;
    let names = RequestNames {
        dns: vec![Side::Manager.dns_name().to_owned()],
        ip: Vec::new(),
    };
    let csr = VerifiedCsr::parse(&issue::request(&named("manager"), &names, &key)?)?;
    let profile = Profile {
        name: "leaf-client".to_owned(),
        key_alg: KeyAlgorithm::EcdsaP384,
        subject: SubjectFields::default(),
        validity_days: 90,
        validity_policy: vidimus_x509::profile::ValidityPolicy::Cap,
        basic_constraints: vidimus_x509::profile::BasicConstraints::default(),
        key_usage: vec![KeyUsage::DigitalSignature],
        ext_key_usage: vec![ExtendedKeyUsage::ClientAuth],
        sans: vidimus_x509::profile::StaticSans::default(),
        allow_request_sans: true,
        extra_extensions: Vec::new(),
    };
    let issuer = Issuer::from_certificate(root.der())?;
    let signed = profile
        .certificate(&csr, &names, &issuer, now, Serial::random(&random)?)?
        .sign(&authority)?;
    Ok(Leaf::of(signed.der(), key.plaintext_pem()))
}
