//! Where material comes from (V10), and what is said about it without being refused.

use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use vidimus_testkit::{Credential, Pki, wait_until_async};
use vidimus_tls::events::{Event, Events};
use vidimus_tls::material::{MaterialBytes, MaterialFiles, MaterialSource, Usage};
use vidimus_tls::watch::{MaterialWatch, WatchOptions};

use crate::support::{DEADLINE, LogCapture, World, by_events, clock, next_event, put, quick, soon};

/// A certificate as certbot keeps it: `live/` has links to the newest of the numbered files in `archive/`.
struct Certbot<'a>(&'a Path);

impl Certbot<'_> {
    fn renew(&self, number: u32, leaf: &Credential) {
        let [archive, live] = ["archive", "live"].map(|name| self.0.join(name).join("server.test"));
        for folder in [&archive, &live] {
            std::fs::create_dir_all(folder).expect("a folder");
        }
        let contents = [
            ("privkey", leaf.key_pem().to_owned()),
            ("fullchain", leaf.chain_pem()),
        ];
        for (name, content) in &contents {
            put(archive.join(format!("{name}{number}.pem")), content);
        }
        // certbot takes the old link away and makes the new one, key first.
        for (name, _) in &contents {
            let link = live.join(format!("{name}.pem"));
            let _none_the_first_time = std::fs::remove_file(&link);
            let target = format!("../../archive/server.test/{name}{number}.pem");
            symlink(target, link).expect("a link");
        }
    }

    fn files(&self, ca: &Path) -> MaterialFiles {
        let live = self.0.join("live/server.test");
        MaterialFiles {
            certificate: live.join("fullchain.pem"),
            key: live.join("privkey.pem"),
            ca: ca.to_path_buf(),
            crl: None,
        }
    }
}

/// V10. Files with other names in other places, each a link that is replaced; the CA is elsewhere.
#[tokio::test]
async fn the_links_of_certbot_are_followed() {
    let world = World::new();
    let letsencrypt = world.dir.path().join("letsencrypt");
    let certbot = Certbot(&letsencrypt);
    certbot.renew(1, &world.server_leaf());
    let options = WatchOptions {
        // Events alone must do it.
        poll: Duration::from_secs(3600),
        ..quick()
    };
    let files = certbot.files(&world.dir.path().join("ca.crt"));
    let started = MaterialWatch::start(files, Usage::Server, options).await;
    let (watch, driver) = started.expect("good material");
    let stop = CancellationToken::new();
    let renew = async {
        for number in 2..5_u32 {
            let leaf = world.server_leaf();
            certbot.renew(number, &leaf);
            let material = soon("the generation", watch.wait_for_generation(number.into())).await;
            assert_eq!(material.identity().chain()[0].as_ref(), leaf.leaf_der());
        }
        assert_eq!(watch.status().failures, 0, "{:?}", watch.status());
        stop.cancel();
    };
    tokio::join!(driver.run(stop.clone()), renew);
}

/// V10. Links that lead out of the folder, and a folder that is a link itself: each step of the way is watched.
#[tokio::test]
async fn every_link_on_the_way_is_followed() {
    let world = World::new();
    let at = |name: &str| world.dir.path().join(name);
    let root = &world.pki.root;
    // The key and certificate through two folders and `..data`, the roots in a release that `current` points to.
    let mut volume = world
        .server_leaf()
        .write_volume(&at("mounted/secret"), &[root]);
    std::fs::create_dir_all(at("app")).expect("a folder");
    symlink(at("mounted"), at("mnt")).expect("a link");
    for name in ["tls.crt", "tls.key"] {
        symlink(at("mnt/secret").join(name), at("app").join(name)).expect("a link");
    }
    let release = |name: &str, roots: String| {
        std::fs::create_dir_all(at(name)).expect("a folder");
        put(at(name).join("ca.crt"), roots);
    };
    let point_to = |name: &str| {
        symlink(name, at("next")).expect("a link");
        std::fs::rename(at("next"), at("current")).expect("a renamed link");
    };
    release("release-1", root.pem());
    point_to("release-1");
    let files = MaterialFiles {
        certificate: at("app/tls.crt"),
        key: at("app/tls.key"),
        ca: at("current/ca.crt"),
        crl: None,
    };
    let (watch, driver) = MaterialWatch::start(files, Usage::Server, by_events())
        .await
        .expect("good material");
    let stop = CancellationToken::new();
    let change = async {
        let leaf = world.server_leaf();
        volume.swap(&leaf.files(&[root]));
        let material = soon("the volume", watch.wait_for_generation(2)).await;
        assert_eq!(material.identity().chain()[0].as_ref(), leaf.leaf_der());
        let second = Pki::new("Second");
        release("release-2", format!("{}{}", root.pem(), second.root.pem()));
        point_to("release-2");
        let material = soon("the release", watch.wait_for_generation(3)).await;
        assert_eq!(material.trust().roots().len(), 2);
        // What the links lead to now is watched, too.
        put(at("release-2/ca.crt"), root.pem());
        let material = soon("the file", watch.wait_for_generation(4)).await;
        assert_eq!(material.trust().roots().len(), 1);
        // A link that takes the place of another.
        let leaf = world.server_leaf();
        leaf.write_dir(&at("elsewhere"), &[root]);
        std::fs::remove_file(at("mnt")).expect("removed");
        std::fs::create_dir_all(at("other")).expect("a folder");
        std::fs::rename(at("elsewhere"), at("other/secret")).expect("moved");
        symlink(at("other"), at("mnt")).expect("a link");
        let material = soon("the link", watch.wait_for_generation(5)).await;
        assert_eq!(material.identity().chain()[0].as_ref(), leaf.leaf_der());
        assert_eq!(watch.status().events, Some(true));
        stop.cancel();
    };
    tokio::join!(driver.run(stop.clone()), change);
}

