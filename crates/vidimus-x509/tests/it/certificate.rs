use std::time::{Duration, SystemTime};

use vidimus_x509::{
    cert::{CertError, Certificate, MAX_CERTIFICATE, SignatureError, fingerprint_sha256},
    key, pem,
};

use crate::{
    ca::{Ca, chain, csr},
    judge::openssl,
};

/// A certificate by openssl, with everything in it that is shown.
fn foreign() -> Vec<u8> {
    let dir = tempfile::tempdir().unwrap();
    openssl(
        dir.path(),
        &[
            "req",
            "-x509",
            "-newkey",
            "rsa:2048",
            "-nodes",
            "-keyout",
            "key",
            "-outform",
            "DER",
            "-subj",
            "/C=DE/O=Example/CN=first/CN=last",
            "-days",
            "10",
            "-set_serial",
            "0x00ABCDEF",
            "-addext",
            "subjectAltName=DNS:a.example.org,IP:192.0.2.1,URI:spiffe://example.org/a,\
             email:a@example.org,otherName:1.2.3;UTF8:x",
            "-addext",
            "basicConstraints=critical,CA:TRUE,pathlen:3",
            "-addext",
            "keyUsage=digitalSignature,keyCertSign,decipherOnly",
            "-addext",
            "extendedKeyUsage=serverAuth,codeSigning,1.2.3.4",
            "-addext",
            "1.2.3.4.5=critical,ASN1:NULL",
        ],
    )
}

/// C14: everything a certificate shows is what openssl put in.
#[test]
fn a_foreign_certificate_is_shown_as_it_is() {
    let der = foreign();
    let read = Certificate::parse(&der).unwrap();
    assert_eq!(read.der(), der);
    assert_eq!(read.subject_text(), "CN=last,CN=first,O=Example,C=DE");
    assert_eq!(read.issuer_text(), read.subject_text());
    assert_eq!(read.common_name(), Some("last"));
    assert_eq!(read.serial_hex(), "abcdef");
    assert_eq!(read.key_text(), "RSA 2048");
    assert_eq!(key::describe(read.spki_der()), "RSA 2048");
    assert_eq!((read.is_ca(), read.path_len()), (true, Some(3)));
    let usages = ["digitalSignature", "keyCertSign", "decipherOnly"];
    assert_eq!(read.key_usage(), Some(&usages[..]));
    assert_eq!(
        read.ext_key_usage(),
        ["serverAuth", "codeSigning", "1.2.3.4"]
    );
    assert_eq!(read.dns_names(), ["a.example.org"]);
    assert_eq!(
        read.ip_addresses(),
        ["192.0.2.1".parse::<std::net::IpAddr>().unwrap()]
    );
    assert_eq!(read.uris(), ["spiffe://example.org/a"]);
    assert_eq!(read.emails(), ["a@example.org"]);
    assert_eq!(read.subject_key_id().map(<[u8]>::len), Some(20));
    assert_eq!(read.authority_key_id(), read.subject_key_id());
    assert_eq!(read.unknown_critical_extensions(), ["1.2.3.4.5"]);
    let day = Duration::from_secs(24 * 60 * 60);
    assert_eq!(read.not_after(), read.not_before() + 10 * day);
    for (at, valid) in [
        (read.not_before() - Duration::from_secs(1), false),
        (read.not_before(), true),
        (read.not_after(), true),
        (read.not_after() + Duration::from_secs(1), false),
    ] {
        assert_eq!(read.is_valid_at(at), valid);
    }
    assert!(read.not_before() > SystemTime::UNIX_EPOCH);

    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("c.der");
    #[expect(
        clippy::disallowed_methods,
        reason = "a scratch file for another program"
    )]
    std::fs::write(&path, &der).unwrap();
    let args = [
        "x509",
        "-inform",
        "DER",
        "-in",
        "c.der",
        "-noout",
        "-fingerprint",
        "-sha256",
    ];
    let theirs = String::from_utf8(openssl(dir.path(), &args))
        .unwrap()
        .replace(':', "");
    let ours = data_encoding::HEXUPPER.encode(&read.fingerprint_sha256());
    assert_eq!(theirs.trim().rsplit('=').next(), Some(ours.as_str()));
    assert_eq!(fingerprint_sha256(&der), read.fingerprint_sha256());
}

