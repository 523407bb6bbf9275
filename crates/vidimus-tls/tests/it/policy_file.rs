//! Policy files: what is accepted, and how what isn't is reported.

use vidimus_testkit::{Authority, Pki};
use vidimus_tls::policy::{Mode, Policy, PolicyError};

use crate::support::put;

struct Folder {
    dir: tempfile::TempDir,
    pki: Pki,
}

impl Folder {
    fn new() -> Self {
        let dir = tempfile::tempdir().expect("a folder");
        let pki = Pki::new("Example");
        put(dir.path().join("roots.pem"), pki.root.pem());
        Self { dir, pki }
    }

    fn load(&self, text: &str) -> Result<Policy, PolicyError> {
        let file = self.dir.path().join("policy.yaml");
        put(&file, text);
        Policy::load(&file)
    }

    /// The problems, one a line, each without the folder.
    fn problems(&self, text: &str) -> Vec<String> {
        let error = self.load(text).expect_err(text).to_string();
        let folder = format!("{}/", self.dir.path().display());
        error
            .lines()
            .map(|line| line.replace(&folder, ""))
            .collect()
    }
}

#[test]
fn a_whole_policy_file_is_read() {
    let folder = Folder::new();
    let policy = folder
        .load(
            "mode: report\n\
             trust_domains:\n  prod.example: roots.pem\n\
             allow:\n  - manager.example\n  - dns:*.ops.example\n  - spiffe:prod.example/ns/virt/sa/manager\n\
             methods:\n\
             \x20 - match: /provider.v1.Provider/\n    allow: [dns:manager.example]\n\
             \x20 - match: /grpc.health.v1.Health/Check\n    allow: [\"*\"]\n\
             \x20 - match: /provider.v1.Provider/Delete\n    allow: []\n",
        )
        .expect("a policy");
    assert_eq!(policy.mode(), Mode::Report);
    assert_eq!(
        policy.allow_list().to_string(),
        "manager.example, dns:*.ops.example, spiffe:prod.example/ns/virt/sa/manager"
    );
    let rules = policy.methods().expect("rules");
    let texts: Vec<_> = rules.iter().map(ToString::to_string).collect();
    assert_eq!(
        texts,
        [
            "/provider.v1.Provider/: dns:manager.example",
            "/grpc.health.v1.Health/Check: *",
            "/provider.v1.Provider/Delete: ",
        ]
    );
}

#[test]
fn enforcing_is_the_default_and_open_is_said_in_so_many_words() {
    let folder = Folder::new();
    let policy = folder.load("allow: []\n").expect("an open policy");
    assert_eq!(policy.mode(), Mode::Enforce);
    assert!(policy.allow_list().is_permissive() && policy.methods().is_none());
    for nothing in ["", "# nothing\n", "{}\n", "mode: enforce\n"] {
        let problems = folder.problems(nothing);
        assert_eq!(problems.len(), 1, "{nothing:?}: {problems:?}");
        assert!(problems[0].starts_with("policy.yaml: "), "{problems:?}");
    }
}

/// Every problem at once, each with its place, what was found and what is accepted.
#[test]
fn every_problem_is_reported_with_its_place() {
    let folder = Folder::new();
    let problems = folder.problems(
        "mode: warn\n\
         allow: ['dns:', \"*\", 'spiffe:prod.example/x']\n\
         methods:\n\
         \x20 - match: provider.v1.Provider/\n    allow: [uid:x]\n\
         \x20 - match: /a/\n    allow: []\n\
         \x20 - match: /a/\n    allow: []\n",
    );
    let starts = [
        "policy.yaml:1:7: mode: found \"warn\"; accepted: enforce or report",
        "policy.yaml:2:9: allow[0]: found \"dns:\"; accepted: dns:NAME",
        "policy.yaml:2:17: allow: found \"*\"; accepted: names; `allow: []`",
        "policy.yaml:2:22: allow[2]: found \"spiffe:prod.example/x\"; accepted: a SPIFFE ID whose trust domain is in trust_domains",
        "policy.yaml:4:12: methods[0].match: found \"provider.v1.Provider/\"; accepted: /package.Service/Method",
        "policy.yaml:5:13: methods[0].allow[0]: found \"uid:x\"; accepted: uid:NUMBER",
        "policy.yaml:8:12: methods[2].match: found \"/a/\"; accepted: each pattern once",
    ];
    assert_eq!(problems.len(), starts.len(), "{problems:#?}");
    for (problem, start) in problems.iter().zip(starts) {
        assert!(problem.starts_with(start), "{problem} for {start}");
    }
}

