//! What a recorder is told, read from the page that a Prometheus exporter makes of it.

use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusRecorder};
use vidimus_proto::testkit::v1::echo_client::EchoClient;
use vidimus_testkit::{Authority, Pki, wait_until_async};
use vidimus_tls::channel::{Channel, ClientTls};
use vidimus_tls::clock::Clock;
use vidimus_tls::identity::Fingerprint;
use vidimus_tls::material::{Identity, Material, RevocationOptions, Root, Trust, Usage};
use vidimus_tls::metrics::{ChannelMetrics, MaterialMetrics, ServerMetrics};
use vidimus_tls::watch::MaterialWatch;

use crate::support::{Client, DEADLINE, Running, SERVER, Setup, World, call, request, soon};

/// A recorder of this test's own.
struct Page(PrometheusRecorder);

impl Page {
    fn new() -> Self {
        Self(PrometheusBuilder::new().build_recorder())
    }

    fn record<T>(&self, work: impl FnOnce() -> T) -> T {
        metrics::with_local_recorder(&self.0, work)
    }

    /// The value of the one metric whose line has this name and all of these labels.
    #[track_caller]
    fn value(&self, name: &str, labels: &[&str]) -> f64 {
        let page = self.0.handle().render();
        let of_name = |line: &&str| line.starts_with(&format!("{name}{{"));
        let has_all = |line: &&str| labels.iter().all(|label| line.contains(label));
        let lines: Vec<&str> = page.lines().filter(of_name).filter(has_all).collect();
        let [line] = lines.as_slice() else {
            panic!("not one {name} {labels:?}:\n{page}")
        };
        let value = line.rsplit_once(' ').expect("a value").1;
        value.parse().expect("a number")
    }
}

fn trust(roots: &[&Authority]) -> Trust {
    let pem: String = roots.iter().map(|root| root.pem()).collect();
    Trust::from_pem(pem.as_bytes(), Clock::system().now()).expect("good roots")
}

fn client_material(pki: &Pki, roots: &[&Authority]) -> Material {
    let leaf = pki.leaf("client").dns("client.test").client().issue();
    let (chain, key) = (leaf.chain_pem(), leaf.key_pem());
    let now = Clock::system().now();
    let identity = Identity::from_pem(chain.as_bytes(), key.as_bytes(), Usage::Client, now);
    Material::of(identity.expect("a good identity"), trust(roots))
}

/// A clock that stands still: what is counted from it is exact.
fn still() -> Clock {
    let now = Clock::system().now();
    Clock::from_fn(move || now)
}

fn anchor(root: &[u8]) -> String {
    format!("anchor=\"{}\"", Fingerprint::of(root))
}

/// V18. What a server counts, and how long its material lasts.
#[tokio::test]
async fn a_servers_counters_and_expiries_are_copied() {
    let world = World::new();
    let clock = still();
    let setup = Setup {
        clock: clock.clone(),
        ..Setup::default()
    };
    let (running, watch) = Running::follow(world.dir.path(), setup).await;
    let mut echo = world.client().echo(running.address).await;
    call(&mut echo).await.expect("a call");
    let stranger = Pki::new("Stranger").leaf("client").client().issue();
    let refused = Client::new(&world.pki.root).with(&stranger);
    let _alert = refused.refusal(running.address).await;
    crate::support::put(world.dir.path().join("ca.crt"), "no certificate");
    until("no fault", async || watch.status().failures == 1).await;
    let renewed = world.pki.leaf("server").dns(SERVER).server().issue();
    renewed.write_dir(world.dir.path(), &[&world.pki.root]);
    soon("the renewal", watch.wait_for_generation(2)).await;

    let page = Page::new();
    page.record(|| ServerMetrics::new(running.server.clone(), "test").record());
    let own = "listener=\"test\"";
    let count = |name: &str, labels: &[&str]| {
        let all = [labels, &[own]].concat();
        page.value(&format!("vidimus_tls_{name}"), &all)
    };
    assert_eq!(count("sockets_accepted_total", &[]), 2.0);
    assert_eq!(count("handshakes_total", &["result=\"ok\""]), 1.0);
    let failed = ["result=\"failed\"", "reason=\"unknown_issuer\""];
    assert_eq!(count("handshakes_total", &failed), 1.0);
    assert_eq!(count("calls_total", &["result=\"passed\""]), 1.0);
    assert_eq!(count("material_generation", &[]), 2.0);
    assert_eq!(count("reloads_total", &["result=\"ok\""]), 1.0);
    let faults = count("reloads_total", &["result=\"refused\""]);
    assert!(faults >= 1.0, "{faults}");
    assert_eq!(count("file_events", &[]), 1.0);
    let root = anchor(world.pki.root.der());
    let older = [root.as_str(), "generation=\"older\""];
    assert_eq!(count("connections", &older), 1.0);

    let status = watch.status();
    let left = |until: std::time::SystemTime| {
        let left = until.duration_since(clock.now()).expect("still good");
        left.as_secs_f64()
    };
    let root_ends = status.roots.first().map(Root::not_after).expect("a root");
    assert_eq!(count("root_expiry_seconds", &[&root]), left(root_ends));
    assert_eq!(
        count("leaf_expiry_seconds", &[]),
        left(status.leaf_not_after)
    );
    running.stop().await;
}

