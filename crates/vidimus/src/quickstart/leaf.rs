//! Keys, requests and certificates of the two ends, and how they are laid out.

use anyhow::Context as _;
use vidimus_client::{NodeClient, pb};
use vidimus_fs::{bundle, durable::Mode};
use vidimus_keys::file::FileKey;
use vidimus_x509::{
    issue::{self, RequestNames},
    key::KeyAlgorithm,
    pem,
    profile::SubjectFields,
};
use zeroize::Zeroizing;

use super::{
    authority,
    layout::{Layout, Side},
};

/// A certificate with its key, as it goes into a TLS folder.
pub(crate) struct Leaf {
    pub(crate) fingerprint: String,
    chain_pem: String,
    key_pem: Zeroizing<String>,
}

impl Leaf {
    /// Makes a key, has it certified over the management API.
    pub(crate) async fn issue(
        client: &NodeClient,
        profile: &str,
        dns_name: &str,
    ) -> anyhow::Result<Self> {
        let key = FileKey::generate(KeyAlgorithm::EcdsaP384).context("make a key")?;
        let common_name = dns_name
            .split('.')
            .next()
            .unwrap_or(dns_name)
            .chars()
            .take(64)
            .collect();
        let subject = SubjectFields {
            common_name,
            ..SubjectFields::default()
        };
        let names = RequestNames {
            dns: vec![dns_name.to_owned()],
            ip: Vec::new(),
        };
        let csr = issue::request(&subject, &names, &key).context("make a certificate request")?;
        let request = pb::IssueLeafRequest {
            csr,
            profile: profile.to_owned(),
            ..Default::default()
        };
        let answer = client
            .issue_leaf(request)
            .await
            .with_context(|| format!("have {dns_name} certified"))?;
        let certificate = authority::certificate_of(&answer.chain_pem)?;
        Ok(Self {
            fingerprint: data_encoding::HEXLOWER.encode(&certificate.fingerprint_sha256()),
            chain_pem: answer.chain_pem,
            key_pem: key.plaintext_pem(),
        })
    }

    /// A certificate that was made here.
    pub(crate) fn of(der: &[u8], key_pem: Zeroizing<String>) -> Self {
        let fingerprint = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, der);
        Self {
            fingerprint: data_encoding::HEXLOWER.encode(fingerprint.as_ref()),
            chain_pem: pem::encode("CERTIFICATE", der),
            key_pem,
        }
    }

    /// A certificate for one end of the channel.
    pub(crate) async fn for_side(client: &NodeClient, side: Side) -> anyhow::Result<Self> {
        Self::issue(client, side.profile(), side.dns_name()).await
    }

    /// Puts it into an end's TLS folder together with the roots that the end is to trust, all at once.
    pub(crate) fn publish(&self, layout: &Layout, side: Side, ca_pem: &str) -> anyhow::Result<()> {
        self.publish_at(&layout.tls_of(side), ca_pem)
    }

    /// The same into any folder.
    pub(crate) fn publish_at(&self, folder: &std::path::Path, ca_pem: &str) -> anyhow::Result<()> {
        let files = [
            ("tls.crt", self.chain_pem.as_bytes(), Mode::Public),
            ("tls.key", self.key_pem.as_bytes(), Mode::Private),
            ("ca.crt", ca_pem.as_bytes(), Mode::Public),
        ];
        bundle::publish(folder, &files)
            .with_context(|| format!("publish into {}", folder.display()))
    }
}

impl std::fmt::Debug for Leaf {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Leaf")
            .field("fingerprint", &self.fingerprint)
            .finish_non_exhaustive()
    }
}
