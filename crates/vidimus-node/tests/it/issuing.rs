//! C3, C4, C5, C13: what is issued, what is refused, and what is kept of it.

use std::collections::BTreeMap;

use vidimus_client::{NodeClient, pb, tonic::Code};
use vidimus_testkit::openssl;

use crate::house::{House, csr, csr_for, leaf, openssl_verifies};

async fn last_event(client: &NodeClient) -> pb::AuditEvent {
    let request = pb::ListAuditEventsRequest {
        page_size: 1000,
        page_token: String::new(),
    };
    let events = client.audit_events(request).await.unwrap().events;
    events.into_iter().next_back().unwrap()
}

fn details(event: &pb::AuditEvent) -> BTreeMap<&str, &str> {
    event
        .details
        .iter()
        .map(|(key, value)| (key.as_str(), value.as_str()))
        .collect()
}

/// C4: names beside the CSR's; the issued set has exactly what was answered, with its chain.
#[tokio::test]
async fn a_leaf_is_issued_recorded_and_found_again() {
    let house = House::new();
    let root = house.issuing().await;
    let client = house.offline("issuing").await;
    let request = csr(house.path("").as_path(), "web", &["web.example.org"]);
    let mut request = leaf(request, "leaf-server", &["api.example.org"]);
    request.ip_addresses = vec!["10.1.2.3".to_owned()];
    let issued = client.issue_leaf(request).await.unwrap();
    openssl_verifies(&house, &root, &issued.chain_pem);

    let event = last_event(&client).await;
    assert_eq!(event.rpc_method, "/vidimus.node.v1.NodeService/IssueLeaf");
    assert_eq!(event.outcome, "OK");
    let details = details(&event);
    assert_eq!(details["serial_hex"], issued.serial_hex);
    assert_eq!(details["request_dns_names"], "api.example.org");
    assert_eq!(details["profile"], "leaf-server");
    assert_eq!(details["config_generation"], "1");
    assert!(details["effective_not_after"].ends_with('Z'));
    assert_eq!(event.request_digest_sha256.len(), 64);

    let spaced = format!("0x00{}", issued.serial_hex.to_uppercase());
    for serial in [issued.serial_hex.as_str(), spaced.as_str()] {
        let found = client.issued_certificate(serial).await.unwrap();
        assert_eq!(found.certificate_der, issued.certificate_der);
        assert_eq!(found.chain_pem, issued.chain_pem);
        let row = found.certificate.unwrap();
        assert_eq!(row.profile, "leaf-server");
        assert_eq!(row.requester, "local");
        assert_eq!(row.status(), pb::CertificateStatus::Valid);
        let mut names = row.names;
        names.sort();
        assert_eq!(names, ["10.1.2.3", "api.example.org", "web.example.org"]);
    }
    let missing = client.issued_certificate("1234").await.unwrap_err();
    assert_eq!(missing.code(), Code::NotFound);
    let wrong = client.issued_certificate("not hex").await.unwrap_err();
    assert_eq!(wrong.code(), Code::InvalidArgument);
}

