//! A CA made in the test, under a clock of its own.

use std::{
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use aws_lc_rs::{
    encoding::{AsDer, PublicKeyX509Der},
    rand::SystemRandom,
    rsa::{self, KeySize},
    signature::{self, ECDSA_P384_SHA384_ASN1_SIGNING, EcdsaKeyPair, KeyPair as _},
};
use vidimus_x509::{
    csr::VerifiedCsr,
    issue::{self, PlanError, RequestNames, Signed},
    issuer::Issuer,
    key::KeyAlgorithm,
    profile::{
        BasicConstraints, ExtendedKeyUsage, KeyUsage, Profile, StaticSans, SubjectFields,
        ValidityPolicy,
    },
    serial::Serial,
    signer::{SignError, SignatureAlgorithm, Signer},
};

/// 2027-01-15T08:00:00Z.
pub(crate) const NOW_UNIX: u64 = 1_800_000_000;

pub(crate) fn now() -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(NOW_UNIX)
}

pub(crate) fn days(days: u64) -> Duration {
    Duration::from_secs(days * 24 * 60 * 60)
}

/// A key held in the test.
#[derive(Debug)]
pub(crate) struct TestKey {
    key: Key,
    spki: Vec<u8>,
}

#[derive(Debug)]
enum Key {
    Ecdsa(EcdsaKeyPair),
    Rsa(rsa::KeyPair),
}

impl TestKey {
    pub(crate) fn p384() -> Self {
        Self::of_ecdsa(EcdsaKeyPair::generate(&ECDSA_P384_SHA384_ASN1_SIGNING).unwrap())
    }

    pub(crate) fn p384_from_pkcs8(der: &[u8]) -> Self {
        Self::of_ecdsa(EcdsaKeyPair::from_pkcs8(&ECDSA_P384_SHA384_ASN1_SIGNING, der).unwrap())
    }

    pub(crate) fn rsa3072() -> Self {
        let key = rsa::KeyPair::generate(KeySize::Rsa3072).unwrap();
        let spki: PublicKeyX509Der<'_> = key.public_key().as_der().unwrap();
        Self {
            spki: spki.as_ref().to_vec(),
            key: Key::Rsa(key),
        }
    }

    fn of_ecdsa(key: EcdsaKeyPair) -> Self {
        let spki: PublicKeyX509Der<'_> = key.public_key().as_der().unwrap();
        Self {
            spki: spki.as_ref().to_vec(),
            key: Key::Ecdsa(key),
        }
    }
}

impl Signer for TestKey {
    fn spki_der(&self) -> &[u8] {
        &self.spki
    }

    fn algorithm(&self) -> SignatureAlgorithm {
        match self.key {
            Key::Ecdsa(_) => SignatureAlgorithm::EcdsaP384Sha384,
            Key::Rsa(_) => SignatureAlgorithm::RsaPkcs1Sha384,
        }
    }

    fn sign(&self, message: &[u8]) -> Result<Vec<u8>, SignError> {
        let random = SystemRandom::new();
        match &self.key {
            Key::Ecdsa(key) => Ok(key.sign(&random, message).unwrap().as_ref().to_vec()),
            Key::Rsa(key) => {
                let mut out = vec![0; key.public_modulus_len()];
                key.sign(&signature::RSA_PKCS1_SHA384, &random, message, &mut out)
                    .unwrap();
                Ok(out)
            }
        }
    }
}

/// A CA, and everything above it.
#[derive(Debug)]
pub(crate) struct Ca {
    pub(crate) key: TestKey,
    /// Its own certificate first, the root last.
    pub(crate) chain: Vec<Vec<u8>>,
    pub(crate) issuer: Issuer,
}

impl Ca {
    /// A root of 10 years.
    pub(crate) fn root() -> Self {
        Self::root_of(TestKey::p384())
    }

    pub(crate) fn root_of(key: TestKey) -> Self {
        let subject = named("Test Root");
        let plan = issue::root_plan(&subject, key.spki_der(), 10, now(), serial()).unwrap();
        let der = plan.sign(&key).unwrap().der().to_vec();
        Self::of(key, vec![der])
    }

