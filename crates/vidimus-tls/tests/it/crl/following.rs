//! Which lists are still in use after a change of roots or of lists.

use std::sync::Arc;
use std::time::Duration;

use rustls_pki_types::CertificateDer;
use tokio_util::sync::CancellationToken;
use vidimus_testkit::pki::{AuthoritySpec, RevocationListSpec, Validity};
use vidimus_testkit::{Authority, Pki, wait_until_async};
use vidimus_tls::events::{Event, Events, Unit};
use vidimus_tls::material::{
    Identity, Material, MaterialFiles, RevocationCheck, Trust, TrustError, Usage,
};
use vidimus_tls::watch::{MaterialPublisher, MaterialWatch, WatchOptions};

use super::{LEAF, leaf, now, roots, verdict};
use crate::support::{DEADLINE, LogCapture, World, put, quick, soon};

/// Material in memory with the certificate of a client of this CA.
fn in_memory(of: &Authority, trust: Trust) -> (MaterialWatch, MaterialPublisher) {
    let client = leaf(of, &[1]);
    let (certificate, key) = (client.chain_pem(), client.key_pem());
    let identity = Identity::from_pem(certificate.as_bytes(), key.as_bytes(), Usage::Both, now());
    MaterialWatch::from_memory(Material::of(identity.expect("an identity"), trust))
}

fn chain_of(of: &Authority) -> Vec<CertificateDer<'static>> {
    let chain = leaf(of, &[1]).chain_der().to_vec();
    chain.into_iter().map(CertificateDer::from).collect()
}

/// V18. Roots that come without lists leave what is asked of lists as it was.
#[test]
fn roots_alone_do_not_switch_the_check_off() {
    let pki = Pki::new("Example");
    let list = pki.issuing.revocation_list(1).revoke(&[7]).pem();
    let given = roots(&[&pki.root]).with_revocation(list.as_bytes(), LEAF, &[], now());
    let (watch, mut publisher) = in_memory(&pki.issuing, given.expect("a good list"));
    let next = Authority::root("next");
    publisher.replace_trust(roots(&[&pki.root, &next]));
    let trust = Arc::clone(watch.current().trust());
    assert_eq!(trust.roots().len(), 2);
    assert_eq!(trust.revocation_options(), &LEAF);
    let (lost, good) = (leaf(&pki.issuing, &[7]), leaf(&pki.issuing, &[8]));
    assert_eq!(verdict(&trust, &lost, now()), Err("revoked"));
    assert_eq!(verdict(&trust, &good, now()), Ok(()));
    // Where nothing was asked, nothing is.
    let (watch, mut publisher) = in_memory(&pki.issuing, roots(&[&pki.root]));
    publisher.replace_trust(roots(&[&pki.root, &next]));
    let options = *watch.current().trust().revocation_options();
    assert_eq!(options.check(), RevocationCheck::Off);
}

/// V18, V13. After a rotation the lists of the old CAs go, once they are delivered no longer; those of CAs that stay don't.
#[test]
fn lists_of_retired_cas_leave_with_their_root() {
    let (old, new) = (Pki::new("Old"), Pki::new("New"));
    let chain = [chain_of(&old.issuing), chain_of(&new.issuing)].concat();
    let lists = |of: &[&Pki]| -> String {
        of.iter()
            .flat_map(|pki| [pki.root.revocation_list(1), pki.issuing.revocation_list(1)])
            .map(RevocationListSpec::pem)
            .collect()
    };
    let given = |roots_of: &[&Pki], lists_of: &[&Pki]| {
        let of: Vec<&Authority> = roots_of.iter().map(|pki| &pki.root).collect();
        let trust = roots(&of).with_revocation(lists(lists_of).as_bytes(), LEAF, &chain, now());
        trust.expect("good lists")
    };
    let start = || in_memory(&new.issuing, given(&[&old, &new], &[&old, &new]));
    let count = |watch: &MaterialWatch| watch.current().trust().revocation_lists().len();
    // The list goes while the root stays: nothing is forgotten.
    let (watch, mut publisher) = start();
    assert_eq!(count(&watch), 4);
    publisher.replace_trust(given(&[&old, &new], &[&new]));
    assert_eq!(count(&watch), 4);
    // Then the root goes, and they with it.
    publisher.replace_trust(given(&[&new], &[&new]));
    assert_eq!(count(&watch), 2);
    // The root goes first, and the lists when they are delivered no longer.
    let (watch, mut publisher) = start();
    publisher.replace_trust(given(&[&new], &[&old, &new]));
    assert_eq!(count(&watch), 4);
    publisher.replace_trust(given(&[&new], &[&new]));
    assert_eq!(count(&watch), 2);
    // A root that has come back meanwhile is no retired one.
    let (watch, mut publisher) = start();
    publisher.replace_trust(given(&[&new], &[&old, &new]));
    publisher.replace_trust(given(&[&old, &new], &[&old, &new]));
    publisher.replace_trust(given(&[&old, &new], &[&new]));
    assert_eq!(count(&watch), 4);
}

