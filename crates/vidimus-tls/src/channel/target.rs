//! Where a channel connects to, as text and as data.

use std::fmt;
use std::path::PathBuf;

/// More would only make the deadline too short for each.
const MAX_ADDRESSES: usize = 16;

/// Where a channel connects to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Target {
    /// Host and port of each server, in the order they are tried.
    Tcp(Vec<(String, u16)>),
    /// The path of a socket.
    Unix(PathBuf),
}

/// A target that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TargetError {
    /// Nothing there.
    #[error("target is empty; accepted: host:port, several with commas between, or unix:/path")]
    Empty,
    /// Not host and port.
    #[error(
        "target {found:?} is not host:port; accepted: host:port, [::1]:port, several with commas between, or unix:/path"
    )]
    HostPort {
        /// The part that is wrong.
        found: String,
    },
    /// More addresses than are ever tried.
    #[error("target has {found} addresses; accepted: up to {MAX_ADDRESSES}")]
    TooMany {
        /// How many there are.
        found: usize,
    },
}

impl Target {
    pub(super) fn parse(text: &str) -> Result<Self, TargetError> {
        let text = text.trim();
        if let Some(path) = text.strip_prefix("unix:") {
            let path = path.strip_prefix("//").unwrap_or(path);
            return match path {
                "" => Err(TargetError::Empty),
                path => Ok(Self::Unix(PathBuf::from(path))),
            };
        }
        let parts: Vec<&str> = text
            .split(',')
            .map(str::trim)
            .filter(|part| !part.is_empty())
            .collect();
        match parts.len() {
            0 => Err(TargetError::Empty),
            1..=MAX_ADDRESSES => parts
                .into_iter()
                .map(host_port)
                .collect::<Result<_, _>>()
                .map(Self::Tcp),
            found => Err(TargetError::TooMany { found }),
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(addresses) => {
                for (index, (host, port)) in addresses.iter().enumerate() {
                    let comma = if index == 0 { "" } else { "," };
                    let host = Host(host);
                    write!(f, "{comma}{host}:{port}")?;
                }
                Ok(())
            }
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

/// A host as it stands before a port.
struct Host<'a>(&'a str);

impl fmt::Display for Host<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.contains(':') {
            write!(f, "[{}]", self.0)
        } else {
            f.write_str(self.0)
        }
    }
}

fn host_port(part: &str) -> Result<(String, u16), TargetError> {
    let wrong = || TargetError::HostPort {
        found: part.to_owned(),
    };
    let (host, port) = part.rsplit_once(':').ok_or_else(wrong)?;
    let host = match host
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'))
    {
        Some(address) => address,
        None if host.contains(':') => return Err(wrong()),
        None => host,
    };
    let port: u16 = port.parse().map_err(|_not_a_number| wrong())?;
    if host.is_empty() || host.contains(['/', ' ', '@']) || port == 0 {
        return Err(wrong());
    }
    Ok((host.to_owned(), port))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_read_back_as_they_are_written() {
        for (text, shown) in [
            ("provider.test:9443", "provider.test:9443"),
            ("127.0.0.1:1, [::1]:2", "127.0.0.1:1,[::1]:2"),
            ("unix:/run/node.sock", "unix:/run/node.sock"),
            ("unix:///run/node.sock", "unix:/run/node.sock"),
            ("unix:node.sock", "unix:node.sock"),
        ] {
            assert_eq!(
                Target::parse(text)
                    .map(|target| target.to_string())
                    .as_deref(),
                Ok(shown)
            );
        }
    }

    #[test]
    fn what_is_no_target_is_named() {
        for text in [
            "host",
            "host:",
            ":1",
            "host:0",
            "host:70000",
            "::1:9443",
            "https://host:1",
            "a b:1",
        ] {
            let found = Target::parse(text).expect_err(text);
            assert_eq!(
                found,
                TargetError::HostPort {
                    found: text.to_owned()
                }
            );
        }
        for text in ["", " , ", "unix:"] {
            assert_eq!(Target::parse(text), Err(TargetError::Empty), "{text:?}");
        }
        let many = vec!["a:1"; MAX_ADDRESSES + 1].join(",");
        assert_eq!(
            Target::parse(&many),
            Err(TargetError::TooMany {
                found: MAX_ADDRESSES + 1
            })
        );
    }
}
