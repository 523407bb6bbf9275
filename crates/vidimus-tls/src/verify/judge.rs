//! A presented chain, judged without a connection: by the very verifiers that connections get.

use std::sync::Arc;
use std::time::SystemTime;

use rustls::client::danger::ServerCertVerifier as _;
use rustls::server::danger::ClientCertVerifier as _;
use rustls_pki_types::{CertificateDer, ServerName};
use vidimus_x509::pem;

use super::path::{since_epoch, unreadable};
use super::{HandshakeSlot, Refusal, RootClientVerifier, RootServerVerifier, VerifiedChain};
use crate::identity::CertificateIdentity;
use crate::material::{Trust, TrustError};

/// Which side of a connection judges.
#[derive(Clone, Copy, Debug)]
pub enum Judge<'a> {
    /// An acceptor, of a client's certificate; names are the policy's business.
    Acceptor,
    /// A channel that connects to this name, of the server's certificate.
    Channel(&'a ServerName<'a>),
}

/// Judges a chain, the peer's own certificate first, as a handshake at `now` would: for conformance tests and for looking
/// at files. That the peer has the key is what only a handshake shows.
///
/// # Errors
///
/// Why a connection would be refused.
pub fn judge(
    by: Judge<'_>,
    trust: &Arc<Trust>,
    presented: &[CertificateDer<'_>],
    now: SystemTime,
) -> Result<VerifiedChain, Refusal> {
    let Some((end_entity, intermediates)) = presented.split_first() else {
        return Err(unreadable(0, "nothing was presented"));
    };
    let (trust, now) = (Arc::clone(trust), since_epoch(now));
    let slot = Arc::new(HandshakeSlot::default());
    let told = match by {
        Judge::Acceptor => slot
            .within(|| {
                RootClientVerifier { trust }.verify_client_cert(end_entity, intermediates, now)
            })
            .map(drop),
        Judge::Channel(name) => RootServerVerifier {
            trust,
            slot: Arc::clone(&slot),
        }
        .verify_server_cert(end_entity, intermediates, name, &[], now)
        .map(drop),
    };
    match (told, slot.accepted(), slot.refusal()) {
        (Ok(()), Some(chain), _) => Ok(chain.clone()),
        (_, _, Some(refusal)) => Err(refusal.clone()),
        // rustls would refuse too: nothing is served under a slot that was left empty.
        (_, _, None) => Err(unreadable(1, "the verifier left no result")),
    }
}

/// Why a client's certificate in a file would not be accepted.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JudgeError {
    /// What the client would present cannot be read.
    #[error("read the client's certificates")]
    Presented(#[source] pem::PemError),
    /// A server would refuse it.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The roots are not usable.
    #[error("read the roots")]
    Roots(#[from] TrustError),
}

/// Judges a client's certificate and the intermediates above it, PEM, under these roots, PEM, as an acceptor would at `now`.
///
/// # Errors
///
/// What cannot be read, or why a connection would be refused.
pub fn judge_client_pem(
    roots: &[u8],
    presented: &[u8],
    now: SystemTime,
) -> Result<Arc<CertificateIdentity>, JudgeError> {
    let trust = Arc::new(Trust::from_pem(roots, now)?);
    let ders = pem::certificates(presented).map_err(JudgeError::Presented)?;
    let presented: Vec<_> = ders.into_iter().map(CertificateDer::from).collect();
    let chain = judge(Judge::Acceptor, &trust, &presented, now)?;
    Ok(Arc::clone(chain.identity()))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use rcgen::{
        BasicConstraints, CertificateParams, CustomExtension, DistinguishedName, DnType, IsCa,
        Issuer, KeyPair, KeyUsagePurpose,
    };

    use super::*;

    const NAME: &str = "server.test";

    /// 2026-01-01, within the centuries for which rcgen's certificates are valid.
    fn now() -> SystemTime {
        let since = Duration::from_secs(1_767_225_600);
        SystemTime::UNIX_EPOCH.checked_add(since).expect("a time")
    }

    fn ca(name: &str) -> CertificateParams {
        let mut params = CertificateParams::default();
        params.distinguished_name = DistinguishedName::new();
        if !name.is_empty() {
            params.distinguished_name.push(DnType::CommonName, name);
        }
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        params
    }

    fn leaf(key_usages: &[KeyUsagePurpose]) -> CertificateParams {
        let mut params = CertificateParams::new([NAME.to_owned()]).expect("a DNS name");
        params.key_usages = key_usages.to_vec();
        params
    }

    fn good_leaf() -> CertificateParams {
        leaf(&[KeyUsagePurpose::DigitalSignature])
    }

    /// Makes the chain, the root first, and has a channel and an acceptor judge it; they agree.
    fn judged(chain: Vec<CertificateParams>) -> Result<(), Refusal> {
        let mut chain = chain.into_iter();
        let key = || KeyPair::generate().expect("a key");
        let (root_key, root) = (key(), chain.next().expect("a root"));
        let root_pem = root.self_signed(&root_key).expect("a root").pem();
        let mut issuer = Issuer::new(root, root_key);
        let mut presented = Vec::new();
        for params in chain {
            let key = key();
            let certificate = params.signed_by(&key, &issuer).expect("a certificate");
            presented.insert(0, certificate.der().clone());
            issuer = Issuer::new(params, key);
        }
        let trust = Trust::from_pem(root_pem.as_bytes(), now()).expect("a trust set");
        let trust = Arc::new(trust);
        let name = ServerName::try_from(NAME).expect("a DNS name");
        let by_channel = judge(Judge::Channel(&name), &trust, &presented, now());
        let by_acceptor = judge(Judge::Acceptor, &trust, &presented, now());
        assert_eq!(by_channel.is_ok(), by_acceptor.is_ok());
        by_channel.map(drop)
    }

    fn refused(chain: Vec<CertificateParams>) -> String {
        let refusal = judged(chain).expect_err("a refusal");
        refusal.to_string()
    }

    /// x509-limbo `rfc5280::unknown-critical-extension-root`.
    #[test]
    fn a_root_with_a_critical_extension_that_nobody_understands_verifies_nobody() {
        let with = |critical| {
            let mut root = ca("root");
            let mut extension = CustomExtension::from_oid_content(&[1, 2, 3, 4], vec![5, 0]);
            extension.set_criticality(critical);
            root.custom_extensions = vec![extension];
            vec![root, good_leaf()]
        };
        assert!(judged(with(false)).is_ok());
        let text = refused(with(true));
        assert!(text.contains("critical extension"), "{text}");
    }

    /// x509-limbo `rfc5280::ca-empty-subject`, and the same for an intermediate.
    #[test]
    fn a_ca_without_a_name_is_no_issuer() {
        assert!(judged(vec![ca("root"), ca("below"), good_leaf()]).is_ok());
        for chain in [
            vec![ca(""), good_leaf()],
            vec![ca("root"), ca(""), good_leaf()],
        ] {
            let text = refused(chain);
            assert!(text.contains("empty subject"), "{text}");
        }
    }

    /// x509-limbo `rfc5280::leaf-ku-keycertsign`, and RFC 8446 §4.4.2.2.
    #[test]
    fn a_key_usage_that_does_not_fit_a_handshake_is_refused() {
        use KeyUsagePurpose::{DigitalSignature, KeyCertSign, KeyEncipherment};
        for good in [&[][..], &[DigitalSignature, KeyEncipherment]] {
            assert!(judged(vec![ca("root"), leaf(good)]).is_ok(), "{good:?}");
        }
        let text = refused(vec![ca("root"), leaf(&[KeyEncipherment])]);
        assert!(text.contains("lacks digitalSignature"), "{text}");
        let text = refused(vec![ca("root"), leaf(&[DigitalSignature, KeyCertSign])]);
        assert!(text.contains("has keyCertSign"), "{text}");
    }

    #[test]
    fn nothing_presented_is_refused() {
        assert!(judged(vec![ca("root")]).is_err());
    }
}