/// V10. A function's bytes go through the same checks, when they are asked for and at every poll.
#[tokio::test]
async fn material_comes_from_a_function() {
    let pki = Pki::new("Example");
    let list = pki.issuing.revocation_list(1).der();
    let bytes = |leaf: &Credential| MaterialBytes {
        certificate: leaf.chain_pem().into(),
        key: leaf.key_pem().into(),
        ca: pki.root.pem().into(),
        crl: Some(list.clone()),
    };
    let leaf = || pki.leaf("server").dns("server.test").server().issue();
    let now: Arc<Mutex<Result<MaterialBytes, &str>>> = Arc::new(Mutex::new(Ok(bytes(&leaf()))));
    let asked = Arc::clone(&now);
    let source = MaterialSource::function(move || asked.lock().expect("the bytes").clone());
    let options = WatchOptions {
        poll: Duration::from_secs(3600),
        ..quick()
    };
    let started = MaterialWatch::start(source, Usage::Server, options).await;
    let (watch, driver) = started.expect("good material");
    assert_eq!(watch.status().revocation_lists.len(), 1);
    assert_eq!(watch.status().events, None);
    let give = |given| *now.lock().expect("the bytes") = given;
    let failure = |part: &'static str| {
        let watch = watch.clone();
        async move {
            wait_until_async(DEADLINE, || async {
                let error = watch.status().identity.last_error.unwrap_or_default();
                if error.contains(part) {
                    Ok(())
                } else {
                    Err(error)
                }
            })
            .await;
        }
    };
    let stop = CancellationToken::new();
    let change = async {
        let renewed = leaf();
        give(Ok(bytes(&renewed)));
        watch.look();
        let material = soon("the generation", watch.wait_for_generation(2)).await;
        assert_eq!(material.identity().chain()[0].as_ref(), renewed.leaf_der());
        give(Err("the vault is sealed"));
        watch.look();
        failure("the vault is sealed").await;
        let mut mixed = bytes(&renewed);
        mixed.key = leaf().key_pem().into();
        give(Ok(mixed));
        watch.look();
        failure("does not match").await;
        assert_eq!(watch.status().generation, 2);
        give(Ok(bytes(&leaf())));
        watch.look();
        soon("the generation", watch.wait_for_generation(3)).await;
        stop.cancel();
    };
    tokio::join!(driver.run(stop.clone()), change);
    assert!(!format!("{:?}", now.lock()).contains("PRIVATE"));
}

/// V10. A certificate that isn't under the roots beside it is used, with a warning.
#[tokio::test]
async fn a_leaf_under_other_roots_warns_and_is_used() {
    let (world, other) = (World::new(), Pki::new("Other"));
    let log = LogCapture::start();
    let warned = || {
        log.lines_with(&["WARN", "would refuse the certificate in use"])
            .len()
    };
    let files = MaterialFiles::in_dir(world.dir.path());
    let started = MaterialWatch::start(files, Usage::Server, quick()).await;
    let (watch, driver) = started.expect("good material");
    assert_eq!(warned(), 0, "{}", log.text());
    let stop = CancellationToken::new();
    let change = async {
        put(world.dir.path().join("ca.crt"), other.root.pem());
        let material = soon("the generation", watch.wait_for_generation(2)).await;
        assert_eq!(material.trust().roots()[0].subject(), "CN=Other root");
        wait_until_async(DEADLINE, || async {
            if warned() == 1 { Ok(()) } else { Err(warned()) }
        })
        .await;
        assert_eq!(watch.status().failures, 0);
        stop.cancel();
    };
    tokio::join!(driver.run(stop.clone()), change);
}

