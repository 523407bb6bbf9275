//! Revocation lists that openssl writes and signs, and the x509-cert crate's reading of them beside ours.

use std::{fs, path::Path};

use vidimus_x509::{
    cert::Certificate,
    crl::{Covers, CrlError, Reason, RevocationList, SignatureError},
    pem,
};
use x509_cert::der::Decode;

use crate::judge::openssl;

/// What `openssl ca` needs, and the sections that tests choose extensions from.
const CONFIG: &str = "\
[ca]
default_ca = here
[here]
database = index.txt
crlnumber = number
default_md = sha256
default_crl_days = 7
crl_extensions = plain
[plain]
authorityKeyIdentifier = keyid
[users]
authorityKeyIdentifier = keyid
issuingDistributionPoint = critical, @users_point
[users_point]
onlyuser = TRUE
[part]
authorityKeyIdentifier = keyid
issuingDistributionPoint = critical, @part_point
[part_point]
fullname = URI:http://crl.example/1
[indirect]
issuingDistributionPoint = critical, @indirect_point
[indirect_point]
indirectCRL = TRUE
";

/// A CA of the openssl program in a folder of its own.
struct Foreign(tempfile::TempDir);

impl Foreign {
    fn new(key: &[&str]) -> Self {
        let foreign = Self(tempfile::tempdir().unwrap());
        foreign.put("openssl.cnf", CONFIG);
        foreign.put("index.txt", "");
        foreign.put("number", "0100\n");
        let mut args = vec![
            "req", "-x509", "-nodes", "-keyout", "ca.key", "-out", "ca.crt",
        ];
        args.extend(["-subj", "/CN=Foreign", "-days", "30", "-newkey"]);
        args.extend(key);
        openssl(foreign.path(), &args);
        foreign
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn put(&self, name: &str, content: &str) {
        #[expect(
            clippy::disallowed_methods,
            reason = "a scratch file for another program"
        )]
        fs::write(self.path().join(name), content).unwrap();
    }

    /// Lists these serial numbers (hex) as revoked, each with what `openssl ca -revoke` would have noted.
    fn revoke(&self, entries: &[(&str, &str)]) {
        let line = |(serial, reason): &(&str, &str)| {
            let reason = if reason.is_empty() {
                String::new()
            } else {
                format!(",{reason}")
            };
            format!("R\t270101000000Z\t260102030405Z{reason}\t{serial}\tunknown\t/CN=x\n")
        };
        self.put("index.txt", &entries.iter().map(line).collect::<String>());
    }

    fn list(&self, section: &str) -> Vec<u8> {
        let mut args = vec![
            "ca",
            "-gencrl",
            "-config",
            "openssl.cnf",
            "-crlexts",
            section,
        ];
        args.extend(["-cert", "ca.crt", "-keyfile", "ca.key", "-out", "list.pem"]);
        openssl(self.path(), &args);
        fs::read(self.path().join("list.pem")).unwrap()
    }

    fn read(&self, section: &str) -> Result<RevocationList, CrlError> {
        let lists = pem::revocation_lists(&self.list(section)).unwrap();
        RevocationList::parse(&lists[0])
    }

    fn certificate(&self) -> Certificate {
        let text = fs::read(self.path().join("ca.crt")).unwrap();
        Certificate::parse(&pem::certificates(&text).unwrap()[0]).unwrap()
    }
}

const P256: [&str; 3] = ["ec", "-pkeyopt", "ec_paramgen_curve:P-256"];

/// V18. Every field is what openssl put in and what x509-cert reads.
#[test]
fn a_foreign_list_is_read_as_it_is() {
    let foreign = Foreign::new(&P256);
    foreign.revoke(&[
        ("0A", "keyCompromise"),
        ("00FF", ""),
        ("7B2C4E8A9B1D3F5061728394A5B6C7D8", "superseded"),
    ]);
    let lists = pem::revocation_lists(&foreign.list("plain")).unwrap();
    let read = RevocationList::parse(&lists[0]).unwrap();
    let judge: x509_cert::crl::CertificateList = Decode::from_der(&lists[0]).unwrap();
    let ca = foreign.certificate();

    assert_eq!(read.issuer_der(), ca.subject_der());
    assert_eq!(read.issuer_text(), "CN=Foreign");
    assert_eq!(read.authority_key_id(), ca.subject_key_id());
    assert_eq!(read.number().unwrap().to_string(), "256");
    let tbs = &judge.tbs_cert_list;
    assert_eq!(read.this_update(), tbs.this_update.to_system_time());
    let next = tbs.next_update.unwrap().to_system_time();
    assert_eq!(read.next_update(), next);
    let entries = tbs.revoked_certificates.as_ref().unwrap();
    assert_eq!((read.len(), read.is_empty()), (entries.len(), false));
    for entry in entries {
        let found = read.find(entry.serial_number.as_bytes()).unwrap();
        assert_eq!(found.since, entry.revocation_date.to_system_time());
    }
    let reason = |serial: &[u8]| read.find(serial).unwrap().reason;
    assert_eq!(reason(&[10]), Some(Reason::KeyCompromise));
    assert_eq!(reason(&[0, 0xff]), None);
    assert!(read.find(&[11]).is_none() && read.find(ca.serial()).is_none());
}

