//! The demonstration's roots: made and opened here, in this process, and by nothing else.

use std::{path::PathBuf, sync::Arc};

use anyhow::{Context as _, bail};
use vidimus_client::{NodeClient, pb};
use vidimus_keys::Secret;
use vidimus_node::{
    Node,
    ceremony::{self, Ceremony, InitError, Initialised},
    config::{self, Api, Config, Role, Template},
    data::DataDir,
};
use vidimus_x509::{cert::Certificate, chain, pem};

use super::layout::Layout;
use crate::{endpoint, time};

/// One root CA.
#[derive(Clone, Debug)]
pub(crate) struct Root {
    pub(crate) number: u32,
    pub(crate) certificate_pem: String,
    pub(crate) certificate: Certificate,
    folder: PathBuf,
    unlock: PathBuf,
}

impl Root {
    /// Makes root number `number`, or goes on with it where an earlier run stopped.
    pub(crate) async fn make(layout: &Layout, number: u32) -> anyhow::Result<Self> {
        let folder = layout.root(number);
        let unlock = layout.unlock(&format!("root-{number}"));
        let secret = Arc::new(unlock_file(&unlock)?);
        let text = config::template(&Template {
            role: Role::Root,
            common_name: &format!("Vidimus quickstart root {number}"),
            parent_pem: None,
            api: Api::default(),
        });
        let config = checked("root.yaml", &text)?;
        let data = DataDir::new(&folder);
        let certificate_pem =
            match ceremony::init(&data, &config, &secret, &endpoint::clock()).await {
                Ok(Initialised {
                    outcome: Ceremony::Established { certificate_pem },
                    ..
                }) => certificate_pem,
                Ok(_) => bail!("{} is not a root's folder", folder.display()),
                Err(InitError::Established { .. }) => {
                    let client = open(&data, secret).await?;
                    client.identity().await?.anchor_pem
                }
                Err(error) => {
                    return Err(error)
                        .with_context(|| format!("make the root in {}", folder.display()));
                }
            };
        let certificate = certificate_of(&certificate_pem)?;
        Ok(Self {
            number,
            certificate_pem,
            certificate,
            folder,
            unlock,
        })
    }

    /// Has this root certify a subordinate; answers the chain in PEM. The root is open only meanwhile.
    pub(crate) async fn sign(&self, csr: &[u8]) -> anyhow::Result<String> {
        let secret = Secret::from_key_file(&self.unlock)?;
        let client = open(&DataDir::new(&self.folder), Arc::new(secret)).await?;
        let request = pb::SignSubordinateCsrRequest {
            csr: csr.to_vec(),
            profile: "sub-ca".to_owned(),
        };
        Ok(client.sign_subordinate(request).await?.chain_pem)
    }

    /// Whether this CA chain leads to this root.
    pub(crate) fn vouches_for(&self, chain_der: &[Vec<u8>]) -> bool {
        let chain: Vec<&[u8]> = chain_der.iter().map(Vec::as_slice).collect();
        chain::verify_ca_chain(&chain, self.certificate.der(), endpoint::clock().now()).is_ok()
    }

    /// The root's SHA-256 as status pages write it.
    pub(crate) fn fingerprint(&self) -> String {
        data_encoding::HEXLOWER.encode(&self.certificate.fingerprint_sha256())
    }

    /// For people.
    pub(crate) fn label(&self) -> String {
        format!(
            "root {} (until {})",
            self.number,
            time::of_system(self.certificate.not_after())
        )
    }
}

async fn open(data: &DataDir, secret: Arc<Secret>) -> anyhow::Result<NodeClient> {
    let node = Node::open(data.clone(), secret, endpoint::clock())
        .await
        .with_context(|| format!("open the root in {}", data.path().display()))?;
    Ok(NodeClient::over(node.local_service()))
}

/// Opens an unlock file, making it on the first run.
pub(crate) fn unlock_file(path: &std::path::Path) -> anyhow::Result<Secret> {
    if path.exists() {
        return Ok(Secret::from_key_file(path)?);
    }
    if let Some(folder) = path.parent() {
        vidimus_fs::dir::create_private(folder)?;
    }
    Ok(Secret::create_key_file(path)?)
}

/// Reads a config of our own making through the checks that every config goes through.
pub(crate) fn checked(name: &str, text: &str) -> anyhow::Result<Config> {
    config::parse(name, text).context("the quickstart's own machine config is refused")
}

/// The first certificate of a chain.
pub(crate) fn certificate_of(chain_pem: &str) -> anyhow::Result<Certificate> {
    let chain = pem::certificates(chain_pem.as_bytes()).context("read a certificate")?;
    let first = chain.first().context("the chain is empty")?;
    Certificate::parse(first).context("read a certificate")
}
