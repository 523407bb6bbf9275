//! Where the quickstart keeps things in its data folder.
//!
//! ```text
//! vidimus-data/
//! ├── root/<n>/        a root CA each; opened by the quickstart alone, never by the running node
//! ├── node/            the issuing node's data folder, its config beside it in node.yaml
//! ├── provider/tls/    tls.crt, tls.key, ca.crt of the provider
//! ├── manager/tls/     the same of the manager
//! ├── try/             what the "try next" commands use: a certificate of another CA, one not on the list
//! └── unlock/          what opens the CA keys of this demonstration
//! ```

use std::{
    fs, io,
    path::{Path, PathBuf},
};

/// The data folder of a quickstart.
#[derive(Clone, Debug)]
pub(crate) struct Layout {
    base: PathBuf,
}

impl Layout {
    pub(crate) fn new(base: PathBuf) -> Self {
        Self { base }
    }

    pub(crate) fn base(&self) -> &Path {
        &self.base
    }

    /// The data folder of root number `n`, from 1.
    pub(crate) fn root(&self, n: u32) -> PathBuf {
        self.base.join("root").join(n.to_string())
    }

    /// The numbers of the roots that were begun, in order.
    pub(crate) fn roots(&self) -> io::Result<Vec<u32>> {
        let entries = match fs::read_dir(self.base.join("root")) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            other => other?,
        };
        let mut numbers = Vec::new();
        for entry in entries {
            numbers.extend(
                entry?
                    .file_name()
                    .to_str()
                    .and_then(|name| name.parse::<u32>().ok()),
            );
        }
        numbers.sort_unstable();
        Ok(numbers)
    }

    pub(crate) fn node(&self) -> PathBuf {
        self.base.join("node")
    }

    /// The administrator's `tls.crt`, `tls.key` and `ca.crt`.
    pub(crate) fn admin(&self) -> PathBuf {
        self.node().join("admin")
    }

    pub(crate) fn node_config(&self) -> PathBuf {
        self.base.join("node.yaml")
    }

    pub(crate) fn tls_of(&self, side: Side) -> PathBuf {
        self.base.join(side.folder()).join("tls")
    }

    pub(crate) fn admin_socket(&self, program: &str) -> PathBuf {
        self.base.join(program).join("admin.sock")
    }

    pub(crate) fn log_of(&self, program: &str) -> PathBuf {
        self.base.join(format!("{program}.log"))
    }

    pub(crate) fn unlock(&self, whose: &str) -> PathBuf {
        self.base.join("unlock").join(whose)
    }

    pub(crate) fn try_folder(&self, what: &str) -> PathBuf {
        self.base.join("try").join(what)
    }
}

/// The two ends of the enforced channel.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Side {
    Manager,
    Provider,
}

impl Side {
    pub(crate) const BOTH: [Self; 2] = [Self::Provider, Self::Manager];

    pub(crate) fn folder(self) -> &'static str {
        match self {
            Self::Manager => "manager",
            Self::Provider => "provider",
        }
    }

    /// The profile that its certificate is issued under.
    pub(crate) fn profile(self) -> &'static str {
        match self {
            Self::Manager => "leaf-client",
            Self::Provider => "leaf-server",
        }
    }

    /// The name that its certificate carries; the provider's is the one that VirtRigaud's manager asks for.
    pub(crate) fn dns_name(self) -> &'static str {
        match self {
            Self::Manager => "manager.vidimus-system.svc.cluster.local",
            Self::Provider => {
                "virtrigaud-provider-vidimus-system-demo.vidimus-system.svc.cluster.local"
            }
        }
    }
}