/// C5, C3: every refusal has its code, says what is accepted, and is in the audit log before it is answered.
#[tokio::test]
async fn refusals_say_why_and_are_recorded() {
    let house = House::new();
    house
        .issuing_with(|text| {
            format!(
                "{text}    - name: fixed\n      key_alg: ECDSA-P384\n      validity_days: 9000\n      \
                 validity_policy: reject\n      key_usage: [digital_signature]\n      sans: {{dns: [fixed.example.org]}}\n"
            )
        })
        .await;
    let client = house.offline("issuing").await;
    let dir = house.path("");
    let good = csr(&dir, "good", &["good.example.org"]);
    let p256 = csr_for(
        &dir,
        "p256",
        &["a.example.org"],
        &["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"],
    );
    let rsa2048 = csr_for(&dir, "rsa", &["a.example.org"], &["-newkey", "rsa:2048"]);
    let mut bad_ip = leaf(good.clone(), "leaf-server", &[]);
    bad_ip.ip_addresses = vec!["300.1.1.1".to_owned()];
    let table = [
        (
            leaf(p256, "leaf-server", &[]),
            Code::InvalidArgument,
            "P-256; accepted: ",
        ),
        (
            leaf(rsa2048, "leaf-server", &[]),
            Code::InvalidArgument,
            "RSA 2048; accepted: ",
        ),
        (
            leaf(b"junk".to_vec(), "leaf-server", &[]),
            Code::InvalidArgument,
            "",
        ),
        (
            leaf(good.clone(), "leaf", &[]),
            Code::InvalidArgument,
            "no profile \"leaf\"; accepted: leaf-server, ",
        ),
        (
            leaf(good.clone(), "sub-ca", &[]),
            Code::InvalidArgument,
            "sub-ca is for a CA; accepted: leaf-server, ",
        ),
        (
            leaf(good.clone(), "leaf-server", &["*.example.org"]),
            Code::InvalidArgument,
            "*.example.org",
        ),
        (
            bad_ip,
            Code::InvalidArgument,
            "\"300.1.1.1\" is not an IP address",
        ),
        (
            leaf(good.clone(), "fixed", &["a.example.org"]),
            Code::FailedPrecondition,
            "allow_request_sans",
        ),
        (
            leaf(good.clone(), "fixed", &[]),
            Code::FailedPrecondition,
            "fixed",
        ),
    ];
    for (request, code, text) in table {
        let profile = request.profile.clone();
        let refused = client.issue_leaf(request).await.unwrap_err();
        assert_eq!(refused.code(), code, "{refused}");
        assert!(refused.to_string().contains(text), "{text:?}: {refused}");
        let event = last_event(&client).await;
        assert_eq!(event.outcome, "ERROR");
        assert_eq!(details(&event)["profile"], profile);
        assert_eq!(details(&event)["reason"], refused.status().message());
    }
    let sub = pb::SignSubordinateCsrRequest {
        csr: good.clone(),
        profile: "leaf-server".to_owned(),
    };
    let refused = client.sign_subordinate(sub).await.unwrap_err();
    assert!(
        refused
            .to_string()
            .contains("leaf-server is for a leaf; accepted: sub-ca"),
        "{refused}"
    );
    let issued = client
        .list_issued(pb::ListIssuedRequest::default())
        .await
        .unwrap();
    assert_eq!(issued.certificates.len(), 0, "nothing was issued");
    client
        .issue_leaf(leaf(good, "leaf-server", &[]))
        .await
        .unwrap();
}

/// C1: a root's gate.
#[tokio::test]
async fn a_root_refuses_leaves_without_the_exact_acknowledgement() {
    const LEAF: &str = "    - {name: leaf, key_alg: ECDSA-P384, validity_days: 30, key_usage: [digital_signature], \
                        allow_request_sans: true}\n";
    let house = House::new();
    house.root_with(|text| format!("{text}{LEAF}")).await;
    let client = house.offline("root").await;
    let request = || {
        leaf(
            csr(&house.path(""), "web", &["web.example.org"]),
            "leaf",
            &[],
        )
    };
    let refused = client.issue_leaf(request()).await.unwrap_err();
    assert_eq!(refused.code(), Code::FailedPrecondition);
    assert!(
        refused.to_string().contains("acknowledged-irreversible"),
        "{refused}"
    );
    assert_eq!(last_event(&client).await.outcome, "ERROR");

    let text = client.config().await.unwrap().config_yaml;
    for (value, taken) in [
        ("true", false),
        ("Acknowledged-Irreversible", false),
        ("acknowledged-irreversible", true),
    ] {
        let with = text.replacen(
            "pki:\n",
            &format!("pki:\n  root_leaf_issuance: {value}\n"),
            1,
        );
        let applied = client.apply_config(&with).await.unwrap();
        assert!(!applied.requires_reboot, "it is hot");
        assert_eq!(client.issue_leaf(request()).await.is_ok(), taken, "{value}");
    }
}

