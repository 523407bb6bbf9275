//! Policy files that change while the server runs.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use tokio_stream::StreamExt;
use tokio_util::sync::CancellationToken;
use tonic::Code;
use vidimus_testkit::kubelet::Volume;
use vidimus_testkit::{Pki, wait_until_async};
use vidimus_tls::events::{Event, Events, Unit};
use vidimus_tls::policy::{PolicyError, PolicyWatch};
use vidimus_tls::watch::WatchOptions;

use crate::policy::counted;
use crate::support::{
    Client, DEADLINE, LogCapture, Running, Setup, World, by_events, call, put, quick, soon,
};

/// A server under a policy file that is followed.
struct Followed {
    running: Running,
    policy: PolicyWatch,
    file: PathBuf,
}

impl Followed {
    async fn start(world: &World, file: &Path, options: WatchOptions) -> Self {
        let (policy, driver) = PolicyWatch::start(file, options).await.expect("a policy");
        let setup = Setup {
            policy: Some(policy.clone()),
            ..Setup::default()
        };
        let (mut running, _watch) = Running::follow(world.dir.path(), setup).await;
        running.drive(driver);
        Self {
            running,
            policy,
            file: file.to_path_buf(),
        }
    }

    async fn write(world: &World, text: &str) -> Self {
        let file = world.dir.path().join("policy.yaml");
        put(&file, text);
        Self::start(world, &file, quick()).await
    }

    async fn change(&self, text: &str, generation: u64) {
        put(&self.file, text);
        soon("the change", self.policy.wait_for_generation(generation)).await;
    }

    /// Waits until a change has been refused for `part`.
    async fn refused(&self, part: &str) {
        wait_until_async(DEADLINE, || async {
            match self.policy.status().last_error {
                Some(error) if error.contains(part) => Ok(()),
                other => Err(format!("{other:?}")),
            }
        })
        .await;
    }
}

fn client(pki: &Pki, name: &str) -> Client {
    Client::new(&pki.root).with(&pki.leaf(name).dns(name).client().issue())
}

/// V17, V14. Loosening and tightening need no restart; a peer that falls off the list loses its connection, new calls at
/// once and the rest soon, and others never notice.
#[tokio::test]
async fn a_peer_that_falls_off_the_list_loses_its_connection() {
    let world = World::new();
    let followed = Followed::write(&world, "allow: [dns:a.test]\n").await;
    let address = followed.running.address;
    let mut a = client(&world.pki, "a.test").echo(address).await;
    let mut b = client(&world.pki, "b.test").echo(address).await;
    call(&mut a).await.expect("listed");
    call(&mut b).await.expect_err("not listed");

    followed
        .change("allow: [dns:a.test, dns:b.test]\n", 2)
        .await;
    call(&mut b)
        .await
        .expect("listed now, on the same connection");
    let busy = vidimus_proto::testkit::v1::EchoRequest {
        delay_milliseconds: 5,
        ..counted("stream", 0)
    };
    let mut cut = b
        .server_stream(busy.clone())
        .await
        .expect("a stream")
        .into_inner();
    let mut kept = a.server_stream(busy).await.expect("a stream").into_inner();
    cut.next().await.expect("an answer").expect("no error");

    followed.change("allow: [dns:a.test]\n", 3).await;
    wait_until_async(DEADLINE, || {
        let mut b = b.clone();
        async move {
            let status = call(&mut b).await.expect_err("no longer listed");
            match status.code() {
                Code::PermissionDenied => Ok(()),
                // The connection went away under the call; the next one gets an answer on another.
                _ => Err(status),
            }
        }
    })
    .await;
    soon("the stream's end", async {
        while let Some(Ok(_)) = cut.next().await {}
    })
    .await;
    assert_eq!(followed.running.server.stats().withdrawn, 1);
    kept.next().await.expect("an answer").expect("goes on");
    call(&mut a).await.expect("and so do calls");
    drop(kept);
    followed.running.stop().await;
}

