use super::*;

const CERT_A: &str = "-----BEGIN CERTIFICATE-----\nMAMCAQE=\n-----END CERTIFICATE-----\n";
const CERT_B: &str = "-----BEGIN CERTIFICATE-----\nMAMCAQI=\n-----END CERTIFICATE-----\n";
const KEY: &str = "-----BEGIN PRIVATE KEY-----\nMAMCAQM=\n-----END PRIVATE KEY-----\n";
const A: [u8; 5] = [0x30, 3, 2, 1, 1];
const B: [u8; 5] = [0x30, 3, 2, 1, 2];

fn bundle(text: &str) -> Result<Vec<Vec<u8>>, PemError> {
    certificates(text.as_bytes())
}

#[test]
fn a_bundle_is_read_in_order_with_text_crlf_and_byte_order_mark() {
    let both = Ok(vec![A.to_vec(), B.to_vec()]);
    assert_eq!(bundle(&format!("{CERT_A}{CERT_B}")), both);
    assert_eq!(bundle(&format!("\u{feff}{CERT_A}{CERT_B}")), both);
    assert_eq!(
        bundle(&format!("{CERT_A}{CERT_B}").replace('\n', "\r\n")),
        both
    );
    assert_eq!(
        bundle(&format!("{CERT_A}{CERT_B}").replace('\n', "  \n")),
        both
    );
    assert_eq!(
        bundle(&format!(
            "# ours - since 2020\n---\n----- Root, the old one -----\n{CERT_A}\nsubject=CN = b\n{CERT_B}"
        )),
        both
    );
    assert_eq!(bundle(&format!("{CERT_A}{KEY}{CERT_B}")), both);
    assert_eq!(bundle(format!("{CERT_A}{CERT_B}").trim_end()), both);
    assert_eq!(
        bundle(&format!("{CERT_A}{CERT_B}").replace("MAMC", "MA\nMC")),
        both
    );
}

#[test]
fn a_line_that_resembles_a_boundary_is_named() {
    for (bad, line) in [
        ("-----BEGIN CERTFICATE-----", 4),
        ("----BEGIN CERTIFICATE-----", 4),
        ("-----BEGIN CERTIFICATE----", 4),
        ("-----BEGIN CERTIFICATE", 4),
        (" -----BEGIN CERTIFICATE-----", 4),
        ("-----begin certificate-----", 4),
        ("-----BEGIN  CERTIFICATE-----", 4),
        ("\u{2014}\u{2014}-BEGIN CERTIFICATE-----", 4),
        ("-----BEGINCERTIFICATE-----", 4),
        ("-----BEGN CERTIFICATE-----", 4),
        ("-----BEGIN FOO-----", 4),
    ] {
        let text = format!(
            "{CERT_A}{}",
            CERT_B.replacen("-----BEGIN CERTIFICATE-----", bad, 1)
        );
        let refused = bundle(&text).unwrap_err();
        assert!(
            matches!(&refused, PemError::Boundary { line: found, .. } if *found == line),
            "{bad}: {refused:?}"
        );
    }
}

/// What vanishes from a bundle leaves a shorter one that is valid.
#[test]
fn a_certificate_on_one_line_is_named_however_long_it_is() {
    let content = "MIIB".repeat(300);
    let (begin, end) = ("-----BEGIN CERTIFICATE-----", "-----END CERTIFICATE-----");
    for one_line in [
        format!("{begin}MAMCAQI={end}"),
        format!("{begin}{content}{end}"),
        format!("{begin}\\n{content}\\n{end}\\n"),
    ] {
        let field = "\"ca.crt\": \"";
        let far_along = format!("{{\"kind\": \"{}\", {field}", "x".repeat(300));
        let cut_out = [field, far_along.as_str(), "ca.crt: '", "cert="];
        for before in ["", "  ", "\u{feff}", "\"", "'"].iter().chain(&cut_out) {
            let text = format!("{CERT_A}{before}{one_line}\n{CERT_B}");
            let refused = bundle(&text);
            assert_eq!(refused, Err(PemError::Boundary { line: 4 }), "{before:?}");
        }
    }
    // Other long lines are text like any other.
    let text = format!("{CERT_A}subject: {content}\n---- {content}\nBEGIN {content}\n{CERT_B}");
    assert_eq!(bundle(&text), Ok(vec![A.to_vec(), B.to_vec()]));
}

#[test]
fn a_trusted_certificate_is_refused_where_certificates_are_read_and_only_there() {
    let trusted = CERT_B.replace("CERTIFICATE", "TRUSTED CERTIFICATE");
    let text = format!("{CERT_A}{trusted}");
    assert_eq!(bundle(&text), Err(PemError::Trusted { line: 4 }));
    assert_eq!(bundle(&trusted), Err(PemError::Trusted { line: 1 }));
    assert!(private_key(format!("{trusted}{KEY}").as_bytes()).is_ok());
}

