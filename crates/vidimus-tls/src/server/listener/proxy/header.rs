//! Reading one header, and not a byte more.

#![warn(clippy::indexing_slicing, clippy::arithmetic_side_effects)]

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use tokio::io::{AsyncRead, AsyncReadExt};

/// The first bytes of every header: none of TLS, HTTP/1 and HTTP/2 begins with them.
const SIGNATURE: [u8; 12] = *b"\r\n\r\n\0\r\nQUIT\n";
/// Signature, version and command, family and protocol, and the length of the rest.
const FIXED: usize = 16;
/// The longest rest. The protocol permits 65,535 bytes; what proxies send (two addresses, and what they know of their
/// client's TLS) fits into a small part of this.
const MAX_REST: u16 = 4096;

/// Why a connection from a proxy was closed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HeaderError {
    /// The connection ended before the header did.
    #[error("the proxy closed the connection within its PROXY header")]
    Closed,
    /// Neither PROXY (1) nor LOCAL (0).
    #[error("the PROXY header has the unknown command {0}")]
    Command(u8),
    /// Nothing whose address can be known: a UNIX socket, a datagram, or unspecified.
    #[error(
        "the PROXY header is for the address family and protocol {0:#04x}; accepted: 0x11 and 0x21, TCP over IPv4 and IPv6"
    )]
    Family(u8),
    /// Longer than any proxy's.
    #[error("the PROXY header has {0} bytes after its fixed part; accepted: {MAX_REST}")]
    Long(u16),
    /// The connection begins with something else.
    #[error("a connection from a proxy's network began without a PROXY header")]
    Missing,
    /// Too short for the addresses that it announces.
    #[error("the PROXY header has {length} bytes for addresses, and {needed} are needed")]
    Short {
        /// What it has.
        length: usize,
        /// What its family takes.
        needed: usize,
    },
    /// The connection failed.
    #[error("read the PROXY header")]
    Transport(#[source] io::Error),
    /// The text form.
    #[error("the PROXY header is of version 1; accepted: version 2")]
    Version1,
    /// A version that doesn't exist yet.
    #[error("the PROXY header has the unknown version {0}")]
    Version(u8),
}

/// Whose connection it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Claim {
    /// The proxy passes on the connection of a client at this address.
    Client(SocketAddr),
    /// The proxy's own, such as a health check: the command LOCAL.
    Proxy,
}

/// Reads the header that a connection from a proxy begins with. What follows it is left unread.
pub(crate) async fn read(stream: &mut (impl AsyncRead + Unpin)) -> Result<Claim, HeaderError> {
    let mut fixed = [0; FIXED];
    read_exact(stream, &mut fixed).await?;
    let fixed = Fixed::decode(fixed)?;
    let mut rest = vec![0; usize::from(fixed.length)];
    read_exact(stream, &mut rest).await?;
    fixed.claim(&rest)
}

async fn read_exact(
    stream: &mut (impl AsyncRead + Unpin),
    buffer: &mut [u8],
) -> Result<(), HeaderError> {
    match stream.read_exact(buffer).await {
        Ok(_) => Ok(()),
        Err(error) => Err(match error.kind() {
            io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset => HeaderError::Closed,
            _ => HeaderError::Transport(error),
        }),
    }
}

/// A header's first 16 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Fixed {
    local: bool,
    family: Family,
    /// Of the rest, in bytes.
    length: u16,
}

/// The address family and transport protocol of the connection that is passed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Family {
    Tcp4,
    Tcp6,
    Other(u8),
}

impl Fixed {
    fn decode(bytes: [u8; FIXED]) -> Result<Self, HeaderError> {
        let [signature @ .., version_command, family, high, low] = bytes;
        if signature != SIGNATURE {
            return Err(if signature.starts_with(b"PROXY ") {
                HeaderError::Version1
            } else {
                HeaderError::Missing
            });
        }
        if version_command >> 4 != 2 {
            return Err(HeaderError::Version(version_command >> 4));
        }
        let local = match version_command & 0xf {
            0 => true,
            1 => false,
            other => return Err(HeaderError::Command(other)),
        };
        let length = u16::from_be_bytes([high, low]);
        if length > MAX_REST {
            return Err(HeaderError::Long(length));
        }
        let family = match family {
            0x11 => Family::Tcp4,
            0x21 => Family::Tcp6,
            other => Family::Other(other),
        };
        Ok(Self {
            local,
            family,
            length,
        })
    }

