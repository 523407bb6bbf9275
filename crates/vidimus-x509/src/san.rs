//! subjectAltName (RFC 5280 §4.2.1.6) as it is read.
#![warn(clippy::indexing_slicing, clippy::arithmetic_side_effects)]

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::asn1::{DerError, Element, Reader, SEQUENCE, context_primitive};

/// The names of a subjectAltName, by kind, as written.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Names {
    pub(crate) dns: Vec<String>,
    pub(crate) ip: Vec<IpAddr>,
    pub(crate) uri: Vec<String>,
    pub(crate) email: Vec<String>,
    /// How many of other kinds there were.
    pub(crate) others: usize,
}

/// Reads the content of the extension.
pub(crate) fn read(extension: &[u8]) -> Result<Names, DerError> {
    let mut names = Names::default();
    let mut reader = Reader::single(extension, SEQUENCE, "general names")?.inside();
    loop {
        // GeneralNames is SIZE (1..MAX): an empty one is a missing element.
        let name = reader.any("a general name")?;
        match name.tag {
            tag if tag == context_primitive(1) => names.email.push(name.ia5()?.to_owned()),
            tag if tag == context_primitive(2) => names.dns.push(name.ia5()?.to_owned()),
            tag if tag == context_primitive(6) => names.uri.push(name.ia5()?.to_owned()),
            tag if tag == context_primitive(7) => names.ip.push(ip(&name)?),
            _ => names.others = names.others.saturating_add(1),
        }
        if reader.is_empty() {
            return Ok(names);
        }
    }
}

fn ip(name: &Element<'_>) -> Result<IpAddr, DerError> {
    if let Ok(v4) = <[u8; 4]>::try_from(name.value) {
        return Ok(Ipv4Addr::from(v4).into());
    }
    <[u8; 16]>::try_from(name.value)
        .map(|v6| Ipv6Addr::from(v6).into())
        .map_err(|_| name.bad("IP address of 4 or 16 bytes"))
}
