//! What one certificate costs in this crate, beside the bare cryptography in it: CPU time of this
//! thread, so that other programs don't count (Linux).
//!
//! `cargo run --release -p vidimus-x509 --features issue --example cost`

use std::{
    error::Error,
    io::Write as _,
    time::{Duration, SystemTime},
};

use aws_lc_rs::{
    encoding::{AsDer, PublicKeyX509Der},
    rand::SystemRandom,
    signature::{
        ECDSA_P384_SHA384_ASN1, ECDSA_P384_SHA384_ASN1_SIGNING, EcdsaKeyPair, KeyPair as _,
        UnparsedPublicKey,
    },
};
use vidimus_x509::{
    csr::VerifiedCsr,
    issue::{RequestNames, request, root_plan},
    issuer::Issuer,
    key::KeyAlgorithm,
    profile::{
        BasicConstraints, ExtendedKeyUsage, KeyUsage, Profile, StaticSans, SubjectFields,
        ValidityPolicy,
    },
    serial::Serial,
    signer::{SignError, SignatureAlgorithm, Signer},
};

#[derive(Debug)]
struct Key {
    pair: EcdsaKeyPair,
    spki: Vec<u8>,
}

impl Key {
    fn new() -> Result<Self, Box<dyn Error>> {
        let pair = EcdsaKeyPair::generate(&ECDSA_P384_SHA384_ASN1_SIGNING)?;
        let spki: PublicKeyX509Der<'_> = pair.public_key().as_der()?;
        let spki = spki.as_ref().to_vec();
        Ok(Self { pair, spki })
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
        let signature = signature.map_err(|source| SignError::Key {
            source: Box::new(source),
        })?;
        Ok(signature.as_ref().to_vec())
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    const ROUNDS: u32 = 50;
    const BATCH: u32 = 100;
    let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_800_000_000);
    let random = SystemRandom::new();
    let subject = SubjectFields {
        common_name: "web.example.org".to_owned(),
        ..SubjectFields::default()
    };
    let ca = Key::new()?;
    let root = root_plan(&subject, ca.spki_der(), 10, now, Serial::random(&random)?)?.sign(&ca)?;
    let issuer = Issuer::from_certificate(root.der())?;
    let names = RequestNames {
        dns: vec!["web.example.org".to_owned(), "www.example.org".to_owned()],
        ip: Vec::new(),
    };
    let leaf = Key::new()?;
    let csr = request(&subject, &names, &leaf)?;
    let profile = profile();

    let message = vec![7; 600];
    let signature = leaf.sign(&message)?;
    let public = UnparsedPublicKey::new(&ECDSA_P384_SHA384_ASN1, leaf.pair.public_key().as_ref());
    let (mut whole, mut bare) = (Duration::ZERO, Duration::ZERO);
    for _ in 0..ROUNDS {
        let began = cpu_time()?;
        for _ in 0..BATCH {
            let csr = VerifiedCsr::parse(&csr)?;
            let serial = Serial::random(&random)?;
            let plan = profile.certificate(&csr, &RequestNames::default(), &issuer, now, serial)?;
            std::hint::black_box(plan.sign(&ca)?);
        }
        let between = cpu_time()?;
        for _ in 0..BATCH {
            public.verify(&message, &signature)?;
            std::hint::black_box(ca.sign(&message)?);
        }
        whole += between.saturating_sub(began);
        bare += cpu_time()?.saturating_sub(between);
    }
    let (whole, bare) = (whole / (ROUNDS * BATCH), bare / (ROUNDS * BATCH));
    let ratio = whole.as_secs_f64() / bare.as_secs_f64();
    writeln!(
        std::io::stdout(),
        "P-384, request to certificate: {whole:?}; one verification and one signature: {bare:?}; \
         ratio {ratio:.3}"
    )?;
    Ok(())
}

/// The first number is the time this thread has run, in nanoseconds.
fn cpu_time() -> Result<Duration, Box<dyn Error>> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat")?;
    let nanoseconds = text.split(' ').next().unwrap_or_default().parse()?;
    Ok(Duration::from_nanos(nanoseconds))
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
        ext_key_usage: vec![ExtendedKeyUsage::ServerAuth, ExtendedKeyUsage::ClientAuth],
        sans: StaticSans::default(),
        allow_request_sans: true,
        extra_extensions: Vec::new(),
    }
}
