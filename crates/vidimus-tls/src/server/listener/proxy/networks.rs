//! Whose headers are believed.

use std::net::IpAddr;
use std::str::FromStr;
use std::sync::Arc;

use ipnet::IpNet;

/// The networks of the proxies in front of a listener. Cheap to clone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProxyNetworks(Arc<[IpNet]>);

/// Why a list of networks was not taken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ProxyNetworksError {
    /// A list without an entry would believe nobody, which is what a listener without the PROXY protocol does.
    #[error(
        "no network of a proxy is named; accepted: addresses and networks such as 192.0.2.1 or 10.0.0.0/8"
    )]
    Empty,
    /// An entry is neither an address nor a network.
    #[error("{entry:?} is neither an address nor a network such as 10.0.0.0/8")]
    Malformed {
        /// The entry.
        entry: String,
    },
}

impl ProxyNetworks {
    /// Whether a connection from this address comes from a proxy. An IPv4 address may be written as IPv6, as a listener of
    /// both families sees it.
    #[must_use]
    pub fn contain(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        self.0.iter().any(|network| network.contains(&address))
    }
}

impl FromStr for ProxyNetworks {
    type Err = ProxyNetworksError;

    /// Reads addresses and networks with commas between them.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let entries = text
            .split(',')
            .map(str::trim)
            .filter(|entry| !entry.is_empty());
        let networks: Vec<IpNet> = entries.map(network).collect::<Result<_, _>>()?;
        if networks.is_empty() {
            return Err(ProxyNetworksError::Empty);
        }
        Ok(Self(networks.into()))
    }
}

fn network(entry: &str) -> Result<IpNet, ProxyNetworksError> {
    let network = entry.parse::<IpNet>().ok();
    let host = || entry.parse::<IpAddr>().ok().map(IpNet::from);
    network
        .or_else(host)
        .ok_or_else(|| ProxyNetworksError::Malformed {
            entry: entry.to_owned(),
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_and_networks_of_both_families_are_read() {
        let networks: ProxyNetworks = "10.0.0.0/8, 192.0.2.1,2001:db8::/32,"
            .parse()
            .expect("a list");
        for inside in ["10.255.0.1", "192.0.2.1", "2001:db8::7", "::ffff:10.0.0.1"] {
            assert!(
                networks.contain(inside.parse().expect("an address")),
                "{inside}"
            );
        }
        for outside in ["11.0.0.1", "192.0.2.2", "2001:db9::7", "::1"] {
            assert!(
                !networks.contain(outside.parse().expect("an address")),
                "{outside}"
            );
        }
    }

    #[test]
    fn a_list_with_a_wrong_entry_or_none_is_refused() {
        assert_eq!(
            " , ".parse::<ProxyNetworks>(),
            Err(ProxyNetworksError::Empty)
        );
        for wrong in ["10.0.0.0/33", "proxy.example", "10.0.0.0/8 10.1.0.0/16"] {
            let entry = wrong.to_owned();
            let refused = format!("::1,{wrong}").parse::<ProxyNetworks>();
            assert_eq!(refused, Err(ProxyNetworksError::Malformed { entry }));
        }
    }
}