    /// Whose connection it is, by the rest: the addresses, and extensions (TLVs), which say nothing that is needed here.
    fn claim(self, rest: &[u8]) -> Result<Claim, HeaderError> {
        if self.local {
            // Whatever stands in the rest has no meaning then.
            return Ok(Claim::Proxy);
        }
        let short = |needed| HeaderError::Short {
            length: rest.len(),
            needed,
        };
        // Source address, destination address, source port, destination port.
        let (ip, port) = match self.family {
            Family::Tcp4 => {
                let addresses: &[u8; 12] = rest.first_chunk().ok_or_else(|| short(12))?;
                let [a, b, c, d, _, _, _, _, port @ .., _, _] = *addresses;
                (IpAddr::from(Ipv4Addr::new(a, b, c, d)), port)
            }
            Family::Tcp6 => {
                let source: &[u8; 16] = rest.first_chunk().ok_or_else(|| short(36))?;
                let ports = rest.get(32..36).and_then(<[u8]>::first_chunk);
                let port: &[u8; 2] = ports.ok_or_else(|| short(36))?;
                (IpAddr::from(Ipv6Addr::from(*source)), *port)
            }
            Family::Other(other) => return Err(HeaderError::Family(other)),
        };
        Ok(Claim::Client((ip, u16::from_be_bytes(port)).into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(version_command: u8, family: u8, rest: &[u8]) -> Vec<u8> {
        let [high, low] = u16::try_from(rest.len()).expect("short").to_be_bytes();
        let fixed = [version_command, family, high, low];
        [SIGNATURE.as_slice(), &fixed, rest].concat()
    }

    async fn claim(bytes: &[u8]) -> Result<(Claim, usize), HeaderError> {
        let mut left = bytes;
        let claim = read(&mut left).await?;
        Ok((claim, left.len()))
    }

    const TCP4: [u8; 12] = [192, 0, 2, 1, 198, 51, 100, 2, 0x30, 0x39, 0x01, 0xbb];

    #[tokio::test]
    async fn a_client_of_either_family_is_named_and_nothing_more_is_read() {
        let mut bytes = header(0x21, 0x11, &TCP4);
        bytes.extend_from_slice(b"hello");
        let (read, left) = claim(&bytes).await.expect("a header");
        assert_eq!(
            read,
            Claim::Client("192.0.2.1:12345".parse().expect("an address"))
        );
        assert_eq!(left, 5);

        let mut rest = Vec::new();
        rest.extend_from_slice(&"2001:db8::1".parse::<Ipv6Addr>().expect("one").octets());
        rest.extend_from_slice(&Ipv6Addr::LOCALHOST.octets());
        rest.extend_from_slice(&[0x30, 0x39, 0x01, 0xbb]);
        // An extension: PP2_TYPE_NOOP with one byte.
        rest.extend_from_slice(&[4, 0, 1, 0]);
        let (read, left) = claim(&header(0x21, 0x21, &rest)).await.expect("a header");
        let expected = "[2001:db8::1]:12345".parse().expect("an address");
        assert_eq!((read, left), (Claim::Client(expected), 0));
    }

    #[tokio::test]
    async fn a_proxys_own_connection_has_no_client() {
        for family in [0x00, 0x11, 0x31] {
            let (read, left) = claim(&header(0x20, family, &TCP4)).await.expect("a header");
            assert_eq!((read, left), (Claim::Proxy, 0));
        }
    }

    #[tokio::test]
    async fn everything_else_is_refused_by_name() {
        let long = vec![0; usize::from(MAX_REST) + 1];
        let unix = vec![0; 216];
        let cases = [
            (
                b"PROXY TCP4 192.0.2.1 198.51.100.2 1 2\r\n".to_vec(),
                "version 1",
            ),
            (
                b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03abcdefgh".to_vec(),
                "without",
            ),
            (header(0x11, 0x11, &TCP4), "unknown version 1"),
            (header(0x31, 0x11, &TCP4), "unknown version 3"),
            (header(0x22, 0x11, &TCP4), "unknown command 2"),
            (header(0x21, 0x00, &[]), "protocol 0x00"),
            (header(0x21, 0x12, &TCP4), "protocol 0x12"),
            (header(0x21, 0x31, &unix), "protocol 0x31"),
            (
                header(0x21, 0x11, &TCP4[..11]),
                "11 bytes for addresses, and 12",
            ),
            (header(0x21, 0x21, &TCP4), "12 bytes for addresses, and 36"),
            (header(0x21, 0x11, &long), "4097 bytes"),
            (
                header(0x21, 0x11, &TCP4).into_iter().take(20).collect(),
                "closed",
            ),
            (SIGNATURE.to_vec(), "closed"),
        ];
        for (bytes, expected) in cases {
            let refused = claim(&bytes).await.expect_err(expected).to_string();
            assert!(refused.contains(expected), "{refused}");
        }
    }
}
