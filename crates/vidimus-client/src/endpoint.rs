//! Where a node is, and how a client shows who it is.

use std::path::{Path, PathBuf};

use vidimus_tls::{
    channel::{Channel, ClientTls},
    clock::Clock,
    material::{Material, MaterialFiles, Usage},
    watch::MaterialWatch,
};

use crate::ClientError;

/// Where a node is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Endpoint {
    /// Its management listener.
    Mtls {
        /// `host:port`.
        address: String,
        /// The name that the node's certificate must carry.
        server_name: String,
        /// Folder with the administrator's `tls.crt` and `tls.key`, and the CA's `ca.crt`.
        identity_dir: PathBuf,
    },
    /// Its UNIX socket, for the owner of the process.
    Unix(PathBuf),
}

/// A text that is no node's address.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{found:?} is not an address; accepted: host:port, such as 127.0.0.1:9550 or [::1]:9550")]
pub struct EndpointError {
    /// The text.
    pub found: String,
}

impl Endpoint {
    /// The management listener at `address` (`host:port`); the server's name is the host unless another is given.
    ///
    /// # Errors
    /// `address` has no host or no port.
    pub fn mtls(
        address: &str,
        server_name: Option<&str>,
        identity_dir: impl AsRef<Path>,
    ) -> Result<Self, EndpointError> {
        let not_an_address = || EndpointError {
            found: address.to_owned(),
        };
        let (host, port) = address.rsplit_once(':').ok_or_else(not_an_address)?;
        let bare = host
            .strip_prefix('[')
            .and_then(|host| host.strip_suffix(']'));
        let bare = bare.unwrap_or(host);
        if bare.is_empty() || port.parse::<u16>().is_err() {
            return Err(not_an_address());
        }
        Ok(Self::Mtls {
            address: address.to_owned(),
            server_name: server_name.unwrap_or(bare).to_owned(),
            identity_dir: identity_dir.as_ref().to_owned(),
        })
    }

    /// The channel; the identity folder is read once.
    pub(crate) fn channel(self) -> Result<Channel, ClientError> {
        let builder = match self {
            Self::Unix(path) => {
                let target = format!("unix:{}", path.display());
                Channel::builder(&target, "localhost", ClientTls::Local)
            }
            Self::Mtls {
                address,
                server_name,
                identity_dir,
            } => {
                let files = MaterialFiles::in_dir(identity_dir);
                let material = Material::load(&files, Usage::Client, Clock::system().now())?;
                let tls = ClientTls::Watch(MaterialWatch::fixed(material));
                Channel::builder(&address, &server_name, tls)
            }
        };
        Ok(builder.build()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// C4: the name that is checked is the one that was typed, unless another is given.
    #[test]
    fn the_server_name_is_the_host_unless_another_is_given() {
        let name_of = |address, name| match Endpoint::mtls(address, name, "dir") {
            Ok(Endpoint::Mtls { server_name, .. }) => Some(server_name),
            Ok(Endpoint::Unix(_)) | Err(_) => None,
        };
        assert_eq!(
            name_of("127.0.0.1:9550", None).as_deref(),
            Some("127.0.0.1")
        );
        assert_eq!(name_of("[::1]:9550", None).as_deref(), Some("::1"));
        assert_eq!(
            name_of("ca.example:1", Some("x.example")).as_deref(),
            Some("x.example")
        );
        for bad in ["", "host", ":1", "host:", "host:port", "[]:1"] {
            assert_eq!(name_of(bad, None), None, "{bad:?}");
        }
    }
}
