//! Live connections of peers that are revoked, on either side.

use tokio_stream::StreamExt;
use tonic::Code;
use vidimus_proto::testkit::v1::EchoRequest;
use vidimus_proto::testkit::v1::echo_client::EchoClient;
use vidimus_testkit::pki::{AuthoritySpec, RevocationListSpec};
use vidimus_testkit::{Authority, Credential, wait_until_async};
use vidimus_tls::channel::{Channel, ClientTls};
use vidimus_tls::material::{Identity, Material, RevocationCheck, RevocationOptions, Usage};
use vidimus_tls::server::Security;
use vidimus_tls::watch::MaterialWatch;

use super::{LEAF, now, roots};
use crate::support::{Client, DEADLINE, Running, SERVER, Setup, World, call, put, request, soon};

fn client(world: &World, name: &str, serial: u8) -> Client {
    let leaf = world.pki.leaf(name).dns(name).client();
    Client::new(&world.pki.root).with(&leaf.serial(&[serial]).issue())
}

/// V18, V14. The handshake of a revoked client ends with the alert that says so; a later list ends live connections, and
/// others never notice.
#[tokio::test]
async fn a_revocation_refuses_new_connections_and_ends_live_ones() {
    let world = World::new();
    let list = world.dir.path().join("crl.pem");
    let revoking = |number: u64, serials: &[u8]| {
        let spec = world.pki.issuing.revocation_list(number);
        serials
            .iter()
            .fold(spec, |spec, serial| spec.revoke(&[*serial]))
            .pem()
    };
    put(&list, revoking(1, &[7]));
    let (running, watch) = Running::follow(world.dir.path(), Setup::default()).await;
    let (lost, leaves, stays) = (
        client(&world, "lost.test", 7),
        client(&world, "leaves.test", 8),
        client(&world, "stays.test", 9),
    );
    assert_eq!(
        lost.refusal(running.address).await.as_deref(),
        Some("CertificateRevoked")
    );
    assert_eq!(leaves.refusal(running.address).await, None);

    let mut leaving = leaves.echo(running.address).await;
    let mut staying = stays.echo(running.address).await;
    let endless = || EchoRequest {
        count: 0,
        delay_milliseconds: 5,
        ..request("stream")
    };
    let mut cut = leaving
        .server_stream(endless())
        .await
        .expect("a stream")
        .into_inner();
    let mut kept = staying
        .server_stream(endless())
        .await
        .expect("a stream")
        .into_inner();
    cut.next().await.expect("an answer").expect("no error");

    put(&list, revoking(2, &[7, 8]));
    soon("the list", watch.wait_for_generation(2)).await;
    soon("the stream's end", async {
        while let Some(Ok(_)) = cut.next().await {}
    })
    .await;
    assert_eq!(
        leaves.refusal(running.address).await.as_deref(),
        Some("CertificateRevoked")
    );
    assert_eq!(running.server.stats().withdrawn, 1);
    kept.next()
        .await
        .expect("an answer")
        .expect("the other stream goes on");
    call(&mut staying).await.expect("and so do calls");
    drop(kept);
    running.stop().await;
}

/// V18. A list that ends doesn't end what was accepted under it, also when roots change meanwhile.
#[tokio::test]
async fn a_list_that_ends_refuses_new_connections_alone() {
    let world = World::new();
    let list = world.dir.path().join("crl.pem");
    put(&list, world.pki.issuing.revocation_list(1).pem());
    let ahead = std::sync::Arc::default();
    let setup = Setup {
        clock: crate::support::clock(&ahead),
        limits: vidimus_tls::server::Limits {
            expired_peers: vidimus_tls::server::ExpiredPeers::Ignore,
            ..Default::default()
        },
        ..Setup::default()
    };
    let (running, watch) = Running::follow(world.dir.path(), setup).await;
    let client = client(&world, "client.test", 9);
    let mut live = client.echo(running.address).await;
    call(&mut live).await.expect("a call");
    put(&list, world.pki.issuing.revocation_list(2).ended().pem());
    soon("the list", watch.wait_for_generation(2)).await;
    assert_eq!(
        client.refusal(running.address).await.as_deref(),
        Some("CertificateUnknown")
    );
    let other = Authority::root("other");
    put(
        world.dir.path().join("ca.crt"),
        format!("{}{}", world.pki.root.pem(), other.pem()),
    );
    soon("the roots", watch.wait_for_generation(3)).await;
    wait_until_async(DEADLINE, || async {
        let judged = running.server.connections()[0].judged_generation;
        if judged == 3 { Ok(()) } else { Err(judged) }
    })
    .await;
    call(&mut live).await.expect("the connection goes on");
    assert_eq!(running.server.stats().withdrawn, 0);
    running.stop().await;
}