/// V17. What is no policy any more keeps the last one, and the reason is said once.
#[tokio::test]
async fn a_file_that_goes_bad_keeps_the_last_policy() {
    let world = World::new();
    let log = LogCapture::start();
    let good = "allow: [dns:a.test]\nmethods: [{match: /, allow: ['*']}]\n";
    let followed = Followed::write(&world, good).await;
    let file = followed.file.clone();
    let still_in_force = || async {
        let address = followed.running.address;
        let mut a = client(&world.pki, "a.test").echo(address).await;
        call(&mut a).await.expect("listed");
        let mut b = client(&world.pki, "b.test").echo(address).await;
        let status = call(&mut b).await.expect_err("not listed");
        assert_eq!(status.code(), Code::PermissionDenied);
    };
    let cases = [
        ("", "neither allow nor methods"),
        ("allow: []\n", "found no entries in allow"),
        ("allow: [dns:a.test]\n", "found no entries in methods"),
        ("allow: ['dns:']\n", "dns:NAME"),
        ("allow: [\n", "accepted: YAML with mode"),
    ];
    for (failures, (text, reason)) in (1..).zip(cases) {
        put(&file, text);
        followed.refused(reason).await;
        let status = followed.policy.status();
        assert_eq!(
            (status.generation, status.failures),
            (1, failures),
            "{text:?}"
        );
        still_in_force().await;
    }
    std::fs::remove_file(&file).expect("a removal");
    followed.refused("No such file").await;
    still_in_force().await;
    let looks = log.lines_with(&["the policy on disk is not usable"]).len();
    assert_eq!(
        looks,
        cases.len() + 1,
        "once for each reason: {}",
        log.text()
    );

    followed.change(good, 2).await;
    assert_eq!(followed.policy.status().last_error, None);
    still_in_force().await;
    followed.running.stop().await;
}

/// V17. A list is open only if it began so: closed once, it stays closed when it is emptied.
#[tokio::test]
async fn an_open_policy_stays_open_and_a_closed_one_closed() {
    let world = World::new();
    let log = LogCapture::start();
    let followed = Followed::write(&world, "allow: []\n").await;
    assert_eq!(
        log.lines_with(&["WARN", "every verified peer may call"])
            .len(),
        1
    );
    let address = followed.running.address;
    let mut b = client(&world.pki, "b.test").echo(address).await;
    call(&mut b).await.expect("open");
    followed.change("# a comment\nallow: []\n", 2).await;
    call(&mut b).await.expect("still open");
    followed.change("allow: [dns:a.test]\n", 3).await;
    put(&followed.file, "allow: []\n");
    followed.refused("found no entries in allow").await;
    let mut b = client(&world.pki, "b.test").echo(address).await;
    assert_eq!(
        call(&mut b).await.expect_err("closed").code(),
        Code::PermissionDenied
    );
    followed.running.stop().await;
}

/// V17. On a UNIX socket a list that names no users admits them all: one that loses its users would open the socket.
#[tokio::test]
async fn a_list_that_loses_its_users_is_not_taken_into_use() {
    let world = World::new();
    let followed = Followed::write(&world, "allow: [uid:1000, dns:a.test]\n").await;
    put(&followed.file, "allow: [dns:a.test]\n");
    followed
        .refused("found no entries in allow that name users")
        .await;
    assert_eq!(followed.policy.generation(), 1);
    followed.change("allow: [gid:1000]\n", 2).await;
    followed.running.stop().await;
}

/// V17, V10. A mounted `ConfigMap` is swapped whole, bundles included.
#[tokio::test]
async fn a_projected_volume_is_followed_with_its_bundles() {
    let world = World::new();
    let other = Pki::new("Other");
    let files = |roots: &str| {
        let text = "trust_domains: {td: roots.pem}\nallow: ['spiffe:td/a']\n";
        [
            ("policy.yaml", text.to_owned()),
            ("roots.pem", roots.to_owned()),
        ]
    };
    let folder = world.dir.path().join("policy");
    let mut volume = Volume::create(&folder, &files(&other.root.pem()));
    let file = folder.join("policy.yaml");
    let events = Events::bounded(16);
    let mut heard = events.subscribe();
    let options = WatchOptions { events, ..quick() };
    let followed = Followed::start(&world, &file, options).await;
    let leaf = world.pki.leaf("a").uri("spiffe://td/a").client().issue();
    let a = Client::new(&world.pki.root).with(&leaf);
    let mut echo = a.echo(followed.running.address).await;
    call(&mut echo).await.expect_err("a root of another domain");
    volume.swap(&files(&world.pki.root.pem()));
    soon("the swap", followed.policy.wait_for_generation(2)).await;
    // The first policy did not admit the first connection, which the swap may have ended.
    let mut echo = a.echo(followed.running.address).await;
    call(&mut echo)
        .await
        .expect("a root of the ID's own domain");
    let event = soon("an event", heard.next())
        .await
        .expect("an event")
        .event;
    let expected = Event::Reloaded {
        unit: Unit::Policy,
        generation: 2,
    };
    assert_eq!(event, expected);
    followed.running.stop().await;
}