/// V18. A list of the future would refuse every other one until then; a clock that is a little off is nobody's fault.
#[test]
fn a_list_of_the_future_is_refused() {
    const DAY: u64 = 24 * 60 * 60;
    let root = Authority::root("root");
    // The testkit's lists were made a day ago and a second later for each number.
    let given = |number| {
        let list = root.revocation_list(number).pem();
        roots(&[&root]).with_revocation(list.as_bytes(), LEAF, &[], now())
    };
    for good in [1, DAY, DAY + 60] {
        assert_eq!(given(good).expect("a list").revocation_lists().len(), 1);
    }
    let refused = given(2 * DAY).expect_err("a refusal");
    assert!(
        matches!(refused, TrustError::RevocationNotYet { position: 1, .. }),
        "{refused:?}"
    );
    assert!(refused.to_string().contains("of the future"), "{refused}");
}

/// V18. A list that is older than the one in use is an event and counted, once; the roots beside it are taken.
#[tokio::test]
async fn a_list_that_goes_back_in_time_is_reported() {
    let world = World::new();
    let (path, ca) = (
        world.dir.path().join("crl.pem"),
        world.dir.path().join("ca.crt"),
    );
    let list = |number| world.pki.issuing.revocation_list(number).pem();
    put(&path, list(5));
    let events = Events::bounded(64);
    let mut heard = events.subscribe();
    let options = WatchOptions {
        events: events.clone(),
        poll: Duration::from_millis(20),
        ..quick()
    };
    let files = MaterialFiles::in_dir(world.dir.path());
    let started = MaterialWatch::start(files, Usage::Server, options).await;
    let (watch, driver) = started.expect("good material");
    let stop = CancellationToken::new();
    let change = async {
        put(&path, list(4));
        let record = soon("an event", heard.next()).await.expect("an event");
        assert!(
            matches!(&record.event, Event::ReloadRefused { unit: Unit::Trust, generation: 1, reason }
                if reason.contains("number 4") && reason.contains("number 5")),
            "{record:?}"
        );
        let second = Authority::root("second");
        put(&ca, format!("{}{}", world.pki.root.pem(), second.pem()));
        soon("the roots", watch.wait_for_generation(2)).await;
        several_looks(&watch).await;
        let status = watch.status();
        assert_eq!((status.failures, status.trust.failures), (1, 1));
        assert_eq!(status.revocation_lists[0].number.as_deref(), Some("5"));
        put(&path, list(6));
        soon("the list", watch.wait_for_generation(3)).await;
        assert_eq!(watch.status().last_error(), None);
        stop.cancel();
    };
    tokio::join!(driver.run(stop.clone()), change);
}

/// V18. Whoever adds the new list to the file and leaves the old ones there has gone back nowhere, whatever their order.
#[test]
fn old_lists_beside_the_new_one_are_no_fault() {
    let pki = Pki::new("Example");
    let list = |number| pki.issuing.revocation_list(number).pem();
    let given = |numbers: &[u64]| {
        let text: String = numbers.iter().map(|number| list(*number)).collect();
        let chain = chain_of(&pki.issuing);
        let trust = roots(&[&pki.root]).with_revocation(text.as_bytes(), LEAF, &chain, now());
        trust.expect("good lists")
    };
    // Those delivered after number 7, which is in use then, and whether anything is wrong about it.
    let cases: [(&[u64], &str, bool); 5] = [
        (&[5, 7, 8], "8", false),
        (&[8, 7, 5], "8", false),
        (&[5, 8], "8", false),
        (&[5, 7], "7", false),
        (&[5, 6], "7", true),
    ];
    for (numbers, expected, is_wrong) in cases {
        let (watch, mut publisher) = in_memory(&pki.issuing, given(&[7]));
        publisher.replace_trust(given(numbers));
        let status = watch.status();
        let in_use = status.revocation_lists.iter().map(|list| &list.number);
        let in_use: Vec<Option<&str>> = in_use.map(Option::as_deref).collect();
        assert_eq!(in_use, [Some(expected)], "{numbers:?}");
        assert_eq!(status.last_error().is_some(), is_wrong, "{numbers:?}");
        assert_eq!(status.failures, u64::from(is_wrong), "{numbers:?}");
    }
}

/// V10, V18. What is odd about the roots is said once, whatever is wrong with the lists beside them.
#[tokio::test]
async fn an_expired_root_is_said_once_while_a_list_is_bad() {
    let world = World::new();
    let log = LogCapture::start();
    let old = AuthoritySpec::new("old root").validity(Validity::Expired);
    let (path, ca) = (
        world.dir.path().join("crl.pem"),
        world.dir.path().join("ca.crt"),
    );
    put(&ca, format!("{}{}", world.pki.root.pem(), old.root().pem()));
    put(&path, world.pki.issuing.revocation_list(1).pem());
    let options = WatchOptions {
        poll: Duration::from_millis(20),
        ..quick()
    };
    let files = MaterialFiles::in_dir(world.dir.path());
    let started = MaterialWatch::start(files, Usage::Server, options).await;
    let (watch, driver) = started.expect("good material");
    let stop = CancellationToken::new();
    let change = async {
        put(&path, "hello");
        wait_until_async(DEADLINE, || async {
            watch.status().trust.last_error.ok_or("no error yet")
        })
        .await;
        several_looks(&watch).await;
        stop.cancel();
    };
    tokio::join!(driver.run(stop.clone()), change);
    let said = log.lines_with(&["WARN", "old root"]);
    assert_eq!(said.len(), 1, "{}", log.text());
}

async fn several_looks(watch: &MaterialWatch) {
    let before = watch.status().looks;
    wait_until_async(DEADLINE, || async {
        let looks = watch.status().looks;
        if looks > before + 5 {
            Ok(())
        } else {
            Err(looks)
        }
    })
    .await;
}
