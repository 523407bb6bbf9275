//! The client channel, tried with servers that are not ours: stock rustls, hyper and h2, and our own where nothing else
//! would show it.

mod danger;
mod dead_peer;
mod deadline;
mod drain;
mod events;
mod frames;
mod renewal;
mod resend;
mod rotation;
mod runtime;
mod server;
mod shrink;
mod spread;
mod target;
mod trust;

use tonic::{Code, Status};
use vidimus_proto::testkit::v1::echo_client::EchoClient;
use vidimus_testkit::{Authority, Credential, Pki, wait_until_async};
use vidimus_tls::channel::{Channel, ChannelBuilder, ClientTls};
use vidimus_tls::clock::Clock;
use vidimus_tls::material::{Identity, Material, Trust, Usage};
use vidimus_tls::watch::MaterialWatch;

use crate::support::{DEADLINE, SERVER, request, soon};

/// A client's material that doesn't change.
fn material(credential: &Credential, roots: &[&Authority]) -> Material {
    let now = Clock::system().now();
    let pem: String = roots.iter().map(|root| root.pem()).collect();
    let identity = Identity::from_pem(
        credential.chain_pem().as_bytes(),
        credential.key_pem().as_bytes(),
        Usage::Client,
        now,
    );
    let trust = Trust::from_pem(pem.as_bytes(), now).expect("good roots");
    Material::of(identity.expect("a good identity"), trust)
}

fn watch(credential: &Credential, roots: &[&Authority]) -> MaterialWatch {
    MaterialWatch::fixed(material(credential, roots))
}

fn client_leaf(pki: &Pki) -> Credential {
    pki.leaf("client").dns("client.test").client().issue()
}

fn server_leaf(pki: &Pki) -> Credential {
    pki.leaf("server").dns(SERVER).server().issue()
}

/// A channel of the usual client to a server with the usual name.
fn builder(pki: &Pki, target: &str) -> ChannelBuilder {
    Channel::builder(
        target,
        SERVER,
        ClientTls::Watch(watch(&client_leaf(pki), &[&pki.root])),
    )
}

fn build(builder: ChannelBuilder) -> Channel {
    builder.build().expect("a channel")
}

/// One unary call; what the server calls its peer.
async fn call(channel: &Channel) -> Result<String, Status> {
    let mut client = EchoClient::new(channel.clone());
    let answer = soon("a call", client.unary(request("hello"))).await?;
    Ok(answer.into_inner().peer)
}

/// The failure of a call that must fail with this code and a text that has all of these parts.
#[track_caller]
fn assert_status(outcome: Result<String, Status>, code: Code, parts: &[&str]) {
    let status = outcome.expect_err("the call must fail");
    assert_eq!(status.code(), code, "{status}");
    for part in parts {
        assert!(
            status.message().contains(part),
            "{part:?} is not in {:?}",
            status.message()
        );
    }
}

/// Waits until the channel has no connection.
pub(crate) async fn until_disconnected(channel: &Channel) {
    wait_until_async(DEADLINE, || async {
        let connections = channel.status().connections.len();
        if connections == 0 {
            Ok(())
        } else {
            Err("still connected")
        }
    })
    .await;
}
