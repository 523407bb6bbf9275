//! C14: every call of the management API is in the signed log.

use std::{collections::BTreeSet, fs};

use prost::Message as _;
use vidimus_audit::{AuditPublicKey, verify::Verifier};
use vidimus_client::{NodeClient, pb};

use crate::{
    api::Running,
    house::{House, csr, leaf},
};

/// The methods that have no entry.
const UNAUDITED: [&str; 2] = ["GetIdentity", "GetStatus"];

async fn methods_of_log(client: &NodeClient) -> Vec<(String, String)> {
    let request = pb::ListAuditEventsRequest {
        page_size: 1000,
        page_token: String::new(),
    };
    let events = client.audit_events(request).await.unwrap().events;
    events
        .into_iter()
        .map(|event| (event.rpc_method, event.outcome))
        .collect()
}

/// C14: one entry a call, refusals included, and none for the two that say so.
#[tokio::test]
async fn every_method_has_its_entry() {
    let house = House::new();
    house.issuing().await;
    let client = house.offline("issuing").await;
    let request = csr(&house.path(""), "web", &["web.example.org"]);
    let before = methods_of_log(&client).await.len() + 1;

    client.status().await.unwrap();
    client.identity().await.unwrap();
    let text = client.config().await.unwrap().config_yaml;
    client.apply_config(&text).await.unwrap();
    client.apply_config("nonsense").await.unwrap_err();
    let serial = client
        .issue_leaf(leaf(request.clone(), "leaf-server", &[]))
        .await
        .unwrap()
        .serial_hex;
    client
        .issue_leaf(leaf(request.clone(), "none", &[]))
        .await
        .unwrap_err();
    let sub = pb::SignSubordinateCsrRequest {
        csr: request,
        profile: "sub-ca".to_owned(),
    };
    client.sign_subordinate(sub).await.unwrap();
    client
        .list_issued(pb::ListIssuedRequest::default())
        .await
        .unwrap();
    client.issued_certificate(&serial).await.unwrap();
    client.issued_certificate("zz").await.unwrap_err();
    client.begin_key_rotation().await.unwrap();
    client.complete_key_rotation("nonsense").await.unwrap_err();

    let log = methods_of_log(&client).await;
    let log: Vec<_> = log[before..]
        .iter()
        .map(|(method, outcome)| (method.rsplit('/').next().unwrap(), outcome.as_str()))
        .collect();
    let expected = [
        ("GetConfig", "OK"),
        ("ApplyConfig", "OK"),
        ("ApplyConfig", "ERROR"),
        ("IssueLeaf", "OK"),
        ("IssueLeaf", "ERROR"),
        ("SignSubordinateCSR", "OK"),
        ("ListIssued", "OK"),
        ("GetIssuedCertificate", "OK"),
        ("GetIssuedCertificate", "ERROR"),
        ("BeginKeyRotation", "OK"),
        ("CompleteKeyRotation", "ERROR"),
    ];
    assert_eq!(log, expected);

    let mut seen: BTreeSet<_> = expected.iter().map(|(method, _)| *method).collect();
    seen.extend(UNAUDITED);
    seen.insert("ListAuditEvents");
    let all = methods_of_descriptor();
    assert_eq!(
        seen.into_iter().map(str::to_owned).collect::<BTreeSet<_>>(),
        all,
        "no method was forgotten"
    );
}

/// C14: the daily files of a node that ran verify with the public key that `init` wrote, and hold every entry.
#[tokio::test(flavor = "multi_thread")]
async fn the_daily_files_verify_after_a_run() {
    let house = House::new();
    house.issuing().await;
    let node = Running::start(&house, "issuing").await;
    let client = node.connect(&house.data("issuing").admin()).await.unwrap();
    client.config().await.unwrap();
    let entries = client.status().await.unwrap().audit_entries;
    drop(client);
    node.stop().await;

    let data = house.data("issuing");
    let key: AuditPublicKey = fs::read_to_string(data.audit_public_key())
        .unwrap()
        .parse()
        .unwrap();
    let mut verifier = Verifier::new(key);
    let mut files: Vec<_> = fs::read_dir(data.audit_files())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "log"))
        .collect();
    files.sort();
    for file in files {
        for line in fs::read_to_string(file).unwrap().lines() {
            verifier.line(line).unwrap();
        }
    }
    assert_eq!(verifier.finish().unwrap().head.seq, entries);
}

fn methods_of_descriptor() -> BTreeSet<String> {
    let set = prost_types::FileDescriptorSet::decode(vidimus_proto::FILE_DESCRIPTOR_SET).unwrap();
    let services = set.file.into_iter().flat_map(|file| file.service);
    let service = services
        .into_iter()
        .find(|service| service.name() == "NodeService")
        .unwrap();
    service
        .method
        .into_iter()
        .map(|method| method.name().to_owned())
        .collect()
}
