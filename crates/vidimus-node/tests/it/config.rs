//! C2: the machine config, read whole or refused with everything that is wrong.

use vidimus_node::config::{self, Api, Config, ConfigErrors, Role, Template, template};

const GOOD: &str = r#"apiVersion: cryptos.dev/v1alpha1
kind: MachineConfig
metadata:
  name: issuing-1
role:
  kind: issuing
bootstrap:
  admin_cert_sha256: 00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff
api:
  listen: 127.0.0.1:0
  names: [ca.example.org, 10.0.0.7]
pki:
  root_key_alg: RSA-3072
  root_subject:
    common_name: Issuing CA
    organization: Example
    country: DE
  parent:
    ca_cert_sha256: "ff112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"
  profiles:
    - name: leaf
      key_alg: ECDSA-P384
      validity_days: 90
      validity_policy: reject
      key_usage: [digital_signature]
      ext_key_usage: [server_auth, 1.3.6.1.5.5.7.3.4]
      sans:
        dns: [a.example.org, "*.example.org"]
        ip: ["10.0.0.1"]
        email: [ops@example.org]
        uri: ["spiffe://example.org/a"]
        krb5_principal: [HTTP/a.example.org@EXAMPLE.ORG]
        upn: [a@example.org]
    - name: sub-ca
      key_alg: RSA-4096
      validity_days: 365
      key_usage: [cert_sign, crl_sign]
      basic_constraints: {is_ca: true, path_len: 0}
"#;

/// What to change in the good config, and the first problem that this makes.
const BAD_FIELDS: &[(&str, &str, &str)] = &[
    (
        "cryptos.dev/v1alpha1",
        "v1",
        "1:13: apiVersion: found \"v1\"",
    ),
    ("MachineConfig", "Machine", "2:7: kind: found \"Machine\""),
    (
        "name: issuing-1",
        "name: a_b",
        "4:9: metadata.name: found \"a_b\"",
    ),
    (
        "kind: issuing",
        "kind: leaf",
        "6:9: role.kind: found \"leaf\"; accepted: `root`",
    ),
    ("kind: issuing", "kind:", "6:3: role.kind: found nothing"),
    (
        "admin_cert_sha256: 00",
        "admin_cert_sha256: zz",
        "8:22: bootstrap.admin_cert_sha256",
    ),
    (
        "listen: 127.0.0.1:0",
        "listen: localhost:0",
        "10:11: api.listen: found \"localhost:0\"",
    ),
    (
        "ca.example.org,",
        "a b,",
        "11:11: api.names[0]: found \"a b\"",
    ),
    (
        "RSA-3072",
        "RSA-2048",
        "13:17: pki.root_key_alg: found \"RSA-2048\"; accepted: `ECDSA-P384`, `RSA-3072`, `RSA-4096`",
    ),
    (
        "common_name: Issuing CA",
        "common_name:",
        "15:5: pki.root_subject.common_name: found nothing",
    ),
    (
        "country: DE",
        "country: Germany",
        "17:14: pki.root_subject.country: found \"Germany\"",
    ),
    ("\"ff11", "\"ff1", "19:21: pki.parent.ca_cert_sha256"),
    (
        "name: leaf\n",
        "name: le/af\n",
        "21:13: pki.profiles[0].name: found \"le/af\"",
    ),
    (
        "name: sub-ca",
        "name: leaf",
        "34:13: pki.profiles[1].name: found \"leaf\" again (first on line 21)",
    ),
    (
        "validity_days: 90",
        "validity_days: 0",
        "23:22: pki.profiles[0].validity_days: found \"0\"; accepted: a whole number from 1 to",
    ),
    (
        "validity_days: 90",
        "validity_days: ninety",
        "23:22: pki.profiles[0].validity_days",
    ),
    (
        "      validity_days: 90\n",
        "",
        "21:7: pki.profiles[0].validity_days: found nothing",
    ),
    (
        "validity_policy: reject",
        "validity_policy: clip",
        "24:24: pki.profiles[0].validity_policy: found \"clip\"; accepted: `cap`, `reject`",
    ),
    (
        "[digital_signature]",
        "[digital]",
        "25:19: pki.profiles[0].key_usage[0]: found \"digital\"",
    ),
    (
        "[digital_signature]",
        "digital_signature",
        "25:18: pki.profiles[0].key_usage: found \"digital_signature\"; accepted: a list",
    ),
    (
        "1.3.6.1.5.5.7.3.4]",
        "Server_Auth]",
        "26:36: pki.profiles[0].ext_key_usage[1]",
    ),
    (
        "1.3.6.1.5.5.7.3.4]",
        "1.03.6]",
        "26:36: pki.profiles[0].ext_key_usage[1]",
    ),
    (
        "1.3.6.1.5.5.7.3.4]",
        "1.3.6.1.5.5.7.3.1]",
        "26:36: pki.profiles[0].ext_key_usage[1]: found \"1.3.6.1.5.5.7.3.1\" again",
    ),
    (
        "[a.example.org,",
        "[a..org,",
        "28:15: pki.profiles[0].sans.dns[0]",
    ),
    (
        "\"10.0.0.1\"",
        "\"10.0.0\"",
        "29:14: pki.profiles[0].sans.ip[0]",
    ),
    (
        "[ops@example.org]",
        "[ops]",
        "30:17: pki.profiles[0].sans.email[0]",
    ),
    (
        "\"spiffe://example.org/a\"",
        "\"a\"",
        "31:15: pki.profiles[0].sans.uri[0]",
    ),
    (
        "HTTP/a.example.org@EXAMPLE.ORG",
        "HTTP",
        "32:26: pki.profiles[0].sans.krb5_principal[0]",
    ),
    (
        "[a@example.org]",
        "[a]",
        "33:15: pki.profiles[0].sans.upn[0]",
    ),
    (
        "is_ca: true",
        "is_ca: yes",
        "38:34: pki.profiles[1].basic_constraints.is_ca: found \"yes\"; accepted: `true` or `false`",
    ),
    (
        "path_len: 0",
        "path_len: 256",
        "38:50: pki.profiles[1].basic_constraints.path_len",
    ),
];