/// A root that left has no expiry any more, least of all this moment: zero would ring the alarm for ever.
#[tokio::test]
async fn what_is_gone_has_no_expiry() {
    let (stays, leaves) = (Pki::new("Stays"), Pki::new("Leaves"));
    let material = client_material(&stays, &[&stays.root, &leaves.root]);
    let (watch, mut publisher) = MaterialWatch::from_memory(material);
    let page = Page::new();
    let metrics = page.record(|| MaterialMetrics::new(watch.clone(), "client").clock(still()));
    page.record(|| metrics.record());
    let expiry =
        |root: &Authority| page.value("vidimus_tls_root_expiry_seconds", &[&anchor(root.der())]);
    assert!(expiry(&leaves.root) > 0.0 && expiry(&stays.root) > 0.0);

    publisher.replace_trust(trust(&[&stays.root]));
    page.record(|| metrics.record());
    assert!(expiry(&leaves.root).is_nan(), "{}", expiry(&leaves.root));
    assert!(expiry(&stays.root) > 0.0);
    assert_eq!(page.value("vidimus_tls_material_generation", &[]), 2.0);
    // Nor is there a file whose changes nobody would report.
    assert!(!page.0.handle().render().contains("file_events{"));
}

/// Two CAs of one name are the usual rotation: the list that ends first is the one to know of, in either order.
#[tokio::test]
async fn of_two_lists_of_one_name_the_first_to_end_is_shown() {
    let (one, two) = (Authority::root("root"), Authority::root("root"));
    let other = Authority::root("other");
    let lists = [
        one.revocation_list(1).pem(),
        two.revocation_list(2).ended().pem(),
        other.revocation_list(3).pem(),
    ];
    let orders = [
        lists.concat(),
        [lists[1].as_str(), &lists[0], &lists[2]].concat(),
    ];
    for lists in orders {
        let roots = trust(&[&one, &two, &other]);
        let listed = roots.with_revocation(
            lists.as_bytes(),
            RevocationOptions::default(),
            &[],
            Clock::system().now(),
        );
        let (watch, mut publisher) =
            MaterialWatch::from_memory(client_material(&Pki::new("Example"), &[&one]));
        publisher.replace_trust(listed.expect("good lists"));
        let page = Page::new();
        page.record(|| MaterialMetrics::new(watch, "client").record());
        let expiry = |name: &str| {
            let label = format!("issuer=\"CN={name}\"");
            page.value("vidimus_tls_crl_expiry_seconds", &[&label])
        };
        assert!(expiry("root") < 0.0, "{}", expiry("root"));
        assert!(expiry("other") > 0.0, "{}", expiry("other"));
    }
}

/// V18. A program that only calls has metrics too.
#[tokio::test]
async fn a_channels_counters_are_copied() {
    let world = World::new();
    let (running, _watch) = Running::follow(world.dir.path(), Setup::default()).await;
    let material = client_material(&world.pki, &[&world.pki.root]);
    let (watch, mut publisher) = MaterialWatch::from_memory(material);
    let target = running.address.to_string();
    let builder = Channel::builder(&target, SERVER, ClientTls::Watch(watch));
    let channel = builder.build().expect("a channel");
    let mut client = EchoClient::new(channel.clone());
    soon("a call", client.unary(request("hello")))
        .await
        .expect("a call");

    let page = Page::new();
    let metrics = page.record(|| ChannelMetrics::new(channel.clone(), "upstream"));
    let count = |name: &str, labels: &[&str]| {
        page.record(|| metrics.record());
        let all = [labels, &["channel=\"upstream\""]].concat();
        page.value(&format!("vidimus_tls_channel_{name}"), &all)
    };
    let root = anchor(world.pki.root.der());
    let current = [root.as_str(), "state=\"current\""];
    assert_eq!(count("ready", &[]), 1.0);
    assert_eq!(count("connections", &current), 1.0);
    assert_eq!(count("calls_total", &[]), 1.0);
    assert_eq!(count("resends_total", &[]), 0.0);
    assert_eq!(count("connects_total", &["result=\"ok\""]), 1.0);
    let withdrawn = ["cause=\"withdrawn\""];
    assert_eq!(count("connections_ended_total", &withdrawn), 0.0);

    let other = Pki::new("Other");
    publisher.replace_trust(trust(&[&other.root]));
    until("still connected", async || {
        let counters = channel.status().counters;
        (counters.withdrawn, counters.connect_failures) == (1, 1)
    })
    .await;
    until("still open", async || {
        channel.status().connections.is_empty()
    })
    .await;
    assert_eq!(count("ready", &[]), 0.0);
    assert_eq!(count("connections", &current), 0.0);
    assert_eq!(count("connections_ended_total", &withdrawn), 1.0);
    assert_eq!(count("connects_total", &["result=\"failed\""]), 1.0);
    running.stop().await;
}

async fn until(what: &str, holds: impl AsyncFn() -> bool) {
    wait_until_async(DEADLINE, || async {
        if holds().await { Ok(()) } else { Err(what) }
    })
    .await;
}