/// K9: a signature verifies under the key that made it and no other, whatever its kind.
#[test]
fn signatures_verify_under_their_issuers_key_only() {
    let dir = tempfile::tempdir().unwrap();
    let kinds: [&[&str]; 6] = [
        &[
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:P-256",
            "-sha256",
        ],
        &[
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:P-384",
            "-sha512",
        ],
        &[
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:P-521",
            "-sha512",
        ],
        &["-newkey", "ed25519"],
        &["-newkey", "rsa:2048", "-sha384"],
        &[
            "-newkey",
            "rsa:2048",
            "-sha256",
            "-sigopt",
            "rsa_padding_mode:pss",
            "-sigopt",
            "rsa_pss_saltlen:digest",
        ],
    ];
    let other = Ca::root();
    for kind in kinds {
        let mut args = vec![
            "req", "-x509", "-nodes", "-keyout", "key", "-outform", "DER", "-subj", "/CN=x",
        ];
        args.extend(kind);
        let read = Certificate::parse(&openssl(dir.path(), &args)).unwrap();
        read.verify_signature(read.spki_der())
            .unwrap_or_else(|e| panic!("{kind:?}: {}", chain(&e)));
        read.verify_signature(other.key_spki()).unwrap_err();
    }
    let sha1 = [
        "req", "-x509", "-nodes", "-keyout", "key", "-outform", "DER", "-subj", "/CN=x", "-newkey",
        "rsa:2048", "-sha1",
    ];
    let read = Certificate::parse(&openssl(dir.path(), &sha1)).unwrap();
    let refused = read.verify_signature(read.spki_der()).unwrap_err();
    assert!(matches!(&refused, SignatureError::Algorithm { found } if found == "RSA with SHA-1"));
}

/// RFC 5280 §4.1.1.2: a certificate that names two algorithms is not verified by either.
#[test]
fn two_algorithms_in_one_certificate_are_refused() {
    let ca = Ca::root();
    let der = ca.issue_leaf(&csr("p384-sha384")).der().to_vec();
    // The outer ecdsa-with-SHA384 becomes ecdsa-with-SHA256: the last of the two.
    let algorithm = [0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x03];
    let outer = der
        .windows(8)
        .rposition(|window| window == algorithm)
        .unwrap();
    let mut mixed = der.clone();
    mixed[outer + 7] = 0x02;
    Certificate::parse(&der)
        .unwrap()
        .verify_signature(ca.key_spki())
        .unwrap();
    let refused = Certificate::parse(&mixed)
        .unwrap()
        .verify_signature(ca.key_spki())
        .unwrap_err();
    assert!(matches!(refused, SignatureError::Der(_)), "{refused:?}");
}

/// No byte can be changed without the signature, or the reader, noticing.
#[test]
fn a_certificate_changed_at_any_byte_does_not_verify() {
    let ca = Ca::root();
    let der = ca.issue_leaf(&csr("p384-sha384")).der().to_vec();
    for position in 0..der.len() {
        let mut changed = der.clone();
        changed[position] ^= 0x04;
        if let Ok(read) = Certificate::parse(&changed) {
            assert!(
                read.verify_signature(ca.key_spki()).is_err(),
                "byte {position}"
            );
        }
    }
}

/// What isn't exactly one certificate isn't one.
#[test]
fn what_is_not_exactly_one_certificate_is_refused() {
    let good = foreign();
    Certificate::parse(&good).unwrap();
    let mut trailing = good.clone();
    trailing.push(0);
    assert!(chain(&Certificate::parse(&trailing).unwrap_err()).contains("1 bytes after the end"));
    for length in 0..good.len() {
        Certificate::parse(&good[..length]).unwrap_err();
    }
    let huge = vec![0x30; MAX_CERTIFICATE + 1];
    let found = huge.len();
    assert_eq!(
        Certificate::parse(&huge).unwrap_err(),
        CertError::TooLarge { found }
    );
    let request = csr("p384-sha384");
    Certificate::parse(request.der()).unwrap_err();
    let text = pem::encode(pem::CERTIFICATE, &good);
    assert_eq!(pem::certificates(text.as_bytes()).unwrap(), [good]);
}

/// RFC 5280 §4.2: the same extension twice: which one counts?
#[test]
fn an_extension_twice_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let config = "[req]\ndistinguished_name=dn\nprompt=no\nx509_extensions=ext\n[dn]\nCN=x\n\
                  [ext]\n1.2.3.4=ASN1:NULL\n1.2.3.5=ASN1:NULL\n";
    let path = dir.path().join("config");
    #[expect(
        clippy::disallowed_methods,
        reason = "a scratch file for another program"
    )]
    std::fs::write(&path, config).unwrap();
    let der = openssl(
        dir.path(),
        &[
            "req",
            "-x509",
            "-config",
            "config",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:P-384",
            "-nodes",
            "-keyout",
            "key",
            "-outform",
            "DER",
        ],
    );
    Certificate::parse(&der).unwrap();
    let at = der
        .windows(5)
        .position(|window| window == [6, 3, 0x2a, 3, 5]);
    let mut twice = der;
    twice[at.unwrap() + 4] = 4;
    let oid = "1.2.3.4".to_owned();
    assert_eq!(
        Certificate::parse(&twice).unwrap_err(),
        CertError::DuplicateExtension { oid }
    );
}
