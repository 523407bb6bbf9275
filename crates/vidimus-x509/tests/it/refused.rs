use std::time::Instant;

use vidimus_x509::{
    csr::{CsrError, MAX_CSR, VerifiedCsr},
    pem,
};

use crate::ca::{chain, csr, csr_bytes};

fn refusal(bytes: &[u8]) -> String {
    let refused = VerifiedCsr::parse(bytes).expect_err("it is accepted");
    chain(&refused)
}

/// C5: keys this CA doesn't certify are refused by name, with what is accepted instead, and how
/// cert-manager is told to make such a key.
#[test]
fn refuses_other_subject_keys_and_says_what_is_accepted() {
    for (name, found) in [
        ("p256", "EC P-256"),
        ("p521", "EC P-521"),
        ("ed25519", "Ed25519"),
        ("rsa2048", "RSA 2048"),
        ("rsapss", "RSA restricted to PSS (id-RSASSA-PSS)"),
        ("rsa3072-e3", "RSA 3072 with exponent 3"),
        ("rsa3072-e35", "RSA 3072 with exponent 34359738369"),
        ("p384-explicit", "EC with explicit curve parameters"),
        ("p384-compressed", "EC P-384 as a compressed point"),
    ] {
        let refused = VerifiedCsr::parse(&csr_bytes(name)).unwrap_err();
        assert!(matches!(refused, CsrError::Key(_)), "{name}: {refused:?}");
        let text = chain(&refused);
        assert!(
            text.starts_with(&format!("subject key is {found}; accepted: EC P-384")),
            "{text}"
        );
        assert!(text.contains("RSA of 3072 to 8192 bits"), "{text}");
        assert!(
            text.contains("privateKey: {algorithm: ECDSA, size: 384}"),
            "{text}"
        );
    }
    csr("p384-sha384");
    csr("rsa3072-sha384");
}

/// C5: weak or incomplete signatures are refused by name.
#[test]
fn refuses_other_signature_algorithms_by_name() {
    for (name, found) in [
        (
            "rsa3072-md5",
            "signature algorithm is RSA with MD5; accepted",
        ),
        (
            "rsa3072-sha1",
            "signature algorithm is RSA with SHA-1; accepted",
        ),
        (
            "p384-sha1",
            "signature algorithm is ECDSA with SHA-1; accepted",
        ),
        (
            "rsa3072-sha224",
            "signature algorithm is RSA with SHA-224; accepted",
        ),
        (
            "rsa3072-pss-longsalt",
            "SHA-384 and a salt of 334 bytes; accepted",
        ),
        ("rsa3072-pss-sha1", "RSA-PSS signature with SHA-1; accepted"),
        (
            "rsa3072-pss-mgf1",
            "SHA-384, but MGF1 with SHA-256; accepted",
        ),
    ] {
        let text = refusal(&csr_bytes(name));
        assert!(text.contains(found), "{name}: {text}");
        assert!(
            text.contains("SHA-256, SHA-384 or SHA-512"),
            "{name}: {text}"
        );
    }
    csr("rsa3072-pss-sha384");
}

/// C5: proof of possession: every byte under the signature counts, and the signature itself.
#[test]
fn refuses_a_request_changed_at_any_byte() {
    for name in ["p384-sha384", "rsa3072-sha256", "rsa3072-pss-sha384"] {
        let good = csr_bytes(name);
        VerifiedCsr::parse(&good).unwrap();
        for position in 0..good.len() {
            let mut changed = good.clone();
            changed[position] ^= 0x01;
            assert!(
                VerifiedCsr::parse(&changed).is_err(),
                "{name}, byte {position}"
            );
        }
    }
    let mut broken = csr_bytes("rsa3072-sha256");
    *broken.last_mut().unwrap() ^= 1;
    assert!(refusal(&broken).contains("does not verify under the RSA 3072 key"));
}

/// C5: a request signed by another key proves nothing.
#[test]
fn refuses_a_signature_of_another_key() {
    let (mut mixed, other) = (csr_bytes("rsa3072-sha384"), csr_bytes("rsa3072-sha256"));
    let signature = mixed.len() - 384;
    mixed[signature..].copy_from_slice(&other[other.len() - 384..]);
    assert!(refusal(&mixed).contains("does not verify"));
}

