//! What each fuzz target does with its input: parse it, and where it parses, check that what came out is
//! consistent. Also run without a fuzzer by `tests/conformance`.

use std::net::IpAddr;

use vidimus_node::config;
use vidimus_x509::{crl::RevocationList, csr::VerifiedCsr, fuzzing, pem};

/// A certificate signing request, as DER or PEM.
///
/// # Panics
///
/// When an accepted request reads differently the second time, or shows a key that is not in it.
pub fn csr(data: &[u8]) {
    fuzzing::csr(data);
    let Ok(first) = VerifiedCsr::parse(data) else {
        return;
    };
    let second = VerifiedCsr::parse(first.der()).expect("an accepted request is accepted again");
    assert_eq!(first.spki_der(), second.spki_der());
    assert_eq!(first.subject_der(), second.subject_der());
    let key = first.spki_der();
    assert!(
        first.der().windows(key.len()).any(|window| window == key),
        "the key is the request's, byte for byte"
    );
}

/// Certificates and a private key, as PEM.
///
/// # Panics
///
/// When accepted certificates don't survive being written and read again.
pub fn pem(data: &[u8]) {
    fuzzing::pem(data);
    if let Ok(certificates) = pem::certificates(data) {
        let written: String = certificates
            .iter()
            .map(|der| pem::encode("CERTIFICATE", der))
            .collect();
        let again = pem::certificates(written.as_bytes()).expect("what was written can be read");
        assert_eq!(certificates, again);
    }
}

/// Revocation lists, as DER or PEM.
///
/// # Panics
///
/// When a list that is read says different things about one serial number in two forms.
pub fn crl(data: &[u8]) {
    fuzzing::crl(data);
    for der in pem::revocation_lists(data).unwrap_or_default() {
        let Ok(list) = RevocationList::parse(&der) else {
            continue;
        };
        for serial in der.windows(2) {
            let longer = match serial[0] {
                0..=0x7f => [0, serial[0], serial[1]],
                0x80..=0xff => [0xff, serial[0], serial[1]],
            };
            assert_eq!(list.find(serial), list.find(&longer));
        }
    }
}

/// A certificate, as DER.
///
/// # Panics
///
/// When a name is shown with control characters in it.
pub fn certificate(data: &[u8]) {
    fuzzing::cert(data);
}

/// A header of the PROXY protocol, version 2, and what follows it.
///
/// # Panics
///
/// When more or less than the header is read, or a client's address is another one than stands in it.
pub fn proxy_header(data: &[u8]) {
    let Some((client, read)) = vidimus_tls::fuzzing::proxy_header(data) else {
        return;
    };
    assert_eq!(&data[..12], b"\r\n\r\n\0\r\nQUIT\n");
    let length = usize::from(u16::from_be_bytes([data[14], data[15]]));
    assert_eq!(read, 16 + length, "the header and nothing else");
    let Some(client) = client else {
        assert_eq!(
            data[12], 0x20,
            "only a proxy's own connection has no client"
        );
        return;
    };
    assert_eq!(data[12], 0x21);
    let (ip, port) = match client.ip() {
        IpAddr::V4(ip) => (ip.octets().to_vec(), 24),
        IpAddr::V6(ip) => (ip.octets().to_vec(), 48),
    };
    assert_eq!(&data[16..16 + ip.len()], ip);
    assert_eq!(&data[port..port + 2], client.port().to_be_bytes());
}

/// A machine config.
///
/// # Panics
///
/// When a refused config is refused without a reason, or an accepted one reads differently the second time.
pub fn machine_config(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    match config::parse("machine.yaml", text) {
        Ok(first) => {
            let second = config::parse("again.yaml", first.yaml())
                .expect("an accepted config is accepted again");
            assert_eq!(first.digest_sha256(), second.digest_sha256());
        }
        Err(errors) => assert!(!errors.to_string().is_empty()),
    }
}

/// A policy file, or an allow-list as an environment variable has it.
///
/// # Panics
///
/// When the same bytes mean something else the second time, or a list reads otherwise than it was written.
pub fn policy(data: &[u8]) {
    assert_eq!(
        vidimus_tls::fuzzing::policy(data),
        vidimus_tls::fuzzing::policy(data)
    );
}
