//! The authorization matrix: every method of the descriptor, every kind of caller.

use std::{collections::BTreeSet, sync::Arc};

use http::{Request, header};
use prost::Message as _;
use tonic::{Code, body::Body};
use tower::ServiceExt as _;
use vidimus_proto::node::v1::node_service_server::NodeServiceServer;
use vidimus_tls::identity::{PeerIdentity, UnixPeer};

use super::Rpc;
use crate::{node::Node, testing::a_root};

/// Methods without an audit entry.
const UNAUDITED: [&str; 2] = ["GetIdentity", "GetStatus"];

fn methods() -> BTreeSet<String> {
    let set = prost_types::FileDescriptorSet::decode(vidimus_proto::FILE_DESCRIPTOR_SET).unwrap();
    let mut services = set.file.into_iter().flat_map(|file| file.service);
    let service = services
        .find(|service| service.name() == "NodeService")
        .unwrap();
    service
        .method
        .into_iter()
        .map(|method| method.name().to_owned())
        .collect()
}

/// Calls a method with an empty message as this peer; the code that comes back.
async fn call(node: &Arc<Node>, method: &str, peer: Option<PeerIdentity>) -> Code {
    let empty_message = http_body_util::Full::new(bytes::Bytes::from_static(&[0; 5]));
    let mut request = Request::post(format!("/vidimus.node.v1.NodeService/{method}"))
        .header(header::CONTENT_TYPE, "application/grpc")
        .body(Body::new(empty_message))
        .unwrap();
    if let Some(peer) = peer {
        request.extensions_mut().insert(peer);
    }
    let service = NodeServiceServer::new(Rpc::new(Arc::clone(node)));
    let response = service.oneshot(request).await.unwrap();
    let status = response.headers().get("grpc-status").cloned();
    match status {
        Some(code) => Code::from_bytes(code.as_bytes()),
        None => Code::Ok,
    }
}

fn unix(uid: u32) -> Option<PeerIdentity> {
    Some(PeerIdentity::Unix(UnixPeer {
        uid,
        gid: uid,
        pid: None,
    }))
}

/// C1: nobody, somebody else and the owner, for every method there is; each refusal has its entry.
#[tokio::test]
async fn every_method_refuses_whoever_is_not_the_administrator() {
    let (dir, node) = a_root(|text| text).await;
    let owner = std::os::unix::fs::MetadataExt::uid(&dir.path().metadata().unwrap());
    let methods = methods();
    assert!(methods.len() >= 11, "{methods:?}");
    for method in &methods {
        let audited = !UNAUDITED.contains(&method.as_str());
        for (peer, expected) in [
            (None, Code::Unauthenticated),
            (Some(PeerIdentity::Unauthenticated), Code::Unauthenticated),
            (unix(owner.wrapping_add(1)), Code::PermissionDenied),
        ] {
            let before = node.store().audit_head().await.unwrap().seq;
            assert_eq!(
                call(&node, method, peer.clone()).await,
                expected,
                "{method} by {peer:?}"
            );
            let after = node.store().audit_head().await.unwrap().seq;
            assert_eq!(after - before, u64::from(audited), "{method} by {peer:?}");
            if audited {
                let line = node.store().audit_lines(after, 1).await.unwrap();
                assert!(
                    line[0].json.contains("\"outcome\":\"DENIED\""),
                    "{}",
                    line[0].json
                );
            }
        }
        let code = call(&node, method, unix(owner)).await;
        assert!(
            ![
                Code::Unauthenticated,
                Code::PermissionDenied,
                Code::Unimplemented
            ]
            .contains(&code),
            "{method}: {code:?}"
        );
    }
}