/// C5: nothing before, nothing after, nothing missing.
#[test]
fn refuses_what_is_not_exactly_one_request() {
    let good = csr_bytes("p384-sha384");
    let mut trailing = good.clone();
    trailing.push(0);
    assert!(refusal(&trailing).contains("1 bytes after the end"));
    for length in 1..good.len() {
        VerifiedCsr::parse(&good[..length]).unwrap_err();
    }
    let text = pem::encode(pem::CERTIFICATE_REQUEST, &good);
    VerifiedCsr::parse(text.as_bytes()).unwrap();
    assert!(refusal(format!("{text}{text}").as_bytes()).contains("2 CERTIFICATE REQUEST blocks"));
    let trailing = pem::encode(pem::CERTIFICATE_REQUEST, &trailing);
    assert!(refusal(trailing.as_bytes()).contains("1 bytes after the end"));
    assert_eq!(VerifiedCsr::parse(b"").unwrap_err(), CsrError::Empty);
    let other = text.replace("CERTIFICATE REQUEST", "CERTIFICATE");
    assert!(refusal(other.as_bytes()).contains("no CERTIFICATE REQUEST block found"));
}

/// C5: size is bounded before anything is read, so junk is cheap.
#[test]
fn refuses_junk_of_any_size_at_once() {
    let began = Instant::now();
    for size in [1 << 20, MAX_CSR + 1] {
        for fill in [0x00, 0x30, b'-', b'\n', 0xff] {
            let refused = VerifiedCsr::parse(&vec![fill; size]).unwrap_err();
            assert_eq!(refused, CsrError::TooLarge { found: size });
        }
    }
    for fill in [0x00, 0x30, b'-', b'\n', 0xff] {
        VerifiedCsr::parse(&vec![fill; MAX_CSR]).unwrap_err();
    }
    // SEQUENCEs in SEQUENCEs, as deep as fits.
    let mut nested = Vec::new();
    for depth in (0..MAX_CSR / 4).rev() {
        let length = u16::try_from((depth * 4).min(usize::from(u16::MAX))).unwrap();
        let [high, low] = length.to_be_bytes();
        nested.splice(0..0, [0x30, 0x82, high, low]);
        if nested.len() > 4096 {
            break;
        }
    }
    VerifiedCsr::parse(&nested).unwrap_err();
    assert!(began.elapsed().as_secs() < 10);
}

/// C5: a modulus of 16384 bits is refused before a second is spent on it, and an even exponent by
/// name.
#[test]
fn refuses_pathological_rsa_keys_cheaply() {
    let huge = request_with_rsa_key(&[0xff; 2048], &[1, 0, 1]);
    let began = Instant::now();
    assert!(refusal(&huge).starts_with("subject key is RSA 16384; accepted"));
    assert!(began.elapsed().as_millis() < 1000);
    let even = request_with_rsa_key(&[0xff; 384], &[1, 0, 2]);
    assert!(refusal(&even).starts_with("subject key is RSA 3072 with exponent 65538; accepted"));
    let wide = request_with_rsa_key(&[0xff; 384], &[0x7f; 100]);
    assert!(refusal(&wide).contains("RSA 3072 with an exponent of more than 64 bits"));
    // The same shape with ordinary numbers gets as far as its signature.
    let ordinary = request_with_rsa_key(&[0xff; 384], &[1, 0, 1]);
    assert!(refusal(&ordinary).contains("does not verify"));
}

fn tlv(tag: u8, parts: &[&[u8]]) -> Vec<u8> {
    let content = parts.concat();
    let length = u16::try_from(content.len()).unwrap();
    let [high, low] = length.to_be_bytes();
    let header = match length {
        0..=0x7f => vec![tag, low],
        0x80..=0xff => vec![tag, 0x81, low],
        _ => vec![tag, 0x82, high, low],
    };
    [header, content].concat()
}

/// An unsigned request by hand.
fn request_with_rsa_key(modulus: &[u8], exponent: &[u8]) -> Vec<u8> {
    let rsa_encryption = [0x06, 9, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 1, 5, 0];
    let sha256_with_rsa = [0x06, 9, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 11, 5, 0];
    let key = tlv(
        0x30,
        &[&tlv(0x02, &[&[0], modulus]), &tlv(0x02, &[exponent])],
    );
    let spki = tlv(
        0x30,
        &[&tlv(0x30, &[&rsa_encryption]), &tlv(0x03, &[&[0], &key])],
    );
    let info = tlv(0x30, &[&[2, 1, 0], &[0x30, 0], &spki, &[0xa0, 0]]);
    let signature = tlv(0x03, &[&[0], &vec![1; modulus.len()]]);
    tlv(0x30, &[&info, &tlv(0x30, &[&sha256_with_rsa]), &signature])
}
