//! Which node a command asks: over mutual TLS, over its UNIX socket, or by opening its data folder.

use std::{path::PathBuf, sync::Arc};

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

/// What opens the CA's key: what the arguments say, else the credential `unlock` that systemd hands to a service
/// (`LoadCredential=unlock:FILE`).
pub(crate) fn secret(args: &UnlockArgs) -> anyhow::Result<Secret> {
    if let Some(file) = &args.unlock_file {
        return Ok(Secret::from_key_file(file)?);
    }
    if let Some(file) = &args.passphrase_file {
        let bytes = Zeroizing::new(vidimus_fs::read::bounded(file, MAX_PASSPHRASE_FILE)?);
        let text = std::str::from_utf8(&bytes)
            .with_context(|| format!("{} is not UTF-8 text", file.display()))?;
        let line = text.lines().next().unwrap_or_default();
        return Ok(Secret::from_passphrase(Zeroizing::new(line.to_owned()))?);
    }
    let credentials = std::env::var_os("CREDENTIALS_DIRECTORY").map(PathBuf::from);
    match credentials.map(|folder| folder.join("unlock")) {
        Some(file) if file.is_file() => Ok(Secret::from_key_file(&file)?),
        Some(_) | None => Err(Stop::usage(
            "what opens the CA's key? give --unlock-file FILE or --passphrase-file FILE, or run with systemd's \
             LoadCredential=unlock:FILE",
        )),
    }
}
