//! Client certificates known one by one.

use std::collections::BTreeSet;
use std::time::SystemTime;

use vidimus_testkit::{Authority, Credential};
use vidimus_tls::config::ClientAuth;
use vidimus_tls::identity::Fingerprint;
use vidimus_tls::material::{Identity, Material, Trust, Usage};
use vidimus_tls::server::Security;
use vidimus_tls::verify::PinnedClientVerifier;
use vidimus_tls::watch::MaterialWatch;

use crate::support::{Client, Running, Setup, World, call};

#[expect(
    clippy::disallowed_methods,
    reason = "certificates made by the testkit are judged by the wall clock"
)]
fn now() -> SystemTime {
    SystemTime::now()
}

fn pins(credentials: &[&Credential]) -> BTreeSet<[u8; 32]> {
    let of = |credential: &&Credential| *Fingerprint::of(credential.leaf_der()).as_bytes();
    credentials.iter().map(of).collect()
}

async fn serve(world: &World, pinned: &PinnedClientVerifier) -> Running {
    let leaf = world.server_leaf();
    let (chain, key) = (leaf.chain_pem(), leaf.key_pem());
    let identity = Identity::from_pem(chain.as_bytes(), key.as_bytes(), Usage::Server, now());
    let material = Material::of(identity.expect("an identity"), Trust::nobody());
    let security = Security::Mutual {
        material: MaterialWatch::fixed(material),
        clients: ClientAuth::Pinned(pinned.clone()),
    };
    Running::start(security, Setup::default()).await
}

/// C13's administrator: the pinned certificate is let in, whoever issued it; another of the same CA is not.
#[tokio::test]
async fn only_the_pinned_certificate_is_let_in() {
    let world = World::new();
    // A CA that the server has never heard of.
    let somebody = Authority::root("somebody");
    let leaf = |name: &str| somebody.leaf(name).dns(name).client().issue();
    let (admin, twin) = (leaf("admin.test"), leaf("admin.test"));
    let pinned = PinnedClientVerifier::new(pins(&[&admin]));
    let running = serve(&world, &pinned).await;
    let client = |credential: &Credential| Client::new(&world.pki.root).with(credential);
    let mut echo = client(&admin).echo(running.address).await;
    assert_eq!(call(&mut echo).await.expect("a call").peer, "admin.test");
    let refusal = client(&twin).refusal(running.address).await;
    assert_eq!(refusal.as_deref(), Some("AccessDenied"));
    assert_eq!(running.server.stats().failures.get("not_pinned"), Some(&1));

    // The pin moves on without a restart.
    pinned.replace(pins(&[&twin]));
    assert_eq!(client(&twin).refusal(running.address).await, None);
    assert!(client(&admin).refusal(running.address).await.is_some());
    running.stop().await;
}

/// A pin is no trust anchor: what a pinned CA certificate's key signs stays outside.
#[tokio::test]
async fn a_pinned_certificate_cannot_issue_others() {
    let world = World::new();
    let ca = Authority::root("pinned");
    let own = vidimus_testkit::Pki::new("x");
    let leaf = ca.leaf("other.test").client().issue();
    let pinned = PinnedClientVerifier::new(BTreeSet::from([*Fingerprint::of(ca.der()).as_bytes()]));
    let running = serve(&world, &pinned).await;
    let refusal = Client::new(&world.pki.root)
        .with(&leaf)
        .refusal(running.address)
        .await;
    assert_eq!(refusal.as_deref(), Some("AccessDenied"));
    let unknown = own.leaf("unknown").client().issue();
    let refusal = Client::new(&world.pki.root)
        .with(&unknown)
        .refusal(running.address)
        .await;
    assert_eq!(refusal.as_deref(), Some("AccessDenied"));
    running.stop().await;
}

/// Dates and usage of a pinned certificate count.
#[tokio::test]
async fn a_pinned_certificate_still_has_to_be_valid() {
    let world = World::new();
    let leaf = || world.pki.leaf("admin").dns("admin.test");
    let expired = leaf().client().expired().issue();
    let early = leaf().client().not_yet_valid().issue();
    let server = leaf().server().issue();
    let good = leaf().client().issue();
    let pinned = PinnedClientVerifier::new(pins(&[&expired, &early, &server, &good]));
    let running = serve(&world, &pinned).await;
    for (credential, alert) in [
        (&expired, Some("CertificateExpired")),
        (&early, Some("CertificateExpired")),
        (&server, Some("UnsupportedCertificate")),
        (&good, None),
    ] {
        let client = Client::new(&world.pki.root).with(credential);
        assert_eq!(client.refusal(running.address).await.as_deref(), alert);
    }
    running.stop().await;
}