/// V18. The signature is checked by what was hashed while reading, for every kind of key.
#[test]
fn a_list_verifies_under_the_key_that_signed_it_and_no_other() {
    let kinds: [&[&str]; 4] = [
        &P256,
        &["ec", "-pkeyopt", "ec_paramgen_curve:P-384"],
        &["rsa:2048"],
        &["ed25519"],
    ];
    for kind in kinds {
        let (one, other) = (Foreign::new(kind), Foreign::new(kind));
        one.revoke(&[("0A", "")]);
        let list = one.read("plain").unwrap();
        let verified = list.verify_signature(one.certificate().spki_der());
        assert_eq!(verified, Ok(()), "{kind:?}");
        let refused = list.verify_signature(other.certificate().spki_der());
        assert!(
            matches!(refused, Err(SignatureError::Broken { .. })),
            "{kind:?}: {refused:?}"
        );
        let mut bytes = pem::revocation_lists(&one.list("plain")).unwrap().remove(0);
        // The serial number of the one entry.
        let at = bytes.windows(3).position(|w| w == [2, 1, 10]).unwrap();
        bytes[at + 2] = 11;
        let forged = RevocationList::parse(&bytes).unwrap();
        assert!(
            forged
                .verify_signature(one.certificate().spki_der())
                .is_err()
        );
    }
}

/// V18. Narrowed lists speak about what they are about, or are refused.
#[test]
fn the_scope_of_a_list_is_kept_to() {
    let foreign = Foreign::new(&P256);
    let leaf = |name: &str, extensions: &[&str]| {
        let mut args = vec![
            "req", "-x509", "-nodes", "-keyout", "key", "-outform", "DER",
        ];
        args.extend([
            "-subj", "/CN=leaf", "-CA", "ca.crt", "-CAkey", "ca.key", "-out", name,
        ]);
        args.extend(["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"]);
        for extension in extensions {
            args.extend(["-addext", extension]);
        }
        openssl(foreign.path(), &args);
        Certificate::parse(&fs::read(foreign.path().join(name)).unwrap()).unwrap()
    };
    let end = "basicConstraints=critical,CA:FALSE";
    let plain = leaf("plain", &[end]);
    let first = leaf(
        "first",
        &[end, "crlDistributionPoints=URI:http://crl.example/1"],
    );
    let second = leaf(
        "second",
        &[end, "crlDistributionPoints=URI:http://crl.example/2"],
    );
    let authority = leaf("authority", &[]);
    assert!(authority.is_ca() && !plain.is_ca());

    let covered = |section: &str| {
        let list = foreign.read(section).unwrap();
        [&plain, &first, &second, &authority].map(|certificate| list.covers(certificate))
    };
    assert_eq!(covered("plain"), [true, true, true, true]);
    assert_eq!(covered("users"), [true, true, true, false]);
    assert_eq!(covered("part"), [false, true, false, false]);
    let users = foreign.read("users").unwrap();
    assert_eq!(users.scope().kinds(), Covers::EndEntities);
    assert_eq!(foreign.read("indirect").unwrap_err(), CrlError::Indirect);
}

#[test]
fn several_lists_are_read_from_one_text_and_one_from_der() {
    let (one, two) = (Foreign::new(&P256), Foreign::new(&P256));
    let (first, second) = (one.list("plain"), two.list("plain"));
    let both = [&b"# lists\n"[..], &first, b"\n", &second].concat();
    let lists = pem::revocation_lists(&both).unwrap();
    assert_eq!(lists.len(), 2);
    assert_eq!(pem::revocation_lists(&lists[1]).unwrap(), lists[1..]);
    let trailing = [&lists[0][..], &[0]].concat();
    assert!(pem::revocation_lists(&trailing).is_err());
    assert!(pem::revocation_lists(b"").is_err(), "no list is no list");
    assert!(RevocationList::parse(one.certificate().der()).is_err());
}
