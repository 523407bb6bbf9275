//! `vidimus tls check`: plain words about three files.

use std::fs;

use vidimus_testkit::Pki;

use crate::support::{Ran, write};

/// Lays out a folder with a fault.
type Arrange<'a> = Box<dyn Fn(&std::path::Path) + 'a>;

fn check(folder: &std::path::Path, more: &[&str]) -> Ran {
    let folder = folder.display().to_string();
    let fixed = ["tls", "check", &folder];
    Ran::of(fixed.iter().chain(more))
}

/// Good files are told to be good, with until when and for what.
#[test]
fn good_files_are_told_to_be_good() {
    let folder = tempfile::tempdir().expect("a folder");
    let pki = Pki::new("ca");
    let leaf = pki.leaf("web").dns("web.example.org").issue();
    leaf.write_dir(folder.path(), &[&pki.root]);
    let ran = check(
        folder.path(),
        &[
            "--as",
            "both",
            "--server-name",
            "web.example.org",
            "-o",
            "json",
        ],
    );
    assert_eq!(ran.code, Some(0), "{}{}", ran.stdout, ran.stderr);
    let report = ran.json();
    assert_eq!(report["usable"], true, "{report}");
    assert!(
        report["until"]
            .as_str()
            .is_some_and(|until| until.ends_with('Z')),
        "{report}"
    );
    let text = check(folder.path(), &[]).stdout;
    for word in [
        "fits the certificate",
        "accepted as a server",
        "accepted as a client",
        "valid until",
    ] {
        assert!(text.contains(word), "{word} is missing in {text}");
    }
}

/// V18. Revocation lists beside the files are looked at: whose, until when, and whether the own certificate is on one.
#[test]
fn revocation_lists_are_told_about() {
    let folder = tempfile::tempdir().expect("a folder");
    let pki = Pki::new("ca");
    let leaf = pki.leaf("web").serial(&[7]).issue();
    leaf.write_dir(folder.path(), &[&pki.root]);
    let crl = folder.path().join("crl.pem");
    let list = |number| pki.issuing.revocation_list(number);
    write(&crl, list(1).revoke(&[8]).pem());
    let good = check(folder.path(), &[]);
    assert_eq!(good.code, Some(0), "{}{}", good.stdout, good.stderr);
    let told =
        "the revocation list of \"CN=ca issuing\", which names 1 certificate, is valid until";
    assert!(good.stdout.contains(told), "{}", good.stdout);

    write(&crl, list(2).revoke(&[7]).pem());
    let lost = check(folder.path(), &[]);
    assert_eq!(lost.code, Some(1), "{}", lost.stdout);
    assert!(lost.stdout.contains("was revoked"), "{}", lost.stdout);

    let stranger = Pki::new("other").issuing.revocation_list(1).ended().pem();
    write(&crl, format!("{}{stranger}", list(3).pem()));
    let text = check(folder.path(), &[]).stdout;
    for part in ["ended at", "no CA in these files has signed"] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

/// Each fault is told in words, with exit code 1.
#[test]
fn each_fault_is_told_in_words() {
    let pki = Pki::new("ca");
    let other = Pki::new("other");
    let leaf = |name: &str| pki.leaf(name).dns("web.example.org");
    let faults: [(&str, &[&str], Arrange<'_>); 7] = [
        (
            "does not match",
            &[],
            Box::new(|dir| {
                leaf("a").issue().write_dir(dir, &[&pki.root]);
                let key = tempfile::tempdir().expect("a folder");
                leaf("b").issue().write_dir(key.path(), &[&pki.root]);
                fs::copy(key.path().join("tls.key"), dir.join("tls.key")).expect("another key");
            }),
        ),
        (
            "has expired",
            &[],
            Box::new(|dir| leaf("a").expired().issue().write_dir(dir, &[&pki.root])),
        ),
        (
            "leads to none of the trusted roots",
            &[],
            Box::new(|dir| leaf("a").issue().write_dir(dir, &[&other.root])),
        ),
        (
            "clientAuth",
            &["--as", "client"],
            Box::new(|dir| leaf("a").server().issue().write_dir(dir, &[&pki.root])),
        ),
        (
            "nope.example.org",
            &["--server-name", "nope.example.org"],
            Box::new(|dir| leaf("a").issue().write_dir(dir, &[&pki.root])),
        ),
        (
            "tls.key",
            &[],
            Box::new(|dir| {
                leaf("a").issue().write_dir(dir, &[&pki.root]);
                fs::remove_file(dir.join("tls.key")).expect("remove the key");
            }),
        ),
        (
            "no CERTIFICATE block found",
            &[],
            Box::new(|dir| {
                leaf("a").issue().write_dir(dir, &[&pki.root]);
                write(dir.join("ca.crt"), "");
            }),
        ),
    ];
    for (words, more, arrange) in faults {
        let folder = tempfile::tempdir().expect("a folder");
        arrange(folder.path());
        let ran = check(folder.path(), more);
        assert_eq!(ran.code, Some(1), "{words}: {}", ran.stdout);
        assert!(
            ran.stdout.contains(words) && ran.stdout.contains("WRONG"),
            "{words} is missing in {}",
            ran.stdout
        );
        let keys = ran.stdout.contains("PRIVATE KEY");
        assert!(!keys, "no key in an answer");
    }
    let absent = check(std::path::Path::new("/nowhere"), &[]);
    assert_eq!(absent.code, Some(1));
    assert!(absent.stderr.contains("/nowhere"), "{}", absent.stderr);
}