/// V10. The folder can't be watched: one warning, a flag for metrics, and the poll goes on.
#[tokio::test]
async fn when_only_the_poll_is_left_that_is_said_once() {
    let world = World::new();
    let log = LogCapture::start();
    let dir = world.dir.path().join("tls");
    world.server_leaf().write_dir(&dir, &[&world.pki.root]);
    let options = WatchOptions {
        poll: Duration::from_millis(20),
        ..quick()
    };
    let files = MaterialFiles::in_dir(&dir);
    let started = MaterialWatch::start(files, Usage::Server, options).await;
    let (watch, driver) = started.expect("good material");
    let stop = CancellationToken::new();
    let events_are = async |expected: bool| {
        wait_until_async(DEADLINE, || async {
            if watch.status().events == Some(expected) {
                Ok(())
            } else {
                Err("not yet")
            }
        })
        .await;
    };
    let change = async {
        events_are(true).await;
        std::fs::rename(&dir, world.dir.path().join("away")).expect("moved away");
        events_are(false).await;
        let looks = watch.status().looks;
        wait_until_async(DEADLINE, || async {
            if watch.status().looks > looks + 5 {
                Ok(())
            } else {
                Err("no poll")
            }
        })
        .await;
        let leaf = world.server_leaf();
        leaf.write_dir(&dir, &[&world.pki.root]);
        soon("the generation", watch.wait_for_generation(2)).await;
        events_are(true).await;
        stop.cancel();
    };
    tokio::join!(driver.run(stop.clone()), change);
    let warned = log.lines_with(&["WARN", "cannot watch a folder"]);
    assert_eq!(warned.len(), 1, "{}", log.text());
}

/// V10, V18. What ends with time alone is an event, each once: first the leaf's and the list's nearing end.
#[tokio::test]
async fn what_ends_with_time_is_said_once() {
    use vidimus_testkit::pki::{AuthoritySpec, Validity};
    const HOUR: u64 = 3600;
    let world = World::new();
    let short =
        AuthoritySpec::new("short").validity(Validity::ends_in(Duration::from_secs(5 * HOUR)));
    put(
        world.dir.path().join("ca.crt"),
        format!("{}{}", world.pki.root.pem(), short.root().pem()),
    );
    put(
        world.dir.path().join("crl.pem"),
        world.pki.issuing.revocation_list(1).pem(),
    );
    let (ahead, events) = (Arc::default(), Events::bounded(64));
    let options = WatchOptions {
        poll: Duration::from_millis(10),
        clock: clock(&ahead),
        events: events.clone(),
        ..quick()
    };
    let files = MaterialFiles::in_dir(world.dir.path());
    let started = MaterialWatch::start(files, Usage::Server, options).await;
    let (_watch, driver) = started.expect("good material");
    let mut heard = events.subscribe();
    let stop = CancellationToken::new();
    let pass = async {
        ahead.store(6 * HOUR, Ordering::Relaxed);
        let event = next_event(&mut heard).await;
        assert!(
            matches!(&event, Event::RootExpired { subject, .. } if subject == "CN=short"),
            "{event:?}"
        );
        // Leaf and list last ten days.
        ahead.store(9 * 24 * HOUR, Ordering::Relaxed);
        assert!(matches!(
            next_event(&mut heard).await,
            Event::LeafExpiring { .. }
        ));
        let event = next_event(&mut heard).await;
        assert!(
            matches!(&event, Event::RevocationListEnding { number: Some(number), .. } if number == "1"),
            "{event:?}"
        );
        ahead.store(11 * 24 * HOUR, Ordering::Relaxed);
        assert!(matches!(
            next_event(&mut heard).await,
            Event::LeafExpired { .. }
        ));
        assert!(matches!(
            next_event(&mut heard).await,
            Event::RootExpired { .. }
        ));
        assert!(matches!(
            next_event(&mut heard).await,
            Event::RevocationListEnded { .. }
        ));
        stop.cancel();
    };
    tokio::join!(driver.run(stop.clone()), pass);
    drop(events);
    assert!(heard.next().await.is_none(), "each is said once");
}
