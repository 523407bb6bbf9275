//! `vidimus policy check`: what a policy file means, and whom it lets call.

use std::path::{Path, PathBuf};

use vidimus_testkit::Pki;

use crate::support::{Ran, write};

const TEXT: &str = "\
allow: [dns:*.example.org]
methods:
  - match: /a.B/
    allow: [dns:manager.example.org]
  - match: /a.B/Closed
    allow: []
  - match: /grpc.health.v1.Health/
    allow: [\"*\"]
";

struct Files {
    folder: tempfile::TempDir,
    pki: Pki,
}

impl Files {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let files = Self {
            folder,
            pki: Pki::new("ca"),
        };
        write(files.path("policy.yaml"), TEXT);
        write(files.path("ca.crt"), files.pki.root.pem());
        files
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn check(&self, more: &[&str]) -> Ran {
        let file = self.path("policy.yaml").display().to_string();
        let fixed = ["policy", "check", &file];
        Ran::of(fixed.iter().chain(more))
    }

    /// Checks whether the holder of a certificate with this name may call.
    fn peer(&self, name: &str, method: Option<&str>) -> Ran {
        let leaf = self.pki.leaf("x").dns(name).client().issue();
        let tls = self.path(name);
        leaf.write_dir(&tls, &[]);
        let text = |path: &Path| path.display().to_string();
        let (peer, ca) = (text(&tls.join("tls.crt")), text(&self.path("ca.crt")));
        let mut arguments = vec!["--peer", &peer, "--ca", &ca];
        arguments.extend(method.into_iter().flat_map(|method| ["--method", method]));
        self.check(&arguments)
    }
}

/// V17. A good file is told in words and as JSON.
#[test]
fn a_good_file_is_told() {
    let files = Files::new();
    let ran = files.check(&[]);
    assert_eq!(ran.code, Some(0), "{}{}", ran.stdout, ran.stderr);
    for part in [
        "enforce",
        "dns:*.example.org",
        "/a.B/: dns:manager.example.org",
        "/a.B/Closed: nobody",
        "/grpc.health.v1.Health/: whoever may call",
    ] {
        assert!(ran.stdout.contains(part), "{part} in {}", ran.stdout);
    }
    let json = files.check(&["-o", "json"]).json();
    assert_eq!(json["allow"][0], "dns:*.example.org", "{json}");
    assert_eq!(
        json["methods"][2]["allow"],
        serde_json::Value::Null,
        "{json}"
    );
}

/// V17. A certificate is judged as a server would judge it.
#[test]
fn a_certificate_is_judged() {
    let files = Files::new();
    for (name, method, code) in [
        ("manager.example.org", None, 0),
        ("manager.example.org", Some("/a.B/Call"), 0),
        ("manager.example.org", Some("/a.B/Closed"), 1),
        ("manager.example.org", Some("/c.D/Call"), 1),
        ("other.example.org", Some("/a.B/Call"), 1),
        ("other.example.org", Some("/grpc.health.v1.Health/Check"), 0),
        ("stranger.test", None, 1),
        ("stranger.test", Some("/grpc.health.v1.Health/Check"), 1),
    ] {
        let ran = files.peer(name, method);
        assert_eq!(
            ran.code,
            Some(code),
            "{name} {method:?}: {}{}",
            ran.stdout,
            ran.stderr
        );
    }
    write(files.path("policy.yaml"), format!("mode: report\n{TEXT}"));
    let ran = files.peer("stranger.test", None);
    ran.failed(0, "only reports");
    write(files.path("ca.crt"), Pki::new("other").root.pem());
    let ran = files.peer("manager.example.org", None);
    assert_eq!(ran.code, Some(1), "no handshake, no call");
    assert!(
        ran.stderr.contains("none of the trusted roots"),
        "{}",
        ran.stderr
    );
}

/// V17. Every problem of a file is told with its place.
#[test]
fn a_bad_file_is_told_with_places() {
    let files = Files::new();
    write(
        files.path("policy.yaml"),
        "allow: [uid:x]\nmethods:\n  - {match: a, allow: []}\n",
    );
    let ran = files.check(&[]);
    assert_eq!(ran.code, Some(1), "{}", ran.stdout);
    for part in [
        "policy.yaml:1:9: allow[0]",
        "policy.yaml:3:13: methods[0].match",
    ] {
        assert!(ran.stderr.contains(part), "{part} in {}", ran.stderr);
    }
}