fn good() -> Config {
    config::parse("node.yaml", GOOD).expect("the good config is good")
}

/// The one problem of the good config after `from` became `to`, as text without the file's name.
fn problems_after(from: &str, to: &str) -> Vec<String> {
    assert!(GOOD.contains(from), "{from:?} is not in the good config");
    problems_of(&GOOD.replacen(from, to, 1))
}

fn problems_of(text: &str) -> Vec<String> {
    match config::parse("node.yaml", text) {
        Ok(_) => Vec::new(),
        Err(errors) => lines(&errors),
    }
}

fn lines(errors: &ConfigErrors) -> Vec<String> {
    errors.problems().iter().map(ToString::to_string).collect()
}

/// C2.
#[test]
fn takes_every_field_of_a_good_config() {
    let config = good();
    assert_eq!(config.name, "issuing-1");
    assert_eq!(config.role, Role::Issuing);
    assert_eq!(config.api.listen.port(), 0);
    assert_eq!(config.api.names, ["ca.example.org", "10.0.0.7"]);
    assert_eq!(config.pki.subject.country, "DE");
    let leaf = config.pki.find_profile("leaf").expect("it is there");
    assert_eq!(leaf.ext_key_usage.len(), 2);
    assert_eq!(leaf.sans.dns, ["a.example.org", "*.example.org"]);
    let sub = config.pki.find_profile("sub-ca").expect("it is there");
    assert_eq!(sub.basic_constraints.path_len, Some(0));
}

