//! Roots and intermediates.

use rcgen::{
    BasicConstraints, CertificateParams, CustomExtension, DistinguishedName, DnType, IsCa, Issuer,
    KeyPair, KeyUsagePurpose, SerialNumber,
};

use super::{Curve, LeafSpec, RevocationListSpec, Validity, pem};

/// A CA whose key the test holds.
#[derive(Debug)]
pub struct Authority {
    pub(super) issuer: Issuer<'static, KeyPair>,
    certificate: Vec<u8>,
    /// This CA's certificate and those above it, without the root's.
    above: Vec<Vec<u8>>,
}

impl Authority {
    /// A self-signed root with a P-384 key.
    #[must_use]
    pub fn root(name: &str) -> Self {
        AuthoritySpec::new(name).root()
    }

    /// A CA under this one.
    #[must_use]
    pub fn intermediate(&self, name: &str) -> Self {
        AuthoritySpec::new(name).under(self)
    }

    /// Starts a leaf with this common name.
    pub fn leaf(&self, common_name: &str) -> LeafSpec<'_> {
        LeafSpec::new(self, common_name)
    }

    /// Starts its revocation list of this number.
    pub fn revocation_list(&self, number: u64) -> RevocationListSpec<'_> {
        RevocationListSpec::new(self, number)
    }

    /// Its certificate.
    #[must_use]
    pub fn der(&self) -> &[u8] {
        &self.certificate
    }

    /// Its certificate as PEM.
    #[must_use]
    pub fn pem(&self) -> String {
        pem(std::slice::from_ref(&self.certificate))
    }

    /// Its private key as PKCS#8 PEM.
    #[must_use]
    pub fn key_pem(&self) -> String {
        self.issuer.key().serialize_pem()
    }

    /// Signs a certificate that the test describes itself.
    ///
    /// # Panics
    ///
    /// When the certificate cannot be made.
    #[must_use]
    pub fn sign(&self, params: CertificateParams, key: &KeyPair) -> Vec<u8> {
        let signed = params.signed_by(key, &self.issuer);
        signed.expect("a certificate").der().to_vec()
    }

    /// What a leaf presents above itself: this CA and those above it, without the root.
    #[must_use]
    pub fn chain_der(&self) -> &[Vec<u8>] {
        &self.above
    }
}

/// What a CA's certificate is to say.
#[derive(Clone, Debug)]
#[must_use]
pub struct AuthoritySpec {
    name: String,
    curve: Curve,
    validity: Validity,
    basic_constraints: IsCa,
    key_usages: Vec<KeyUsagePurpose>,
    serial: Option<Vec<u8>>,
    permitted: Vec<u8>,
}

impl AuthoritySpec {
    /// A current CA with a P-384 key and no limit to the path below it.
    pub fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            curve: Curve::default(),
            validity: Validity::default(),
            basic_constraints: IsCa::Ca(BasicConstraints::Unconstrained),
            key_usages: vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign],
            serial: None,
            permitted: Vec::new(),
        }
    }

    /// Permits only such names below (RFC 5280 §4.2.1.10): the number of the form in `GeneralName` (1 email, 2 DNS,
    /// 6 URI, 7 IP) and the content of the constraint. Call it again for another name.
    ///
    /// # Panics
    ///
    /// When the content is longer than a hundred bytes.
    pub fn permitting(mut self, form: u8, base: impl AsRef<[u8]>) -> Self {
        self.permitted
            .extend(der(0x30, &der(0x80 | form, base.as_ref())));
        self
    }

    /// Takes a key on this curve.
    pub fn curve(mut self, curve: Curve) -> Self {
        self.curve = curve;
        self
    }

    /// Sets the dates.
    pub fn validity(mut self, validity: Validity) -> Self {
        self.validity = validity;
        self
    }

    /// At most so many CAs below this one (RFC 5280 §4.2.1.9).
    pub fn path_len(mut self, length: u8) -> Self {
        self.basic_constraints = IsCa::Ca(BasicConstraints::Constrained(length));
        self
    }

    /// A CA that says of itself that it is none: a fault to be found.
    pub fn not_a_ca(mut self) -> Self {
        self.basic_constraints = IsCa::ExplicitNoCa;
        self
    }

    /// A CA without keyCertSign: a fault to be found.
    pub fn without_cert_sign(mut self) -> Self {
        self.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        self
    }

    /// Sets the serial number, big-endian.
    pub fn serial(mut self, serial: &[u8]) -> Self {
        self.serial = Some(serial.to_vec());
        self
    }

    /// Makes a self-signed root.
    ///
    /// # Panics
    ///
    /// When the certificate cannot be made.
    #[must_use]
    pub fn root(self) -> Authority {
        let (params, key) = self.params();
        let certificate = params
            .self_signed(&key)
            .expect("a root certificate")
            .der()
            .to_vec();
        Authority {
            issuer: Issuer::new(params, key),
            certificate,
            above: Vec::new(),
        }
    }

    /// Makes a CA under `parent`.
    ///
    /// # Panics
    ///
    /// When the certificate cannot be made.
    #[must_use]
    pub fn under(self, parent: &Authority) -> Authority {
        let (params, key) = self.params();
        let certificate = params
            .signed_by(&key, &parent.issuer)
            .expect("an intermediate certificate")
            .der()
            .to_vec();
        let mut above = vec![certificate.clone()];
        above.extend_from_slice(&parent.above);
        Authority {
            issuer: Issuer::new(params, key),
            certificate,
            above,
        }
    }

    fn params(self) -> (CertificateParams, KeyPair) {
        let mut params = CertificateParams::default();
        params.distinguished_name = DistinguishedName::new();
        params
            .distinguished_name
            .push(DnType::CommonName, self.name);
        params.is_ca = self.basic_constraints;
        params.key_usages = self.key_usages;
        params.use_authority_key_identifier_extension = true;
        params.serial_number = self.serial.map(SerialNumber::from);
        self.validity.apply(&mut params);
        if !self.permitted.is_empty() {
            let content = der(0x30, &der(0xa0, &self.permitted));
            let mut constraints = CustomExtension::from_oid_content(&[2, 5, 29, 30], content);
            constraints.set_criticality(true);
            params.custom_extensions.push(constraints);
        }
        (params, self.curve.generate())
    }
}

/// One short element.
fn der(tag: u8, content: &[u8]) -> Vec<u8> {
    let length = u8::try_from(content.len())
        .ok()
        .filter(|length| *length < 0x80);
    let mut element = vec![tag, length.expect("a content of less than 128 bytes")];
    element.extend_from_slice(content);
    element
}