/// Whatever line ends a key has lost, in whichever file it stands.
#[test]
fn no_error_has_content_in_it() {
    let secret = "MHcCAQEEIKcontentofakey";
    for label in ["PRIVATE KEY", "EC PRIVATE KEY", "RSA PRIVATE KEY"] {
        let (begin, end) = (
            format!("-----BEGIN {label}-----"),
            format!("-----END {label}-----"),
        );
        for text in [
            format!("{begin}{secret}{end}"),
            format!("{begin}{secret}\n{secret}\n{end}\n"),
            format!("{begin}\n{secret}{end}\n"),
            format!("{begin}\n{secret}\n{end}{secret}\n"),
            format!("{begin}\n{secret}\n{end}\n"),
            format!("{begin} {}{end}", secret.repeat(20)),
        ] {
            let text = text.as_bytes();
            let errors = [
                private_key(text).map(drop).unwrap_err(),
                certificates(text).map(drop).unwrap_err(),
                revocation_lists(text).map(drop).unwrap_err(),
            ];
            let shown = format!(
                "{errors:?}{errors:#?}{}{}{}",
                errors[0], errors[1], errors[2]
            );
            assert!(!shown.contains("MHcCAQ"), "{shown}");
        }
    }
}

#[test]
fn one_bad_block_refuses_all_and_is_named_by_position() {
    let text = format!("{CERT_A}{}", CERT_B.replace("MAMCAQI=", "MAMCAQI"));
    let label = "CERTIFICATE".to_owned();
    let expected = PemError::Base64 {
        label,
        position: 2,
        line: 4,
    };
    assert_eq!(bundle(&text), Err(expected));
    let text = format!("{CERT_A}{}", CERT_B.replace("MAMCAQI=", "MAMCAQIA"));
    let refused = bundle(&text).unwrap_err();
    assert!(
        matches!(
            refused,
            PemError::Der {
                position: 2,
                line: 4,
                ..
            }
        ),
        "{refused:?}"
    );
    let text = format!("{CERT_A}{}", CERT_B.replace("MAMCAQI=", ""));
    assert!(bundle(&text).is_err(), "an empty block");
}

#[test]
fn a_block_must_end_under_its_own_label() {
    let unended = |line| {
        Err(PemError::Unended {
            label: "CERTIFICATE".to_owned(),
            line,
        })
    };
    let cut = CERT_A.replace("-----END CERTIFICATE-----\n", "");
    assert_eq!(bundle(&cut), unended(1));
    assert_eq!(bundle(&format!("{cut}{CERT_B}")), unended(1));
    assert_eq!(
        bundle(&CERT_A.replace("END CERTIFICATE", "END X509 CRL")),
        unended(1)
    );
    let extra = format!("{CERT_A}-----END CERTIFICATE-----\n");
    assert!(matches!(
        bundle(&extra),
        Err(PemError::Boundary { line: 4, .. })
    ));
}

#[test]
fn nothing_to_read_is_an_error_that_says_what_was_wanted() {
    let none = Err(PemError::NoBlock {
        wanted: "CERTIFICATE".to_owned(),
    });
    assert_eq!(bundle(""), none);
    assert_eq!(bundle("hello\n"), none);
    assert_eq!(bundle(KEY), none);
    assert_eq!(certificates(b"\xff\xfe-\0-\0"), Err(PemError::Utf16));
    let huge = vec![b'\n'; MAX_TEXT + 1];
    assert_eq!(
        certificates(&huge),
        Err(PemError::TooLarge {
            found: MAX_TEXT + 1,
            max: MAX_TEXT
        })
    );
}

#[test]
fn a_private_key_is_found_among_others_and_must_be_alone_and_plain() {
    let key = private_key(format!("{CERT_A}{KEY}").as_bytes()).unwrap();
    assert_eq!(
        (key.kind, key.der.as_slice()),
        (PrivateKeyKind::Pkcs8, &[0x30, 3, 2, 1, 3][..])
    );
    assert_eq!(format!("{key:?}"), "PrivateKeyPem { kind: Pkcs8, .. }");
    let ec = KEY.replace("PRIVATE", "EC PRIVATE");
    let with_parameters =
        format!("-----BEGIN EC PARAMETERS-----\nBgUrgQQAIg==\n-----END EC PARAMETERS-----\n{ec}");
    let key = private_key(with_parameters.as_bytes()).unwrap();
    assert_eq!(key.kind, PrivateKeyKind::Sec1);
    let several = private_key(format!("{KEY}{ec}").as_bytes()).unwrap_err();
    assert!(matches!(several, PemError::SeveralBlocks { found: 2, .. }));
    let encrypted = KEY.replace("PRIVATE", "ENCRYPTED PRIVATE");
    assert_eq!(
        private_key(encrypted.as_bytes()).unwrap_err(),
        PemError::Encrypted { line: 1 }
    );
    let old = ec.replacen(
        '\n',
        "\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-256-CBC,00\n\n",
        1,
    );
    assert_eq!(
        private_key(old.as_bytes()).unwrap_err(),
        PemError::Encrypted { line: 1 }
    );
}

#[test]
fn what_is_written_is_read_back() {
    for length in [0, 1, 46, 47, 48, 49, 96, 200] {
        let content = vec![7; length];
        let der = crate::asn1::write::sequence(&[&crate::asn1::write::octet_string(&content)]);
        let text = encode("CERTIFICATE", &der);
        assert!(text.lines().all(|line| line.len() <= 64) && text.ends_with("-----\n"));
        assert_eq!(decode("CERTIFICATE", text.as_bytes()), Ok(der));
    }
}
