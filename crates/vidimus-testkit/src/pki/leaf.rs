//! End-entity certificates.

use std::net::IpAddr;

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    KeyUsagePurpose, SanType, SerialNumber, string::Ia5String,
};

use super::{Authority, Credential, Curve, Validity};

/// What a leaf's extended key usage allows.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Usage {
    /// serverAuth and clientAuth.
    #[default]
    Both,
    /// clientAuth alone.
    Client,
    /// No extended key usage extension at all.
    None,
    /// serverAuth alone.
    Server,
}

impl Usage {
    fn purposes(self) -> Vec<ExtendedKeyUsagePurpose> {
        use ExtendedKeyUsagePurpose::{ClientAuth, ServerAuth};
        match self {
            Self::Both => vec![ServerAuth, ClientAuth],
            Self::Client => vec![ClientAuth],
            Self::None => Vec::new(),
            Self::Server => vec![ServerAuth],
        }
    }
}

/// What a leaf's certificate is to say; [`LeafSpec::issue`] makes it.
#[derive(Debug)]
#[must_use]
pub struct LeafSpec<'a> {
    authority: &'a Authority,
    common_name: String,
    names: Vec<SanType>,
    usage: Usage,
    curve: Curve,
    validity: Validity,
    is_ca: IsCa,
    serial: Option<Vec<u8>>,
}

impl<'a> LeafSpec<'a> {
    pub(super) fn new(authority: &'a Authority, common_name: &str) -> Self {
        Self {
            authority,
            common_name: common_name.to_owned(),
            names: Vec::new(),
            usage: Usage::default(),
            curve: Curve::default(),
            validity: Validity::default(),
            is_ca: IsCa::ExplicitNoCa,
            serial: None,
        }
    }

    /// Adds a DNS name.
    ///
    /// # Panics
    ///
    /// When it isn't ASCII.
    pub fn dns(mut self, name: &str) -> Self {
        self.names.push(SanType::DnsName(ia5(name)));
        self
    }

    /// Adds a URI.
    ///
    /// # Panics
    ///
    /// When it isn't ASCII.
    pub fn uri(mut self, uri: &str) -> Self {
        self.names.push(SanType::URI(ia5(uri)));
        self
    }

    /// Adds an address.
    pub fn ip(mut self, address: IpAddr) -> Self {
        self.names.push(SanType::IpAddress(address));
        self
    }

    /// Adds an email address.
    ///
    /// # Panics
    ///
    /// When it isn't ASCII.
    pub fn email(mut self, address: &str) -> Self {
        self.names.push(SanType::Rfc822Name(ia5(address)));
        self
    }

    /// Leaves the subject empty.
    pub fn without_common_name(mut self) -> Self {
        self.common_name.clear();
        self
    }

    /// serverAuth alone.
    pub fn server(self) -> Self {
        self.usage(Usage::Server)
    }

    /// clientAuth alone.
    pub fn client(self) -> Self {
        self.usage(Usage::Client)
    }

    /// Sets the extended key usage.
    pub fn usage(mut self, usage: Usage) -> Self {
        self.usage = usage;
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

    /// Ended a day ago.
    pub fn expired(self) -> Self {
        self.validity(Validity::Expired)
    }

    /// Begins tomorrow.
    pub fn not_yet_valid(self) -> Self {
        self.validity(Validity::NotYet)
    }

    /// Says CA:TRUE, with keyCertSign.
    pub fn ca(mut self) -> Self {
        self.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        self
    }

    /// Sets the serial number, big-endian.
    pub fn serial(mut self, serial: &[u8]) -> Self {
        self.serial = Some(serial.to_vec());
        self
    }

    /// Makes the key and the certificate.
    ///
    /// # Panics
    ///
    /// When the certificate cannot be made.
    #[must_use]
    pub fn issue(self) -> Credential {
        let key = self.curve.generate();
        let mut params = CertificateParams::default();
        params.distinguished_name = DistinguishedName::new();
        if !self.common_name.is_empty() {
            params
                .distinguished_name
                .push(DnType::CommonName, self.common_name);
        }
        params.subject_alt_names = self.names;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        if matches!(self.is_ca, IsCa::Ca(_)) {
            params.key_usages.push(KeyUsagePurpose::KeyCertSign);
        }
        params.is_ca = self.is_ca;
        params.extended_key_usages = self.usage.purposes();
        params.use_authority_key_identifier_extension = true;
        params.serial_number = self.serial.map(SerialNumber::from);
        self.validity.apply(&mut params);
        let leaf = params
            .signed_by(&key, &self.authority.issuer)
            .expect("a leaf certificate");
        let mut chain = vec![leaf.der().to_vec()];
        chain.extend_from_slice(self.authority.chain_der());
        Credential::new(chain, &key)
    }
}

fn ia5(text: &str) -> Ia5String {
    Ia5String::try_from(text).expect("a name in ASCII")
}
