//! Material that the program itself replaces: what is said and counted is what files would have (V10).

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use vidimus_testkit::Pki;
use vidimus_tls::clock::Clock;
use vidimus_tls::events::{Event, Events, Unit};
use vidimus_tls::material::{Identity, IdentityError, Material, Trust, Usage};
use vidimus_tls::policy::{AllowList, PolicyWatch};
use vidimus_tls::runtime::Runtime;
use vidimus_tls::watch::WatchOptions;

use crate::support::{LogCapture, SERVER, clock, next_event, quick};

/// V10, V18. Reloads, refusals and what ends with time.
#[tokio::test]
async fn material_in_memory_is_reported_as_files_are() {
    const DAY: u64 = 24 * 3600;
    let pki = Pki::new("Example");
    let log = LogCapture::start();
    let now = Clock::system();
    let leaf = || pki.leaf("server").dns(SERVER).server().issue();
    let (first, second) = (leaf(), leaf());
    let pem = |text: &str| text.as_bytes().to_vec();
    let identity = Identity::from_pem(
        &pem(&first.chain_pem()),
        &pem(first.key_pem()),
        Usage::Server,
        now.now(),
    );
    let roots = || Trust::from_pem(pki.root.pem().as_bytes(), now.now()).expect("roots");
    let (ahead, events) = (Arc::default(), Events::bounded(64));
    let options = WatchOptions {
        poll: Duration::from_millis(10),
        clock: clock(&ahead),
        events: events.clone(),
        ..quick()
    };
    let mut heard = events.subscribe();
    let mut runtime = Runtime::new();
    let material = Material::of(identity.expect("an identity"), roots());
    let (watch, mut publisher) = runtime.memory(material, options);
    let change = async {
        let mut replace = |chain: &str, key: &str| {
            publisher.replace_identity(chain.as_bytes(), key.as_bytes(), Usage::Server)
        };
        replace(&second.chain_pem(), second.key_pem()).expect("a certificate with its key");
        let reloaded = |unit, generation| Event::Reloaded { unit, generation };
        assert_eq!(next_event(&mut heard).await, reloaded(Unit::Identity, 2));
        assert_eq!(log.lines_with(&["INFO", "TLS material reloaded"]).len(), 1);

        for _ in 0..2 {
            let refused = replace(&second.chain_pem(), first.key_pem());
            assert!(refused.is_err(), "another one's key");
        }
        let event = next_event(&mut heard).await;
        assert!(
            matches!(&event, Event::ReloadRefused { unit: Unit::Identity, generation: 2, reason }
                if reason.contains("does not match")),
            "{event:?}"
        );
        let status = watch.status();
        assert_eq!((status.failures, status.identity.failures), (1, 1));
        assert!(status.identity.last_error.is_some());
        assert_eq!(log.lines_with(&["WARN", "is not usable"]).len(), 1);

        publisher.replace_trust(roots());
        assert_eq!(next_event(&mut heard).await, reloaded(Unit::Trust, 3));
        ahead.store(20 * DAY, Ordering::Relaxed);
        assert!(matches!(
            next_event(&mut heard).await,
            Event::LeafExpired { .. }
        ));
        assert_eq!(log.lines_with(&["ERROR", "EXPIRED"]).len(), 1);
        // What is offered is judged, and said to have come, by the same clock.
        publisher.replace_trust(roots());
        let later = now.now() + Duration::from_secs(19 * DAY);
        assert!(watch.status().last_reload > Some(later));
        let (chain, key) = (first.chain_pem(), first.key_pem());
        let ended = publisher.replace_identity(chain.as_bytes(), key.as_bytes(), Usage::Server);
        assert!(
            matches!(ended, Err(IdentityError::Expired { .. })),
            "{ended:?}"
        );
    };
    runtime.run_while(change).await;
}

/// V10. A policy, too.
#[tokio::test]
async fn a_policy_in_memory_is_reported_as_a_file_is() {
    let log = LogCapture::start();
    let events = Events::bounded(4);
    let mut heard = events.subscribe();
    let (watch, publisher) = PolicyWatch::from_memory(AllowList::default());
    let mut publisher = publisher.with_events(events, Clock::system());
    publisher.replace(AllowList::parse("dns:client.test").expect("a list"));
    let reloaded = Event::Reloaded {
        unit: Unit::Policy,
        generation: 2,
    };
    assert_eq!(next_event(&mut heard).await, reloaded);
    assert!(watch.status().last_reload.is_some());
    assert_eq!(log.lines_with(&["INFO", "policy replaced"]).len(), 1);
}
