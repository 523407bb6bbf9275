//! What this CA signs with: its key, its certificate, and the chain above it.

use std::{sync::Arc, time::SystemTime};

use vidimus_store::IdentityId;
use vidimus_x509::{
    cert::{CertError, Certificate},
    chain::{self, ChainError},
    issuer::{Issuer, IssuerError},
    pem::{self, PemError},
    signer::Signer,
};

use crate::config::{AdminPin, Parent};

/// The longest chain that is taken: nobody has more levels.
const MAX_CHAIN: usize = 10;

/// A key and the certificates that make it a CA's.
#[derive(Debug)]
pub struct CaIdentity {
    id: IdentityId,
    issuer: Issuer,
    signer: Arc<dyn Signer>,
    chain: CaChain,
    below_root_pem: String,
    serial_hex: String,
}

/// Why a chain was not accepted for this CA's key.
#[derive(Debug, thiserror::Error)]
pub enum ChainRefused {
    /// A certificate of the chain can't be read.
    #[error("certificate {position} of the chain")]
    Certificate {
        /// Counted from 1.
        position: usize,
        /// What is wrong with it.
        #[source]
        source: CertError,
    },
    /// The chain does not lead to the pinned parent.
    #[error("chain does not lead to the parent that `pki.parent` pins")]
    Chain {
        /// The link that doesn't hold.
        #[source]
        source: ChainError,
    },
    /// The first certificate can't sign.
    #[error("first certificate of the chain")]
    Issuer {
        /// Why.
        #[source]
        source: IssuerError,
    },
    /// No certificate of the chain has the pinned digest.
    #[error("no certificate of the chain has the SHA-256 {pinned} that `pki.parent` pins")]
    NotPinned {
        /// The pinned digest.
        pinned: String,
    },
    /// No certificate of the chain is for the key that waits for one.
    #[error(
        "no certificate of the chain is for the key of the request; its first is for {subject}"
    )]
    OtherKey {
        /// Whose the first certificate is.
        subject: String,
    },
    /// The text is no PEM chain.
    #[error("chain")]
    Pem {
        /// What is wrong with it.
        #[source]
        source: PemError,
    },
    /// More certificates than a chain has.
    #[error("chain of {found} certificates; accepted: at most {MAX_CHAIN}")]
    TooLong {
        /// How many.
        found: usize,
    },
}

/// A CA's certificates: its own first, each followed by its issuer, the last one being the anchor.
#[derive(Debug, Clone)]
pub(crate) struct CaChain(Vec<Vec<u8>>);

impl CaChain {
    /// A root's own certificate.
    pub(crate) fn of_root(der: &[u8]) -> Self {
        Self(vec![der.to_vec()])
    }

    /// Checks an offered chain for the key `spki_der` against the pinned parent.
    ///
    /// Order and certificates that don't belong don't matter: what is used is the path that signatures make.
    pub(crate) fn accept(
        chain_pem: &[u8],
        spki_der: &[u8],
        parent: &Parent,
        now: SystemTime,
    ) -> Result<Self, ChainRefused> {
        let ders = pem::certificates(chain_pem).map_err(|source| ChainRefused::Pem { source })?;
        if ders.len() > MAX_CHAIN {
            return Err(ChainRefused::TooLong { found: ders.len() });
        }
        let mut others = parse_all(&ders)?;
        let own = others
            .iter()
            .position(|c| c.spki_der() == spki_der && c.is_ca());
        let Some(own) = own else {
            let subject = others.first().map(|c| c.subject_text().to_owned());
            return Err(ChainRefused::OtherKey {
                subject: subject.unwrap_or_default(),
            });
        };
        let own = others.remove(own);
        let anchor = anchor_of(parent, &others)?;
        if others.iter().all(|other| other.der() != anchor.der()) {
            others.push(anchor.clone());
        }
        let path = chain::order(&own, &others);
        let to_anchor = path
            .iter()
            .position(|certificate| certificate.der() == anchor.der());
        let checked: Vec<&[u8]> = path
            .iter()
            .take(to_anchor.map_or(path.len(), |last| last + 1))
            .map(|certificate| certificate.der())
            .collect();
        chain::verify_ca_chain(&checked, anchor.der(), now)
            .map_err(|source| ChainRefused::Chain { source })?;
        Ok(Self(
            path.iter()
                .map(|certificate| certificate.der().to_vec())
                .collect(),
        ))
    }

    /// What [`Self::to_pem`] wrote.
    pub(crate) fn from_pem(chain_pem: &str) -> Result<Self, ChainRefused> {
        pem::certificates(chain_pem.as_bytes())
            .map(Self)
            .map_err(|source| ChainRefused::Pem { source })
    }

    /// Every certificate, the anchor last.
    pub(crate) fn to_pem(&self) -> String {
        self.0
            .iter()
            .map(|der| pem::encode("CERTIFICATE", der))
            .collect()
    }

    fn own(&self) -> &[u8] {
        self.0.first().map_or(&[], Vec::as_slice)
    }

