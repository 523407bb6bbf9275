//! What cannot be recorded does not happen.

use vidimus_audit::seed::AuditSeed;
use vidimus_keys::file::FileKey;
use vidimus_store::{Options, Store, StoreError};
use vidimus_x509::{
    issue::{self, RequestNames},
    key::KeyAlgorithm,
    profile::SubjectFields,
};

use super::{Fault, IssueError, IssuingService, LeafRequest, Snapshot};
use crate::{call::Call, testing::a_root};

const METHOD: &str = "/vidimus.node.v1.NodeService/IssueLeaf";

fn request(csr: &[u8]) -> LeafRequest<'_> {
    LeafRequest {
        csr,
        profile: "leaf",
        dns_names: &[],
        ip_addresses: &[],
    }
}

/// C14: neither a certificate nor a refusal leaves without its audit entry.
#[tokio::test]
async fn nothing_is_answered_that_could_not_be_recorded() {
    let (dir, node) = a_root(|text| {
        let leaf = "    - {name: leaf, key_alg: ECDSA-P384, validity_days: 30, key_usage: [digital_signature], \
                    allow_request_sans: true}\n";
        let text = text.replacen("pki:\n", "pki:\n  root_leaf_issuance: acknowledged-irreversible\n", 1);
        format!("{text}{leaf}")
    })
    .await;
    let options = Options {
        max_bytes: Some(400 * 1024),
        ..Options::default()
    };
    let seed = AuditSeed::from_bytes(&[7; 32]);
    let store = Store::open_with(dir.path().join("small.db"), seed.key(), options).unwrap();
    let service = IssuingService::new(
        Snapshot::clone(&node.service().snapshot()),
        store.clone(),
        node.service().clock(),
    );
    let key = FileKey::generate(KeyAlgorithm::EcdsaP384).unwrap();
    let subject = SubjectFields {
        common_name: "web".to_owned(),
        ..SubjectFields::default()
    };
    let csr = issue::request(&subject, &RequestNames::default(), &key).unwrap();
    let call = Call::local(METHOD);

    let mut answered = 0;
    let refused = loop {
        match service.issue_leaf(&call, &request(&csr)).await {
            Ok(_) => answered += 1,
            Err(error) => break error,
        }
        assert!(answered < 10_000, "the store never fills");
    };
    let full = matches!(
        &refused,
        IssueError::Record {
            source: StoreError::Full { .. }
        }
    );
    assert!(full && refused.fault() == Fault::Internal, "{refused:?}");
    assert!(answered > 0);
    assert_eq!(store.issued_count().await.unwrap(), answered);
    assert_eq!(store.audit_head().await.unwrap().seq, answered);

    // a refusal needs less room: fill what is left with them
    let unfit = LeafRequest {
        profile: "none",
        ..request(&csr)
    };
    let refused = loop {
        match service.issue_leaf(&call, &unfit).await {
            Err(IssueError::UnknownProfile { .. }) => answered += 1,
            Err(error) => break error,
            Ok(_) => panic!("there is no such profile"),
        }
        assert!(answered < 100_000, "the store never fills");
    };
    assert!(
        matches!(refused, IssueError::RecordRefusal { .. }),
        "{refused:?}"
    );
    assert_eq!(refused.fault(), Fault::Internal);
}
