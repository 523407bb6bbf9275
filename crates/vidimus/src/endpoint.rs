//! Which node a command asks: over mutual TLS, over its UNIX socket, or by opening its data folder.

use std::sync::Arc;

use anyhow::Context as _;
use vidimus_client::{Endpoint, NodeClient};
use vidimus_daemon::clock::{Clock, SystemClock};
use vidimus_keys::Secret;
use vidimus_node::{Node, data::DataDir};
use zeroize::Zeroizing;

use crate::{
    cli::{NodeArgs, UnlockArgs},
    exit::Stop,
};

/// A passphrase is a line.
const MAX_PASSPHRASE_FILE: u64 = 4096;

/// Connects as the arguments say.
pub(crate) async fn connect(args: &NodeArgs) -> anyhow::Result<NodeClient> {
    if let Some(folder) = &args.data_dir {
        let secret = secret(&args.unlock)?;
        let node = Node::open(DataDir::new(folder), Arc::new(secret), clock())
            .await
            .with_context(|| format!("open the node in {}", folder.display()))?;
        return Ok(NodeClient::over(node.local_service()));
    }
    let endpoint = match (&args.socket, &args.node, &args.identity) {
        (Some(path), _, _) => Endpoint::Unix(path.clone()),
        (None, Some(address), Some(identity)) => {
            Endpoint::mtls(address, args.server_name.as_deref(), identity)?
        }
        _ => {
            return Err(Stop::usage(
                "which node? give --socket PATH, or --node ADDRESS with --identity DIR, or --data-dir DIR with \
                 --unlock-file FILE",
            ));
        }
    };
    Ok(NodeClient::connect(endpoint).await?)
}

/// The clock of this machine.
pub(crate) fn clock() -> Arc<dyn Clock> {
    Arc::new(SystemClock)
}

/// What opens the CA's key.
pub(crate) fn secret(args: &UnlockArgs) -> anyhow::Result<Secret> {
    match (&args.unlock_file, &args.passphrase_file) {
        (Some(file), _) => Ok(Secret::from_key_file(file)?),
        (None, Some(file)) => {
            let bytes = Zeroizing::new(vidimus_fs::read::bounded(file, MAX_PASSPHRASE_FILE)?);
            let text = std::str::from_utf8(&bytes)
                .with_context(|| format!("{} is not UTF-8 text", file.display()))?;
            let line = text.lines().next().unwrap_or_default();
            Ok(Secret::from_passphrase(Zeroizing::new(line.to_owned()))?)
        }
        (None, None) => Err(Stop::usage(
            "what opens the CA's key? give --unlock-file FILE or --passphrase-file FILE",
        )),
    }
}
