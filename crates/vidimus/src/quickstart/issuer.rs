//! The demonstration's issuing node: made under a root, run as a process of its own, asked over its management API.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use anyhow::{Context as _, bail};
use tokio::time::{Instant, sleep};
use vidimus_client::{Endpoint, NodeClient};
use vidimus_fs::durable::{self, Mode};
use vidimus_node::{
    ceremony::{self, Ceremony, InitError, Initialised},
    config::{self, AdminListen, Api, Config, Role, Template},
    data::DataDir,
    run::Endpoints,
};

use super::{
    authority::{self, Root},
    child::Program,
    layout::Layout,
    sides::End,
};
use crate::endpoint;

const CONNECT_DEADLINE: Duration = Duration::from_secs(30);
const TRY_AGAIN: Duration = Duration::from_millis(100);

/// The running issuing node and a client of it.
#[derive(Debug)]
pub(crate) struct IssuingNode {
    pub(crate) program: Program,
    pub(crate) client: NodeClient,
    pub(crate) address: SocketAddr,
    layout: Layout,
    listen: SocketAddr,
}

impl IssuingNode {
    /// Makes the node if it isn't there, its certificate signed by `root`.
    pub(crate) async fn make(
        layout: &Layout,
        root: &Root,
        listen: SocketAddr,
    ) -> anyhow::Result<()> {
        let data = DataDir::new(layout.node());
        let secret = Arc::new(authority::unlock_file(&layout.unlock("node"))?);
        let (config, _) = Self::config(root, listen)?;
        let csr = match ceremony::init(&data, &config, &secret, &endpoint::clock()).await {
            Ok(Initialised {
                outcome: Ceremony::AwaitingCertificate { csr_pem },
                ..
            }) => csr_pem,
            Ok(_) | Err(InitError::Established { .. }) => return Ok(()),
            Err(error) => return Err(error).context("make the issuing node"),
        };
        let chain = root.sign(csr.as_bytes()).await?;
        ceremony::complete(&data, chain.as_bytes(), &secret, &endpoint::clock())
            .await
            .context("give the issuing node its chain")?;
        Ok(())
    }

    /// Starts the node and connects to it over mutual TLS.
    pub(crate) async fn start(
        layout: &Layout,
        root: &Root,
        listen: SocketAddr,
    ) -> anyhow::Result<Self> {
        let (_, text) = Self::config(root, listen)?;
        durable::write(layout.node_config(), text.as_bytes(), Mode::Private)?;
        let path = |path: std::path::PathBuf| path.display().to_string();
        let args = [
            "node".to_owned(),
            "run".to_owned(),
            "--config".to_owned(),
            path(layout.node_config()),
            "--data-dir".to_owned(),
            path(layout.node()),
            "--unlock-file".to_owned(),
            path(layout.unlock("node")),
        ];
        let admin = layout.admin_socket("node");
        let program = Program::start("node", &args, &[], admin, layout.log_of("node")).await?;
        let address = endpoints(layout)?.management;
        let client = connect(layout, address).await?;
        Ok(Self {
            program,
            client,
            address,
            layout: layout.clone(),
            listen,
        })
    }

    /// Which of these roots the node's present certificate leads to.
    pub(crate) async fn root_among(&self, roots: &[Root]) -> anyhow::Result<Option<Root>> {
        let identity = self.client.identity().await?;
        Ok(roots
            .iter()
            .rev()
            .find(|root| root.vouches_for(&identity.chain_der))
            .cloned())
    }

    /// Gives the node a new key and certificate under another root, while it runs on.
    pub(crate) async fn rotate_to(&mut self, root: &Root) -> anyhow::Result<()> {
        let (_, text) = Self::config(root, self.listen)?;
        durable::write(self.layout.node_config(), text.as_bytes(), Mode::Private)?;
        let applied = self
            .client
            .apply_config(&text)
            .await
            .context("have the node trust the new root")?;
        if applied.requires_reboot {
            bail!("the node wants a restart to trust another root");
        }
        let begun = self
            .client
            .begin_key_rotation()
            .await
            .context("begin the node's key rotation")?;
        let chain = root.sign(&begun.csr_der).await?;
        self.client
            .complete_key_rotation(&chain)
            .await
            .context("complete the node's key rotation")?;
        // The node serves with a certificate of its new CA from now on; a new connection trusts the new root for it.
        self.client = connect(&self.layout, self.address).await?;
        Ok(())
    }

    /// What the node's listener says about itself.
    pub(crate) async fn look(&self) -> anyhow::Result<End> {
        Ok(End::of_server(
            &self.program.page("/status").await?,
            "server",
        ))
    }

    fn config(root: &Root, listen: SocketAddr) -> anyhow::Result<(Config, String)> {
        let api = Api {
            listen,
            admin_listen: AdminListen::Unix,
            ..Api::default()
        };
        let text = config::template(&Template {
            role: Role::Issuing,
            common_name: "Vidimus quickstart issuing CA",
            parent_pem: Some(&root.certificate_pem),
            api,
        });
        Ok((authority::checked("node.yaml", &text)?, text))
    }
}

fn endpoints(layout: &Layout) -> anyhow::Result<Endpoints> {
    let file = DataDir::new(layout.node()).endpoints();
    let bytes = vidimus_fs::read::bounded(&file, 64 * 1024)?;
    serde_json::from_slice(&bytes).with_context(|| format!("read {}", file.display()))
}

/// Connects, waiting for the node to serve with a certificate that its administrator can verify: right after a key
/// rotation that may take it a moment.
async fn connect(layout: &Layout, address: SocketAddr) -> anyhow::Result<NodeClient> {
    let deadline = Instant::now() + CONNECT_DEADLINE;
    loop {
        let endpoint = Endpoint::mtls(&address.to_string(), Some("localhost"), layout.admin())?;
        match NodeClient::connect(endpoint).await {
            Ok(client) => return Ok(client),
            Err(error) if Instant::now() > deadline => {
                return Err(error).context("ask the node over mutual TLS");
            }
            Err(_) => sleep(TRY_AGAIN).await,
        }
    }
}