/// V17. A bundle beside a plain policy file is followed as well, in a folder of its own.
#[tokio::test]
async fn a_bundle_in_another_folder_is_followed() {
    let world = World::new();
    let other = Pki::new("Other");
    let bundles = tempfile::tempdir().expect("a folder");
    let bundle = bundles.path().join("roots.pem");
    put(&bundle, world.pki.root.pem());
    let text = format!(
        "trust_domains: {{td: {}}}\nallow: ['spiffe:td/a']\n",
        bundle.display()
    );
    let followed = Followed::write(&world, &text).await;
    put(&bundle, other.root.pem());
    soon("the change", followed.policy.wait_for_generation(2)).await;
    put(&bundle, "nothing");
    followed.refused("no CERTIFICATE").await;
    assert_eq!(followed.policy.generation(), 2);
    followed.running.stop().await;
}

/// V17. A link that comes to lead elsewhere is followed there, also where it finds the same text at first.
#[tokio::test]
async fn a_folder_with_the_same_policy_is_watched_as_well() {
    let dir = tempfile::tempdir().expect("a folder");
    let at = |name: &str| dir.path().join(name);
    let release = |name: &str| {
        std::fs::create_dir_all(at(name)).expect("a folder");
        put(at(name).join("policy.yaml"), "allow: [dns:a.test]\n");
        symlink(name, at("next")).expect("a link");
        std::fs::rename(at("next"), at("current")).expect("a renamed link");
    };
    release("release-1");
    let started = PolicyWatch::start(at("current/policy.yaml"), by_events()).await;
    let (policy, driver) = started.expect("a policy");
    let stop = CancellationToken::new();
    let change = async {
        // The first look needs no reason.
        looks(&policy, 2, || ()).await;
        let before = policy.status().looks;
        release("release-2");
        looks(&policy, before + 1, || ()).await;
        put(at("release-2/policy.yaml"), "allow: [dns:b.test]\n");
        soon("the change", policy.wait_for_generation(2)).await;
        assert_eq!(policy.status().events, Some(true));
        stop.cancel();
    };
    tokio::join!(driver.run(stop.clone()), change);
}

/// V17. In a folder where something happens all the time, such as `/tmp`, there is a pause after each look.
#[tokio::test]
async fn a_busy_folder_is_not_looked_at_all_the_time() {
    let dir = tempfile::tempdir().expect("a folder");
    let file = dir.path().join("policy.yaml");
    put(&file, "allow: [dns:a.test]\n");
    let started = PolicyWatch::start(&file, by_events()).await;
    let (policy, driver) = started.expect("a policy");
    let stop = CancellationToken::new();
    let change = async {
        let from = Instant::now();
        looks(&policy, 6, || put(dir.path().join("other"), "something")).await;
        // Between six looks are five pauses: however slow the machine is, it is never less.
        let took = from.elapsed();
        assert!(took >= Duration::from_millis(5 * 50), "{took:?}");
        stop.cancel();
    };
    tokio::join!(driver.run(stop.clone()), change);
}

/// Waits until the file has been looked at that often, and does `meanwhile` again and again.
async fn looks(policy: &PolicyWatch, count: u64, meanwhile: impl Fn()) {
    wait_until_async(DEADLINE, || async {
        meanwhile();
        match policy.status().looks {
            looks if looks >= count => Ok(()),
            looks => Err(looks),
        }
    })
    .await;
}

#[tokio::test]
async fn a_process_starts_with_a_good_policy_or_not_at_all() {
    let dir = tempfile::tempdir().expect("a folder");
    let file = dir.path().join("policy.yaml");
    let error = PolicyWatch::start(&file, quick())
        .await
        .expect_err("no file");
    assert!(matches!(error, PolicyError::Read { .. }), "{error}");
    put(&file, "allow: [ip:x]\n");
    let error = PolicyWatch::start(&file, quick())
        .await
        .expect_err("a bad file");
    assert!(error.to_string().contains("ip:ADDRESS"), "{error}");
    put(&file, "allow: [ip:192.0.2.1]\n");
    PolicyWatch::start(&file, quick())
        .await
        .expect("a good file");
}