/// V18, V14. A check that goes further up than before is applied to live connections, too.
#[tokio::test]
async fn a_check_that_is_widened_ends_whom_it_finds() {
    let root = Authority::root("root");
    let lost = AuthoritySpec::new("lost").serial(&[5]).under(&root);
    let kept = AuthoritySpec::new("kept").serial(&[6]).under(&root);
    let server = root.leaf("server").dns(SERVER).server().issue();
    let lists = [
        root.revocation_list(1).revoke(&[5]),
        lost.revocation_list(1),
        kept.revocation_list(1),
    ];
    let lists: String = lists.into_iter().map(RevocationListSpec::pem).collect();
    let given = |check| {
        let options = RevocationOptions {
            check: Some(check),
            ..LEAF
        };
        let trust = roots(&[&root]).with_revocation(lists.as_bytes(), options, &[], now());
        trust.expect("good lists")
    };
    let (certificate, key) = (server.chain_pem(), server.key_pem());
    let identity = Identity::from_pem(certificate.as_bytes(), key.as_bytes(), Usage::Server, now());
    let material = Material::of(identity.expect("an identity"), given(RevocationCheck::Leaf));
    let (watch, mut publisher) = MaterialWatch::from_memory(material);
    let running = Running::start(Security::mutual(watch), Setup::default()).await;
    let client = |of: &Authority| Client::new(&root).with(&of.leaf("client").client().issue());
    let (leaves, stays) = (client(&lost), client(&kept));
    let mut leaving = leaves.echo(running.address).await;
    let mut staying = stays.echo(running.address).await;
    call(&mut leaving)
        .await
        .expect("its own CA is not looked up");
    call(&mut staying).await.expect("a call");
    publisher.replace_trust(given(RevocationCheck::Chain));
    wait_until_async(DEADLINE, || async {
        let withdrawn = running.server.stats().withdrawn;
        if withdrawn == 1 {
            Ok(())
        } else {
            Err(withdrawn)
        }
    })
    .await;
    let refused = leaves.refusal(running.address).await;
    assert_eq!(refused.as_deref(), Some("CertificateRevoked"));
    call(&mut staying).await.expect("the other goes on");
    assert_eq!(running.server.stats().withdrawn, 1);
    running.stop().await;
}

/// V18. A channel refuses a revoked server.
#[tokio::test]
async fn a_channel_refuses_a_revoked_server() {
    let world = World::new();
    let server = |serial: u8| {
        let leaf = world.pki.leaf("server").dns(SERVER).server();
        leaf.serial(&[serial]).issue()
    };
    let own = world.pki.leaf("client").dns("client.test").client().issue();
    let connect = async |leaf: Credential| {
        let dir = tempfile::tempdir().expect("a folder");
        leaf.write_dir(dir.path(), &[&world.pki.root]);
        let (running, _watch) = Running::follow(dir.path(), Setup::default()).await;
        let list = world.pki.issuing.revocation_list(1).revoke(&[7]).pem();
        let trust = roots(&[&world.pki.root]).with_revocation(list.as_bytes(), LEAF, &[], now());
        let (certificate, key) = (own.chain_pem(), own.key_pem());
        let identity =
            Identity::from_pem(certificate.as_bytes(), key.as_bytes(), Usage::Client, now());
        let material = Material::of(identity.expect("an identity"), trust.expect("a list"));
        let tls = ClientTls::Watch(MaterialWatch::fixed(material));
        let target = running.address.to_string();
        let channel = Channel::builder(&target, SERVER, tls)
            .build()
            .expect("a channel");
        let mut client = EchoClient::new(channel);
        let outcome = soon("a call", client.unary(request("hello"))).await;
        drop(client);
        running.stop().await;
        outcome.map(drop)
    };
    connect(server(8))
        .await
        .expect("a server that isn't listed");
    let refused = connect(server(7)).await.expect_err("a refusal");
    assert_eq!(refused.code(), Code::Unavailable);
    assert!(
        refused.message().contains("serial number 7 was revoked"),
        "{refused:?}"
    );
}