/// C2.
#[test]
fn refuses_one_bad_field_at_its_place() {
    let mut wrong = Vec::new();
    for (from, to, expected) in BAD_FIELDS {
        let problems = problems_after(from, to);
        if !problems
            .first()
            .is_some_and(|first| first.starts_with(expected))
        {
            wrong.push(format!("{to:?}: expected {expected:?}, got {problems:#?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// C3: profiles that could make no sensible certificate are refused where they are written.
#[test]
fn refuses_profiles_whose_fields_contradict_each_other() {
    let table = [
        (
            "[digital_signature]",
            "[digital_signature, cert_sign]",
            "25:18: pki.profiles[0].key_usage",
        ),
        (
            "[cert_sign, crl_sign]",
            "[crl_sign]",
            "37:18: pki.profiles[1].key_usage",
        ),
        (
            "is_ca: true, path_len: 0",
            "is_ca: false, path_len: 0",
            "38:51: pki.profiles[1].basic_constraints.path_len",
        ),
        (
            "      basic_constraints: {is_ca: true,",
            "      allow_request_sans: true\n      basic_constraints: {is_ca: true,",
            "38:27: pki.profiles[1].allow_request_sans",
        ),
    ];
    for (from, to, expected) in table {
        let problems = problems_after(from, to);
        assert!(
            problems.iter().any(|p| p.starts_with(expected)),
            "{expected}: {problems:#?}"
        );
    }
}

/// C2.
#[test]
fn refuses_fields_that_it_does_not_know_and_names_those_it_knows() {
    let problems = problems_after("metadata:\n", "metadata:\n  nam: x\n");
    assert_eq!(
        problems,
        ["4:3: metadata.nam: found an unknown field; accepted: one of name"]
    );
    let table = [
        (
            "kind: MachineConfig\n",
            "kind: MachineConfig\nprofiles: []\n",
            "3:1: profiles: found an unknown field",
        ),
        (
            "  kind: issuing\n",
            "  kind: issuing\n  type: a\n",
            "7:3: role.type",
        ),
        ("api:\n", "api:\n  port: 1\n", "10:3: api.port"),
        ("pki:\n", "pki:\n  key: 1\n", "13:3: pki.key"),
        (
            "      key_alg: ECDSA-P384\n",
            "      key_alg: ECDSA-P384\n      key_algo: x\n",
            "23:7: pki.profiles[0].key_algo",
        ),
        (
            "is_ca: true,",
            "is_ca: true, ca: true,",
            "38:40: pki.profiles[1].basic_constraints.ca",
        ),
    ];
    for (from, to, expected) in table {
        let problems = problems_after(from, to);
        assert_eq!(problems.len(), 1, "{problems:#?}");
        assert!(problems[0].starts_with(expected), "{problems:#?}");
    }
}

/// C2.
#[test]
fn reports_every_problem_of_a_file_at_once_in_order() {
    let text = r#"apiVersion: v9
kind: MachineConfig
role: {kind: root}
bootstrap: {}
pki:
  root_key_alg: P-384
  parent: {ca_cert_sha256: ab}
  colour: red
  profiles:
    - key_alg: RSA-1024
      validity_days: -1
    - name: [a]
      key_alg: ECDSA-P384
"#;
    let places: Vec<_> = match config::parse("node.yaml", text) {
        Ok(_) => panic!("it is full of problems"),
        Err(errors) => errors
            .problems()
            .iter()
            .map(|problem| {
                (
                    problem.place.line,
                    problem.place.column,
                    problem.field.clone(),
                )
            })
            .collect(),
    };
    let expected = [
        (1, 13, "apiVersion"),
        (4, 12, "bootstrap.admin_cert_sha256"),
        (6, 3, "pki.root_subject.common_name"),
        (6, 3, "pki.root_validity_years"),
        (6, 17, "pki.root_key_alg"),
        (7, 3, "pki.parent"),
        (8, 3, "pki.colour"),
        (10, 7, "pki.profiles[0].name"),
        (10, 16, "pki.profiles[0].key_alg"),
        (11, 22, "pki.profiles[0].validity_days"),
        (12, 7, "pki.profiles[1].validity_days"),
        (12, 13, "pki.profiles[1].name"),
    ];
    let expected: Vec<_> = expected
        .iter()
        .map(|(line, column, field)| (*line, *column, (*field).to_owned()))
        .collect();
    assert_eq!(places, expected);
}

/// C1: a root has no parent, signs itself for some years, and never serves ACME.
#[test]
fn the_rules_of_a_root_are_not_those_of_a_subordinate() {
    let root = template(&Template {
        role: Role::Root,
        common_name: "Root \"A\"",
        parent_pem: None,
        api: Api::default(),
    });
    let config = config::parse("root.yaml", &root).expect("the template is valid");
    assert_eq!(config.pki.subject.common_name, "Root \"A\"");
    assert_eq!(config.pki.root_validity_years, Some(20));

    let with = |line: &str| problems_of(&root.replacen("pki:\n", &format!("pki:\n{line}\n"), 1));
    let acme = with("  acme: {base_url: https://a}");
    assert!(acme[0].contains("pki.acme") && acme[0].contains("a root never serves ACME"));
    assert!(with("  parent: {ca_cert_sha256: a}")[0].contains("a root signs itself"));
    assert!(problems_of(&root.replace("years: 20", "years: 31"))[0].contains("from 1 to 30"));

    let acme = problems_after("pki:\n", "pki:\n  acme: {}\n");
    assert!(
        acme[0].contains("not supported by this version"),
        "{acme:?}"
    );
    assert!(
        problems_after("  parent:\n    ca_cert_sha256: ", "  x: ")[0]
            .contains("pki.parent: found nothing")
    );
}

/// C2.
#[test]
fn features_of_later_versions_are_refused_by_name() {
    for field in [
        "est",
        "scep",
        "tsa",
        "revocation_base_url",
        "crl_next_update_hours",
        "allow_unsynced_clock",
    ] {
        let problems = problems_after("pki:\n", &format!("pki:\n  {field}: 1\n"));
        assert_eq!(problems.len(), 1);
        assert!(
            problems[0].contains("not supported by this version"),
            "{problems:?}"
        );
    }
    for block in ["network", "install", "state_key", "management"] {
        let problems = problems_after(
            "kind: MachineConfig\n",
            &format!("kind: MachineConfig\n{block}: {{}}\n"),
        );
        assert_eq!(problems.len(), 1);
        assert!(
            problems[0].contains("not supported by this version"),
            "{problems:?}"
        );
    }
}

/// C2.
#[test]
fn files_that_are_no_single_plain_yaml_document_are_refused() {
    let table = [
        ("", "found an empty file"),
        ("# nothing\n", "found an empty file"),
        ("a: [1\n", "accepted: valid YAML"),
        ("- a\n", "found a list; accepted: a mapping"),
        (
            "a: 1\na: 2\n",
            "2:1: a: found the field again (first on line 1)",
        ),
        ("a: &x 1\n", "found an anchor"),
        ("a: !!str 1\n", "found a tag"),
        ("%YAML 1.2\n---\na: 1\n", "accepted: valid YAML"),
        ("a: 1\n---\nb: 1\n", "found a second document"),
        ("? [a]\n: 1\n", "found a list or mapping as a key"),
    ];
    for (text, expected) in table {
        let problems = problems_of(text);
        assert!(
            problems.iter().any(|p| p.contains(expected)),
            "{text:?}: {problems:#?}"
        );
    }
    let deep = "[".repeat(5000);
    assert!(!problems_of(&deep).is_empty());
    let long = format!("# {}\n{GOOD}", "x".repeat(config::MAX_BYTES));
    assert!(problems_of(&long)[0].contains("a file of at most 1048576 bytes"));
}

/// C2: comments, order and white space don't change what a config means.
#[test]
fn the_digest_covers_the_meaning_alone() {
    let config = good();
    let reordered = GOOD
        .replace("metadata:\n  name: issuing-1\n", "")
        .replace("[digital_signature]", "[ digital_signature ] # spaces");
    let reordered = format!("# a comment\nmetadata: {{name: issuing-1}}\n{reordered}");
    let same = config::parse("other.yaml", &reordered).expect("it is good too");
    assert_eq!(config.digest_sha256(), same.digest_sha256());
    assert_eq!(config.digest_sha256().len(), 64);
    let other = GOOD.replace("validity_days: 90", "validity_days: 91");
    let other = config::parse("other.yaml", &other).expect("it is good too");
    assert_ne!(config.digest_sha256(), other.digest_sha256());
    assert!(!config.requires_reboot_for(&other), "profiles are hot");
    let other = GOOD.replace("127.0.0.1:0", "127.0.0.1:1");
    let other = config::parse("other.yaml", &other).expect("it is good too");
    assert!(config.requires_reboot_for(&other), "addresses are not");
}