    fn anchor(&self) -> &[u8] {
        self.0.last().map_or(&[], Vec::as_slice)
    }

    /// Every certificate but the root's, in PEM.
    pub(crate) fn below_root_pem(&self) -> String {
        self.below_root()
            .map(|der| pem::encode("CERTIFICATE", der))
            .collect()
    }

    /// Without the root: a client has that, or must not take it from here.
    fn below_root(&self) -> impl Iterator<Item = &[u8]> {
        self.0
            .iter()
            .map(Vec::as_slice)
            .filter(|der| !is_self_issued(der))
    }
}

impl CaIdentity {
    pub(crate) fn new(
        id: IdentityId,
        chain: CaChain,
        signer: Arc<dyn Signer>,
    ) -> Result<Self, ChainRefused> {
        let ders: Vec<&[u8]> = chain.0.iter().map(Vec::as_slice).collect();
        let issuer = Issuer::from_chain(&ders).map_err(|source| ChainRefused::Issuer { source })?;
        if issuer.spki_der() != signer.spki_der() {
            return Err(ChainRefused::OtherKey {
                subject: issuer.subject_text().to_owned(),
            });
        }
        let below_root_pem = chain.below_root_pem();
        let own = Certificate::parse(chain.own()).map_err(|source| ChainRefused::Certificate {
            position: 1,
            source,
        })?;
        Ok(Self {
            id,
            issuer,
            signer,
            chain,
            below_root_pem,
            serial_hex: own.serial_hex().to_owned(),
        })
    }

    /// Which of this node's identities it is.
    #[must_use]
    pub fn id(&self) -> IdentityId {
        self.id
    }

    /// What bounds the certificates that it issues.
    #[must_use]
    pub fn issuer(&self) -> &Issuer {
        &self.issuer
    }

    /// Its key.
    #[must_use]
    pub fn signer(&self) -> &dyn Signer {
        self.signer.as_ref()
    }

    /// Its own certificate.
    #[must_use]
    pub fn certificate_der(&self) -> &[u8] {
        self.chain.own()
    }

    /// The serial number of its own certificate, lower-case hex.
    #[must_use]
    pub fn serial_hex(&self) -> &str {
        &self.serial_hex
    }

    /// The root, or the highest certificate that is known: what clients verify against.
    #[must_use]
    pub fn anchor_der(&self) -> &[u8] {
        self.chain.anchor()
    }

    /// Whether the chain leads to this parent.
    pub(crate) fn leads_to(&self, parent: &Parent) -> bool {
        self.chain.0.iter().skip(1).any(|der| match parent {
            Parent::Certificate(pinned) => pinned == der,
            Parent::Sha256(pinned) => AdminPin::of_certificate(der).as_bytes() == pinned,
        })
    }

    /// [`Self::anchor_der`] in PEM.
    #[must_use]
    pub fn anchor_pem(&self) -> String {
        pem::encode("CERTIFICATE", self.chain.anchor())
    }

    /// What stands after a leaf in its chain: every CA from this one up to, and without, the root. DER.
    pub fn below_root_der(&self) -> impl Iterator<Item = &[u8]> {
        self.chain.below_root()
    }

    /// As [`Self::below_root_der`], in PEM; empty on a root.
    #[must_use]
    pub fn below_root_pem(&self) -> &str {
        &self.below_root_pem
    }
}

fn parse_all(ders: &[Vec<u8>]) -> Result<Vec<Certificate>, ChainRefused> {
    ders.iter()
        .enumerate()
        .map(|(index, der)| {
            Certificate::parse(der).map_err(|source| ChainRefused::Certificate {
                position: index + 1,
                source,
            })
        })
        .collect()
}

fn anchor_of(parent: &Parent, offered: &[Certificate]) -> Result<Certificate, ChainRefused> {
    match parent {
        Parent::Certificate(der) => {
            Certificate::parse(der).map_err(|source| ChainRefused::Certificate {
                position: 0,
                source,
            })
        }
        Parent::Sha256(pinned) => offered
            .iter()
            .find(|certificate| certificate.fingerprint_sha256() == *pinned)
            .cloned()
            .ok_or_else(|| ChainRefused::NotPinned {
                pinned: data_encoding::HEXLOWER.encode(pinned),
            }),
    }
}

fn is_self_issued(der: &[u8]) -> bool {
    Certificate::parse(der).is_ok_and(|certificate| {
        certificate.subject_der() == certificate.issuer_der()
            && certificate.verify_signature(certificate.spki_der()).is_ok()
    })
}

/// Whether this chain's own key signed the certificate.
pub(crate) fn issued_by(certificate: &Certificate, chain: &CaChain) -> bool {
    Certificate::parse(chain.own()).is_ok_and(|own| {
        own.subject_der() == certificate.issuer_der()
            && certificate.verify_signature(own.spki_der()).is_ok()
    })
}

/// The SHA-256 of a certificate, lower-case hex.
pub(crate) fn fingerprint_hex(der: &[u8]) -> String {
    AdminPin::of_certificate(der).to_hex()
}
