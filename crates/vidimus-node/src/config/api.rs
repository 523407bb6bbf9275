//! The `api` block: where the management API listens. Vidimus' own; the appliance has one fixed address.

use std::{
    net::{IpAddr, Ipv4Addr, SocketAddr},
    path::{Path, PathBuf},
};

use super::{
    name::is_dns_name,
    problem::quote,
    reader::{Fields, Text},
};

/// Where the management API listens unless the config says otherwise.
pub const DEFAULT_LISTEN: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 9550);

/// The longest path of a UNIX socket that every system takes, in bytes.
const MAX_SOCKET_PATH: usize = 90;

/// Where the management API and the admin endpoint listen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Api {
    /// `listen`: address and port of the mutual TLS listener; port 0 takes a free one.
    pub listen: SocketAddr,
    /// `names`: DNS names and addresses of the server certificate beside `localhost`, `127.0.0.1` and `::1`.
    pub names: Vec<String>,
    /// `socket`: path of the UNIX socket; `node.sock` in the data directory if absent.
    pub socket: Option<PathBuf>,
    /// `admin_listen`: where health, metrics and status are served.
    pub admin_listen: AdminListen,
}

/// Where health, metrics and status are served, without TLS.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AdminListen {
    /// A TCP address; port 0 takes a free one.
    Tcp(SocketAddr),
    /// A UNIX socket, `admin.sock` in the data directory: the default.
    Unix,
}

impl Api {
    /// The UNIX socket's path for a node whose data is in `data_dir`.
    #[must_use]
    pub fn socket_path(&self, data_dir: &Path) -> PathBuf {
        self.socket
            .clone()
            .unwrap_or_else(|| data_dir.join("node.sock"))
    }
}

impl Default for Api {
    fn default() -> Self {
        Self {
            listen: DEFAULT_LISTEN,
            names: Vec::new(),
            socket: None,
            admin_listen: AdminListen::Unix,
        }
    }
}

pub(super) fn read(fields: &mut Fields<'_>) -> Api {
    let mut api = Api::default();
    let Some(mut block) = fields.block("api") else {
        return api;
    };
    if let Some(listen) = block.text("listen").and_then(|text| address(&block, &text)) {
        api.listen = listen;
    }
    for name in block.texts("names") {
        if is_dns_name(name.value) || name.value.parse::<IpAddr>().is_ok() {
            api.names.push(name.value.to_owned());
        } else {
            block.refuse(&name, quote(name.value), "a DNS name or an IP address");
        }
    }
    if let Some(socket) = block.text("socket") {
        if socket.value.len() > MAX_SOCKET_PATH || !Path::new(socket.value).is_absolute() {
            block.refuse(
                &socket,
                quote(socket.value),
                format!("an absolute path of at most {MAX_SOCKET_PATH} bytes"),
            );
        } else {
            api.socket = Some(PathBuf::from(socket.value));
        }
    }
    if let Some(text) = block.text("admin_listen")
        && text.value != "unix"
        && let Some(listen) = address(&block, &text)
    {
        api.admin_listen = AdminListen::Tcp(listen);
    }
    block.finish();
    api
}

fn address(block: &Fields<'_>, text: &Text<'_>) -> Option<SocketAddr> {
    let address = text.value.parse().ok();
    if address.is_none() {
        block.refuse(
            text,
            quote(text.value),
            "an IP address and a port, such as 127.0.0.1:9550 or [::1]:9550",
        );
    }
    address
}
