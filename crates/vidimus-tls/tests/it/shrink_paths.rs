//! Chains that hold along another path when trust changes: they stay, as far as the policy lets them.

use std::sync::atomic::Ordering;
use std::time::{Duration, SystemTime};

use tokio_stream::StreamExt;
use tonic::{Code, Status};
use vidimus_proto::testkit::v1::EchoResponse;
use vidimus_testkit::kubelet::Volume;
use vidimus_testkit::pki::{AuthoritySpec, Validity};
use vidimus_testkit::{Authority, Credential, Pki, wait_until_async};
use vidimus_tls::clock::Clock;
use vidimus_tls::policy::{Policy, PolicyWatch};
use vidimus_tls::server::{ExpiredPeers, Limits};

use crate::policy::counted;
use crate::support::{Client, DEADLINE, Running, SERVER, Setup, call, clock, put, soon};

/// A client's root that another one with the same name and key can stand in for, and a server under a root of its own.
struct World {
    server: Pki,
    old: Authority,
    renewed: String,
    dir: tempfile::TempDir,
}

impl World {
    fn new() -> Self {
        let dir = tempfile::tempdir().expect("a folder");
        let old = Authority::root("root");
        Self {
            server: Pki::new("Server"),
            renewed: renew(&old, dir.path()),
            old,
            dir,
        }
    }