/// C3: capped at the CA's end, with a warning and both dates in the audit entry.
#[tokio::test]
async fn a_validity_that_overruns_the_ca_is_capped_with_a_warning() {
    let house = House::new();
    let long = |text: String| text.replacen("validity_days: 90", "validity_days: 9000", 1);
    house.issuing_with(long).await;
    let client = house.offline("issuing").await;
    let request = leaf(
        csr(&house.path(""), "web", &["web.example.org"]),
        "leaf-server",
        &[],
    );
    let issued = client.issue_leaf(request).await.unwrap();
    assert_eq!(issued.warnings.len(), 1, "{:?}", issued.warnings);
    let event = last_event(&client).await;
    let details = details(&event);
    assert!(
        details["requested_not_after"] > details["effective_not_after"],
        "{details:?}"
    );
    let status = client.status().await.unwrap();
    assert_eq!(issued.not_after, status.not_after);
}

/// C4: a CA outside is signed with the chain above it; its path length is the profile's.
#[tokio::test]
async fn a_ca_outside_is_signed_with_its_chain() {
    let house = House::new();
    let root = house.issuing().await;
    let client = house.offline("issuing").await;
    let request = pb::SignSubordinateCsrRequest {
        csr: csr(&house.path(""), "VMCA", &[]),
        profile: "sub-ca".to_owned(),
    };
    let signed = client.sign_subordinate(request).await.unwrap();
    assert_eq!(
        signed.chain_der.len(),
        2,
        "itself and the issuing CA, not the root"
    );
    openssl_verifies(&house, &root, &signed.chain_pem);
    let file = house.write("sub.pem", &signed.chain_pem);
    let text = openssl(["x509", "-in", &file, "-noout", "-text"])
        .success()
        .stdout_text();
    assert!(text.contains("CA:TRUE, pathlen:0"), "{text}");
    let found = client.issued_certificate(&signed.serial_hex).await.unwrap();
    assert_eq!(found.certificate.unwrap().profile, "sub-ca");
}

/// C13: pages in the order of issuing, no row twice, none lost.
#[tokio::test]
async fn the_issued_set_is_paged() {
    let house = House::new();
    house.issuing().await;
    let client = house.offline("issuing").await;
    let request = csr(&house.path(""), "web", &["web.example.org"]);
    let mut serials = Vec::new();
    for number in 0..7 {
        let profile = if number % 2 == 0 {
            "leaf-server"
        } else {
            "leaf-client"
        };
        let issued = client
            .issue_leaf(leaf(request.clone(), profile, &[]))
            .await
            .unwrap();
        serials.push(issued.serial_hex);
    }
    let mut listed = Vec::new();
    let mut page = pb::ListIssuedRequest {
        page_size: 3,
        ..pb::ListIssuedRequest::default()
    };
    loop {
        let answer = client.list_issued(page.clone()).await.unwrap();
        assert!(answer.certificates.len() <= 3);
        listed.extend(answer.certificates.into_iter().map(|row| row.serial_hex));
        if answer.next_page_token.is_empty() {
            break;
        }
        page.page_token = answer.next_page_token;
    }
    assert_eq!(listed, serials);

    let only = pb::ListIssuedRequest {
        profile: "leaf-client".to_owned(),
        ..pb::ListIssuedRequest::default()
    };
    assert_eq!(
        client.list_issued(only).await.unwrap().certificates.len(),
        3
    );
    let bad = pb::ListIssuedRequest {
        page_token: "x".to_owned(),
        ..pb::ListIssuedRequest::default()
    };
    let refused = client.list_issued(bad).await.unwrap_err();
    assert_eq!(refused.code(), Code::InvalidArgument);
    assert_eq!(client.status().await.unwrap().issued, 7);
}
