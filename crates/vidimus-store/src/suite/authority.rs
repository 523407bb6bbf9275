//! A CA whose key is in memory, to have certificates to record.

use std::time::{Duration, SystemTime};

use aws_lc_rs::encoding::AsDer;
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{ECDSA_P384_SHA384_ASN1_SIGNING, EcdsaKeyPair, KeyPair};
use vidimus_x509::csr::VerifiedCsr;
use vidimus_x509::issue::{self, RequestNames, Signed};
use vidimus_x509::issuer::Issuer;
use vidimus_x509::profile::{
    BasicConstraints, ExtendedKeyUsage, KeyAlgorithm, KeyUsage, Profile, StaticSans, SubjectFields,
    ValidityPolicy,
};
use vidimus_x509::serial::Serial;
use vidimus_x509::signer::{SignError, SignatureAlgorithm, Signer};

use super::{draft, random};
use crate::certificate::Issuance;

/// A root with a request that it certifies as often as it is asked to, each time under a new
/// serial number.
#[derive(Debug)]
pub struct Authority {
    key: Key,
    issuer: Issuer,
    request: VerifiedCsr,
    now: SystemTime,
}

impl Default for Authority {
    fn default() -> Self {
        Self::new()
    }
}

impl Authority {
    /// Makes both keys.
    #[must_use]
    pub fn new() -> Self {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_900_000_000);
        let key = Key::generate();
        let serial = Serial::random(&random()).unwrap();
        let root = issue::root_plan(
            &subject("Store Suite Root"),
            key.spki_der(),
            10,
            now,
            serial,
        )
        .unwrap()
        .sign(&key)
        .unwrap();
        let names = RequestNames {
            dns: vec!["host.example".to_owned()],
            ip: Vec::new(),
        };
        let request = issue::request(&subject("host.example"), &names, &Key::generate()).unwrap();
        Self {
            issuer: Issuer::from_certificate(root.der()).unwrap(),
            request: VerifiedCsr::parse(&request).unwrap(),
            key,
            now,
        }
    }

    /// A certificate, signed and not recorded.
    #[must_use]
    pub fn sign(&self) -> Signed {
        self.sign_as(Serial::random(&random()).unwrap())
    }

    /// A certificate with this serial number.
    #[must_use]
    pub fn sign_as(&self, serial: Serial) -> Signed {
        let names = RequestNames::default();
        profile()
            .certificate(&self.request, &names, &self.issuer, self.now, serial)
            .unwrap()
            .sign(&self.key)
            .unwrap()
    }

    /// A certificate on its way into the store.
    #[must_use]
    pub fn issuance(&self, profile: &str) -> Issuance {
        Issuance {
            signed: self.sign(),
            profile: profile.to_owned(),
            requester: "CN=admin".to_owned(),
            audit: draft("/vidimus.node.v1.NodeService/IssueLeaf"),
        }
    }
}

fn profile() -> Profile {
    Profile {
        name: "leaf".to_owned(),
        key_alg: KeyAlgorithm::EcdsaP384,
        subject: SubjectFields::default(),
        validity_days: 90,
        validity_policy: ValidityPolicy::Cap,
        basic_constraints: BasicConstraints::default(),
        key_usage: vec![KeyUsage::DigitalSignature],
        ext_key_usage: vec![ExtendedKeyUsage::ServerAuth],
        sans: StaticSans::default(),
        allow_request_sans: true,
        extra_extensions: Vec::new(),
    }
}

fn subject(common_name: &str) -> SubjectFields {
    SubjectFields {
        common_name: common_name.to_owned(),
        ..SubjectFields::default()
    }
}

/// A P-384 key in memory.
#[derive(Debug)]
struct Key {
    pair: EcdsaKeyPair,
    spki: Vec<u8>,
}

impl Key {
    fn generate() -> Self {
        let pair = EcdsaKeyPair::generate(&ECDSA_P384_SHA384_ASN1_SIGNING).unwrap();
        let spki = pair.public_key().as_der().unwrap().as_ref().to_vec();
        Self { pair, spki }
    }
}

impl Signer for Key {
    fn spki_der(&self) -> &[u8] {
        &self.spki
    }

    fn algorithm(&self) -> SignatureAlgorithm {
        SignatureAlgorithm::EcdsaP384Sha384
    }

    fn sign(&self, message: &[u8]) -> Result<Vec<u8>, SignError> {
        let signature = self.pair.sign(&SystemRandom::new(), message);
        Ok(signature.unwrap().as_ref().to_vec())
    }
}