    fn files(&self, roots: &str) -> [(&'static str, String); 3] {
        let mut files = self.leaf().files(&[]);
        files[2].1 = roots.to_owned();
        files
    }

    fn leaf(&self) -> Credential {
        self.server.leaf("server").dns(SERVER).server().issue()
    }

    /// Follows a volume in which only the old root is trusted.
    async fn follow(&self, setup: Setup) -> (Running, Volume) {
        let folder = self.dir.path().join("tls");
        let volume = Volume::create(&folder, &self.files(&self.old.pem()));
        (Running::follow(&folder, setup).await.0, volume)
    }

    fn client(&self, leaf: &Credential) -> Client {
        Client::new(&self.server.root).with(leaf)
    }

    /// A policy whose trust domain `td` has these roots.
    fn policy(&self, roots: &str, text: &str) -> Policy {
        put(self.dir.path().join("td.pem"), roots);
        let file = self.dir.path().join("policy.yaml");
        put(&file, format!("trust_domains: {{td: td.pem}}\n{text}"));
        Policy::load(&file).expect(text)
    }
}

/// Waits until the only connection is trusted by another root than `before`, or is gone.
async fn moved(running: &Running, before: &vidimus_tls::server::ConnectionInfo) {
    wait_until_async(DEADLINE, || async {
        let now = running.server.connections();
        match now.first() {
            Some(now) if now.anchor == before.anchor => Err(format!("{now:?}")),
            _ => Ok(()),
        }
    })
    .await;
}

/// Reads a stream to its end; the error that it ended with.
async fn end_of(mut answers: tonic::Streaming<EchoResponse>) -> Option<Status> {
    soon("the stream's end", async {
        loop {
            match answers.next().await {
                Some(Ok(_)) => {}
                Some(Err(status)) => return Some(status),
                None => return None,
            }
        }
    })
    .await
}

/// V14. A chain that holds along another path stays: the intermediate is cross-signed by the root that remains.
#[tokio::test]
async fn a_chain_that_holds_along_another_path_stays() {
    let (old, new) = (Authority::root("root"), Pki::new("New"));
    // The same root's certificate, renewed: name and key stay, so a chain under the one holds under the other.
    let dir = tempfile::tempdir().expect("a folder");
    let renewed = renew(&old, dir.path());
    let server = new.leaf("server").dns(SERVER).server().issue();
    let files = |roots: &str| {
        let mut files = server.files(&[]);
        files[2].1 = roots.to_owned();
        files
    };
    let tls = dir.path().join("tls");
    let mut volume = Volume::create(&tls, &files(&old.pem()));
    let (running, watch) = Running::follow(&tls, Setup::default()).await;
    let leaf = old.leaf("client").dns("client.test").client().issue();
    let mut client = Client::new(&new.root)
        .with(&leaf)
        .echo(running.address)
        .await;
    call(&mut client).await.expect("a call");
    let before = running.server.connections()[0].anchor;

    volume.swap(&files(&renewed));
    soon("the renewed root", watch.wait_for_generation(2)).await;
    wait_until_async(DEADLINE, || async {
        let now = running.server.connections()[0].anchor;
        if now != before && now.is_some() {
            Ok(())
        } else {
            Err(format!("{now:?}"))
        }
    })
    .await;
    call(&mut client).await.expect("the connection goes on");
    let stats = running.server.stats();
    assert_eq!((stats.withdrawn, stats.accepted), (0, 1));
    running.stop().await;
}

/// V14. The root that leaves is cross-signed by one of another name that stays: who presents that goes on, and who doesn't ends.
#[tokio::test]
async fn a_chain_over_a_cross_signed_root_stays() {
    let world = World::new();
    let other = Authority::root("another name");
    let both = format!("{}{}", world.old.pem(), other.pem());
    let folder = world.dir.path().join("tls");
    let mut volume = Volume::create(&folder, &world.files(&both));
    let (running, watch) = Running::follow(&folder, Setup::default()).await;
    let leaf = |name: &str| world.old.leaf(name).dns(name).client().issue();
    let (crossed, plain) = (leaf("crossed.test"), leaf("plain.test"));
    let chain = format!(
        "{}{}",
        crossed.chain_pem(),
        cross_signed(&world.old, &other)
    );
    let with_cross = Client::new(&world.server.root).with_pem(&chain, crossed.key_pem());
    let mut stays = with_cross.echo(running.address).await;
    let mut ends = world.client(&plain).echo(running.address).await;
    call(&mut stays).await.expect("a call");
    call(&mut ends).await.expect("a call");

    volume.swap(&world.files(&other.pem()));
    soon("the other root", watch.wait_for_generation(2)).await;
    wait_until_async(DEADLINE, || async {
        let withdrawn = running.server.stats().withdrawn;
        let anchors: Vec<_> = running
            .server
            .connections()
            .into_iter()
            .map(|one| one.anchor)
            .collect();
        let left = watch.current().trust().roots()[0].fingerprint();
        if withdrawn == 1 && anchors == [Some(left)] {
            Ok(())
        } else {
            Err(format!("{withdrawn} {anchors:?}"))
        }
    })
    .await;
    call(&mut stays).await.expect("the connection goes on");
    let refused = world.client(&plain).refusal(running.address).await;
    assert_eq!(refused.as_deref(), Some("UnknownCA"));
    assert_eq!(with_cross.refusal(running.address).await, None);
    running.stop().await;
}

/// V14. The path that a chain was accepted by expires; along another one it holds, and the connection goes on.
#[tokio::test]
async fn a_chain_that_expires_along_one_path_and_holds_along_another_stays() {
    let soon_over = Validity::ends_in(Duration::from_secs(3600));
    let (old, new) = (
        AuthoritySpec::new("root").validity(soon_over).root(),
        Pki::new("New"),
    );
    let dir = tempfile::tempdir().expect("a folder");
    let renewed = renew(&old, dir.path());
    let mut files = new.leaf("server").dns(SERVER).server().issue().files(&[]);
    files[2].1 = old.pem() + &renewed;
    let tls = dir.path().join("tls");
    let _volume = Volume::create(&tls, &files);
    let ahead = std::sync::Arc::default();
    let setup = Setup {
        limits: Limits {
            expiry_interval: Duration::from_millis(10),
            expired_peer_grace: Duration::from_millis(50),
            ..Limits::default()
        },
        clock: clock(&ahead),
        ..Setup::default()
    };
    let (running, _watch) = Running::follow(&tls, setup).await;
    let leaf = old.leaf("client").dns("client.test").client().issue();
    let client = Client::new(&new.root).with(&leaf);
    let mut echo = client.echo(running.address).await;
    call(&mut echo).await.expect("a call");
    let before = running.server.connections().remove(0);
    ahead.store(2 * 3600, Ordering::Relaxed);
    let after = wait_until_async(DEADLINE, || async {
        let now = running.server.connections().remove(0);
        if now.not_after > before.not_after {
            Ok(now)
        } else {
            Err(format!("{now:?}"))
        }
    })
    .await;
    assert!(
        !after.draining && after.anchor != before.anchor,
        "{after:?}"
    );
    call(&mut echo).await.expect("the connection goes on");
    assert_eq!(running.server.stats().expired, 0);
    running.stop().await;
}

/// V17, V14. The allow-list knows the peer's trust domain by a root that leaves. Along another path the chain holds, but the
/// peer may no longer call: its connection ends, and the calls that run on it.
#[tokio::test]
async fn a_chain_that_holds_along_a_path_that_the_list_does_not_know_ends() {
    let world = World::new();
    let leaf = world.old.leaf("a").uri("spiffe://td/a").client().issue();
    for (domain, stays) in [
        (world.old.pem(), false),
        (world.old.pem() + &world.renewed, true),
    ] {
        let policy = world.policy(&domain, "allow: ['spiffe:td/a']\n");
        let setup = Setup {
            policy: Some(PolicyWatch::fixed(policy)),
            ..Setup::default()
        };
        let (running, mut volume) = world.follow(setup).await;
        let mut echo = world.client(&leaf).echo(running.address).await;
        let endless = echo.server_stream(slowly(0)).await.expect("a stream");
        let mut endless = endless.into_inner();
        endless.next().await.expect("an answer").expect("no error");
        let before = running.server.connections().remove(0);
        volume.swap(&world.files(&world.renewed));
        moved(&running, &before).await;
        if stays {
            call(&mut echo).await.expect("the connection goes on");
            endless.next().await.expect("an answer").expect("no error");
            drop(endless);
        } else {
            assert!(end_of(endless).await.is_some());
            let status = call(&mut echo).await.expect_err("refused");
            assert_eq!(status.code(), Code::PermissionDenied);
        }
        let withdrawn = running.server.stats().withdrawn;
        assert_eq!(withdrawn, u64::from(!stays));
        running.stop().await;
        std::fs::remove_dir_all(world.dir.path().join("tls")).expect("a removal");
    }
}

/// V17, V14. Likewise for a rule: the running call that it permitted ends, the connection and other calls go on.
#[tokio::test]
async fn a_call_that_a_rule_permits_by_one_path_only_ends_with_that_path() {
    let world = World::new();
    let leaf = world.old.leaf("a").uri("spiffe://td/a").client().issue();
    let rules = "methods:\n\
         \x20 - {match: /vidimus.testkit.v1.Echo/ServerStream, allow: ['spiffe:td/a']}\n\
         \x20 - {match: /vidimus.testkit.v1.Echo/Unary, allow: ['*']}\n";
    let setup = Setup {
        policy: Some(PolicyWatch::fixed(world.policy(&world.old.pem(), rules))),
        ..Setup::default()
    };
    let (running, mut volume) = world.follow(setup).await;
    let mut echo = world.client(&leaf).echo(running.address).await;
    let endless = echo.server_stream(slowly(0)).await.expect("a stream");
    call(&mut echo).await.expect("a call");
    volume.swap(&world.files(&world.renewed));
    let status = end_of(endless.into_inner()).await.expect("an error");
    assert_eq!(status.code(), Code::PermissionDenied, "{status:?}");
    call(&mut echo).await.expect("the connection goes on");
    let stats = running.server.stats();
    assert_eq!((stats.ended_by_policy, stats.accepted), (1, 1));
    running.stop().await;
}

/// V14. What has expired is ended by its own rule, or not at all. A root that is renewed only then leaves such peers where
/// they are: the chain holds along it but for their own dates.
#[tokio::test]
async fn a_root_renewed_after_its_peers_expired_does_not_end_them() {
    const HOUR: Duration = Duration::from_secs(3600);
    let world = World::new();
    let real = Clock::system();
    // The server's clock begins two hours behind, so that the renewed root is younger than the leaf's end.
    let (start, end) = (real.now() - 3 * HOUR, real.now() - HOUR);
    let leaf = world.old.leaf("client").dns("client.test").client();
    let leaf = leaf.validity(Validity::Between(start, end)).issue();
    let ahead = std::sync::Arc::<std::sync::atomic::AtomicU64>::default();
    let now = std::sync::Arc::clone(&ahead);
    let setup = Setup {
        limits: Limits {
            expired_peers: ExpiredPeers::Ignore,
            ..Limits::default()
        },
        clock: Clock::from_fn(move || -> SystemTime {
            let ahead = Duration::from_secs(now.load(Ordering::Relaxed));
            real.now() - 2 * HOUR + ahead
        }),
        ..Setup::default()
    };
    let (running, mut volume) = world.follow(setup).await;
    let mut echo = world.client(&leaf).echo(running.address).await;
    call(&mut echo).await.expect("a call");
    let before = running.server.connections().remove(0);
    ahead.store(3 * 3600, Ordering::Relaxed);

    volume.swap(&world.files(&world.renewed));
    moved(&running, &before).await;
    call(&mut echo).await.expect("the connection goes on");
    let stats = running.server.stats();
    assert_eq!((stats.withdrawn, stats.accepted), (0, 1));

    volume.swap(&world.files(&world.server.root.pem()));
    wait_until_async(DEADLINE, || async {
        match running.server.stats().withdrawn {
            1 => Ok(()),
            other => Err(other),
        }
    })
    .await;
    running.stop().await;
}

fn slowly(count: u32) -> vidimus_proto::testkit::v1::EchoRequest {
    vidimus_proto::testkit::v1::EchoRequest {
        delay_milliseconds: 5,
        ..counted("stream", count)
    }
}

/// Another certificate for the root's name and key, made by openssl.
pub(crate) fn renew(root: &Authority, dir: &std::path::Path) -> String {
    let (key, certificate) = (dir.join("root.key"), dir.join("root.crt"));
    #[expect(
        clippy::disallowed_methods,
        reason = "a test's files need not survive a crash"
    )]
    std::fs::write(&key, root.key_pem()).expect("a key");
    let (key, certificate) = (key.display().to_string(), certificate.display().to_string());
    vidimus_testkit::openssl([
        "req",
        "-x509",
        "-new",
        "-key",
        &key,
        "-utf8",
        "-subj",
        "/CN=root",
        "-days",
        "30",
        "-addext",
        "keyUsage=critical,keyCertSign",
        "-out",
        &certificate,
    ])
    .success();
    std::fs::read_to_string(certificate).expect("a certificate")
}

/// The root's name and key under another root.
fn cross_signed(root: &Authority, by: &Authority) -> String {
    use rcgen::{
        BasicConstraints, CertificateParams, DistinguishedName, DnType, IsCa, KeyPair,
        KeyUsagePurpose,
    };
    let key = KeyPair::from_pem(&root.key_pem()).expect("a key");
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, "root");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    vidimus_x509::pem::encode("CERTIFICATE", &by.sign(params, &key))
}