    /// A CA below this one.
    pub(crate) fn sub(&self, profile: &Profile) -> Self {
        let key = TestKey::p384();
        let der = self.certify_ca(&key, profile).unwrap().der().to_vec();
        let mut chain = vec![der];
        chain.extend(self.chain.iter().cloned());
        Self::of(key, chain)
    }

    pub(crate) fn certify_ca(&self, key: &TestKey, profile: &Profile) -> Result<Signed, PlanError> {
        let name = format!("Test CA {}", self.chain.len());
        let csr = issue::request(&named(&name), &RequestNames::default(), key).unwrap();
        self.issue(
            profile,
            &VerifiedCsr::parse(&csr).unwrap(),
            &RequestNames::default(),
        )
    }

    pub(crate) fn of(key: TestKey, chain: Vec<Vec<u8>>) -> Self {
        let ders: Vec<&[u8]> = chain.iter().map(Vec::as_slice).collect();
        let issuer = Issuer::from_chain(&ders).unwrap();
        Self { key, chain, issuer }
    }

    pub(crate) fn key_spki(&self) -> &[u8] {
        self.key.spki_der()
    }

    pub(crate) fn der(&self) -> &[u8] {
        &self.chain[0]
    }

    pub(crate) fn issue(
        &self,
        profile: &Profile,
        csr: &VerifiedCsr,
        names: &RequestNames,
    ) -> Result<Signed, PlanError> {
        let plan = profile.certificate(csr, names, &self.issuer, now(), serial())?;
        Ok(plan.sign(&self.key).unwrap())
    }

    /// Under a leaf profile, with the names of the CSR.
    pub(crate) fn issue_leaf(&self, csr: &VerifiedCsr) -> Signed {
        self.issue(&leaf_profile(), csr, &RequestNames::default())
            .unwrap()
    }
}

pub(crate) fn serial() -> Serial {
    Serial::random(&SystemRandom::new()).unwrap()
}

pub(crate) fn named(common_name: &str) -> SubjectFields {
    SubjectFields {
        common_name: common_name.to_owned(),
        organization: "Example".to_owned(),
        ..SubjectFields::default()
    }
}

/// A server's and client's certificate of 90 days with the names of the request.
pub(crate) fn leaf_profile() -> Profile {
    Profile {
        name: "leaf".to_owned(),
        key_alg: KeyAlgorithm::EcdsaP384,
        subject: SubjectFields::default(),
        validity_days: 90,
        validity_policy: ValidityPolicy::Cap,
        basic_constraints: BasicConstraints::default(),
        key_usage: vec![KeyUsage::DigitalSignature],
        ext_key_usage: vec![ExtendedKeyUsage::ServerAuth, ExtendedKeyUsage::ClientAuth],
        sans: StaticSans::default(),
        allow_request_sans: true,
        extra_extensions: Vec::new(),
    }
}

/// A CA's certificate of a year.
pub(crate) fn ca_profile(path_len: Option<u8>) -> Profile {
    Profile {
        name: "sub-ca".to_owned(),
        validity_days: 365,
        basic_constraints: BasicConstraints {
            is_ca: true,
            path_len,
        },
        key_usage: vec![KeyUsage::CertSign, KeyUsage::CrlSign],
        ext_key_usage: Vec::new(),
        allow_request_sans: false,
        ..leaf_profile()
    }
}

pub(crate) fn data(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/data")
        .join(file)
}

/// A request of `tests/data/csr`.
pub(crate) fn csr_bytes(name: &str) -> Vec<u8> {
    let name = if name.contains('.') {
        name.to_owned()
    } else {
        format!("{name}.der")
    };
    std::fs::read(data("csr").join(&name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

pub(crate) fn csr(name: &str) -> VerifiedCsr {
    VerifiedCsr::parse(&csr_bytes(name)).unwrap_or_else(|error| panic!("{name}: {}", chain(&error)))
}

/// An error with its sources, as a user is shown it.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        text.push_str(": ");
        text.push_str(&error.to_string());
        source = error.source();
    }
    text
}