#[test]
fn what_the_format_does_not_have_is_refused_with_its_line() {
    let folder = Folder::new();
    for (text, line) in [
        ("allow: []\nallowed: []\n", 2),
        ("allow: []\nallow: [a]\n", 2),
        ("allow:\n", 1),
        ("allow: a\n", 1),
        ("allow: [[a]]\n", 1),
        ("allow: [{cn: a}]\n", 1),
        ("methods: [{match: /a/}]\n", 1),
        ("methods: [{match: /a/, allow: [], deny: []}]\n", 1),
        ("methods: [{match: /a/, allow: }]\n", 1),
        ("trust_domains: {a: b, a: c}\nallow: []\n", 1),
        ("allow: [a\n", 0),
        ("- a\n", 1),
        ("allow: []\n---\nallow: []\n", 0),
        ("allow: [\"a\", *b]\n", 0),
    ] {
        let problems = folder.problems(text);
        assert_eq!(problems.len(), 1, "{text:?}: {problems:?}");
        if line > 0 {
            let place = format!("policy.yaml:{line}:");
            assert!(problems[0].starts_with(&place), "{text:?}: {problems:?}");
        }
    }
}

/// T14. The map is what makes a SPIFFE ID more than a text, so it is checked as a whole.
#[test]
fn bundles_that_prove_nothing_are_refused() {
    let folder = Folder::new();
    let other = Authority::root("Other");
    put(folder.dir.path().join("other.pem"), other.pem());
    let both = format!("{}{}", folder.pki.root.pem(), other.pem());
    put(folder.dir.path().join("both.pem"), both);
    put(folder.dir.path().join("empty.pem"), "");
    let leaf = folder.pki.leaf("x").issue();
    put(
        folder.dir.path().join("leaf.pem"),
        leaf.files(&[])[0].1.clone(),
    );
    put(
        folder.dir.path().join("cut.pem"),
        other.pem().as_bytes().get(..200).expect("a longer file"),
    );
    let text = |domains: &str| format!("trust_domains: {{{domains}}}\nallow: []\n");
    folder
        .load(&text("a.example: roots.pem, b.example: other.pem"))
        .expect("two domains");
    for (domains, part) in [
        ("a: roots.pem, b: roots.pem", "in the bundle of a too"),
        ("a: both.pem, b: other.pem", "in the bundle of a too"),
        ("a: empty.pem", "no CERTIFICATE"),
        ("a: cut.pem", "line"),
        ("a: leaf.pem", "is not a CA certificate"),
        ("a: nowhere.pem", "No such file"),
        ("A.example: roots.pem", "the name \"A.example\""),
        ("'spiffe://a': roots.pem", "the name \"spiffe://a\""),
    ] {
        let problems = folder.problems(&text(domains));
        assert_eq!(problems.len(), 1, "{domains}: {problems:?}");
        assert!(problems[0].contains(part), "{domains}: {problems:?}");
        assert!(problems[0].contains("policy.yaml:1:"), "{problems:?}");
    }
    // The entries of a domain whose bundle is no good are not blamed for it.
    let text = "trust_domains: {a: empty.pem}\nallow: ['spiffe:a/x']\n";
    assert_eq!(folder.problems(text).len(), 1);
}

#[test]
fn a_file_that_cannot_be_read_is_named() {
    let folder = Folder::new();
    let missing = folder.dir.path().join("missing.yaml");
    let error = Policy::load(&missing).expect_err("no file").to_string();
    assert!(error.contains("missing.yaml"), "{error}");
    let error = Policy::load(folder.dir.path()).expect_err("a folder");
    assert!(matches!(error, PolicyError::Read { .. }), "{error}");
    let problems = folder.problems(&format!("allow: []\n#{}", "x".repeat(1 << 20)));
    assert!(
        problems[0].contains("File too large") || problems[0].contains("read policy file"),
        "{problems:?}"
    );
    put(folder.dir.path().join("policy.yaml"), b"allow: [\xff]");
    let error = Policy::load(&folder.dir.path().join("policy.yaml")).expect_err("no text");
    assert!(error.to_string().contains("UTF-8"), "{error}");
}
