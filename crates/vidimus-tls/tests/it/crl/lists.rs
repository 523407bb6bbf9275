//! Which list says what about whom.

use std::sync::Arc;

use vidimus_testkit::{Authority, Credential, Pki};
use vidimus_tls::material::{
    Identity, Material, RevocationCheck, RevocationGap, RevocationOptions, TrustError, Usage,
};
use vidimus_tls::watch::MaterialWatch;

use super::{DAY, LEAF, leaf, now, refusal, roots, trust, verdict};

/// V18. The issuing CA's list beside a bundle of the root alone: it counts for the chain that a peer presents.
#[test]
fn a_list_of_a_presented_ca_revokes_and_lets_pass() {
    let pki = Pki::new("Example");
    let list = pki.issuing.revocation_list(1).revoke(&[7]).pem();
    let trust = trust(&[&pki.root], &[list], LEAF);
    let (lost, good) = (leaf(&pki.issuing, &[7]), leaf(&pki.issuing, &[8]));
    assert_eq!(verdict(&trust, &good, now()), Ok(()));
    let text = refusal(&trust, &lost, now())
        .expect("a refusal")
        .to_string();
    for part in [
        "\"CN=client\"",
        "serial number 7 ",
        "revoked at 2",
        "keyCompromise",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let lists = trust.revocation_lists();
    assert_eq!(
        (lists.len(), lists[0].entries, lists[0].number.as_deref()),
        (1, 1, Some("1"))
    );
}

/// V18. `leaf` looks up the leaf alone, `chain` the CAs above it too, `off` nobody.
#[test]
fn the_check_goes_as_far_as_it_is_asked_to() {
    let root = Authority::root("root");
    let lost = vidimus_testkit::pki::AuthoritySpec::new("issuing")
        .serial(&[5])
        .under(&root);
    let client = leaf(&lost, &[9]);
    let lists = || {
        [
            root.revocation_list(1).revoke(&[5]).pem(),
            lost.revocation_list(1).pem(),
        ]
    };
    let with = |check| RevocationOptions {
        check: Some(check),
        ..LEAF
    };
    for (check, expected) in [
        (RevocationCheck::Off, Ok(())),
        (RevocationCheck::Leaf, Ok(())),
        (RevocationCheck::Chain, Err("revoked")),
    ] {
        let trust = trust(&[&root], &lists(), with(check));
        assert_eq!(verdict(&trust, &client, now()), expected, "{check:?}");
    }
    let only_the_issuing_list = trust(
        &[&root],
        &[lost.revocation_list(1).pem()],
        with(RevocationCheck::Chain),
    );
    assert_eq!(
        verdict(&only_the_issuing_list, &client, now()),
        Err("revocation_unknown")
    );
    let unlisted = [root.revocation_list(2).pem(), lost.revocation_list(1).pem()];
    let trust = trust(&[&root], &unlisted, with(RevocationCheck::Chain));
    assert_eq!(verdict(&trust, &client, now()), Ok(()));
}

/// V18. Without a list, and past the end of one, nobody gets in unless that is what was asked for; who is listed never does.
#[test]
fn what_is_not_known_refuses_unless_that_is_accepted() {
    let (pki, other) = (Pki::new("Example"), Pki::new("Other"));
    let lists = || [pki.issuing.revocation_list(1).revoke(&[7]).pem()];
    let both = [&pki.root, &other.root];
    let (good, lost) = (leaf(&pki.issuing, &[8]), leaf(&pki.issuing, &[7]));
    let stranger = leaf(&other.issuing, &[7]);
    let strict = trust(&both, &lists(), LEAF);
    let lax = trust(
        &both,
        &lists(),
        RevocationOptions {
            stale: RevocationGap::Accept,
            missing: RevocationGap::Accept,
            ..LEAF
        },
    );
    // The leaves end together with the list; a day before that they are still good.
    let late = now() + 9 * DAY;
    let ended = [pki.issuing.revocation_list(2).revoke(&[7]).ended().pem()];
    let strict_ended = trust(&both, &ended, LEAF);
    let lax_ended = trust(&both, &ended, *lax.revocation_options());
    for (trust, who, at, expected) in [
        (&strict, &good, now(), Ok(())),
        (&strict, &good, late, Ok(())),
        (&strict, &lost, now(), Err("revoked")),
        (&strict, &stranger, now(), Err("revocation_unknown")),
        (&strict_ended, &good, now(), Err("revocation_stale")),
        (&strict_ended, &lost, now(), Err("revoked")),
        (&lax, &stranger, now(), Ok(())),
        (&lax_ended, &good, now(), Ok(())),
        (&lax_ended, &lost, now(), Err("revoked")),
    ] {
        assert_eq!(verdict(trust, who, at), expected);
    }
}

/// V18. A CA that was made anew under its old name: each key's list is about that key's certificates.
#[test]
fn two_cas_of_one_name_do_not_break_each_other() {
    let (old, new) = (Authority::root("root"), Authority::root("root"));
    let (of_old, of_new) = (leaf(&old, &[7]), leaf(&new, &[7]));
    let old_list = || old.revocation_list(40).revoke(&[7]).pem();
    let new_list = || new.revocation_list(1).pem();
    for lists in [[old_list(), new_list()], [new_list(), old_list()]] {
        let trust = trust(&[&old, &new], &lists, LEAF);
        assert_eq!(verdict(&trust, &of_old, now()), Err("revoked"));
        assert_eq!(verdict(&trust, &of_new, now()), Ok(()));
        assert_eq!(trust.revocation_lists().len(), 2);
    }
    // One list is not the other's.
    let trust = trust(&[&old, &new], &[new_list()], LEAF);
    assert_eq!(verdict(&trust, &of_old, now()), Err("revocation_unknown"));
}

fn in_memory(of: &Credential, trust: vidimus_tls::material::Trust) -> MaterialWatch {
    let (certificate, key) = (of.chain_pem(), of.key_pem());
    let identity = Identity::from_pem(certificate.as_bytes(), key.as_bytes(), Usage::Both, now());
    MaterialWatch::fixed(Material::of(identity.expect("an identity"), trust))
}

/// V18. No list goes back in time, one that is gone stays, and the roots beside it are not delayed.
#[test]
fn lists_only_go_forward() {
    let (pki, next) = (Pki::new("Example"), Authority::root("next"));
    let client = leaf(&pki.issuing, &[7]);
    let list =
        |number: u64, serial: u8| pki.issuing.revocation_list(number).revoke(&[serial]).pem();
    let given = |text: &str| {
        roots(&[&pki.root])
            .with_revocation(text.as_bytes(), LEAF, &[], now())
            .expect("a good list")
    };
    let first = in_memory(&client, given(&list(5, 9)));
    let material = (*first.current()).clone();
    let (watch, mut publisher) = MaterialWatch::from_memory(material);
    let mut verdict_after = |trust: vidimus_tls::material::Trust| {
        publisher.replace_trust(trust);
        let trust = Arc::clone(watch.current().trust());
        let numbers: Vec<_> = trust
            .revocation_lists()
            .into_iter()
            .filter_map(|l| l.number)
            .collect();
        (
            verdict(&trust, &client, now()),
            numbers.join(","),
            trust.roots().len(),
        )
    };
    let number = |text: &str| text.to_owned();
    // A later one revokes; an earlier one, which doesn't, is not taken.
    assert_eq!(
        verdict_after(given(&list(6, 7))),
        (Err("revoked"), number("6"), 1)
    );
    let older = roots(&[&pki.root, &next])
        .with_revocation(list(5, 9).as_bytes(), LEAF, &[], now())
        .expect("a good list");
    assert_eq!(verdict_after(older), (Err("revoked"), number("6"), 2));
    // No lists at all, and another CA's: it stays beside them.
    let of_another = roots(&[&pki.root])
        .with_revocation(next.revocation_list(1).pem().as_bytes(), LEAF, &[], now())
        .expect("a good list");
    assert_eq!(
        verdict_after(of_another),
        (Err("revoked"), number("1,6"), 1)
    );
    // A later one takes its place, whatever was verified meanwhile.
    assert_eq!(
        verdict_after(given(&list(7, 9))),
        (Ok(()), number("7,1"), 1)
    );
}

/// V18. Also where no peer has presented the CAs yet, so that nobody knows which of the two lists is whose.
#[test]
fn lists_of_cas_that_nobody_has_presented_do_not_displace_each_other() {
    let root = Authority::root("root");
    let (old, new) = (root.intermediate("issuing"), root.intermediate("issuing"));
    let (of_old, of_new) = (leaf(&old, &[7]), leaf(&new, &[7]));
    let given = |list: String| {
        roots(&[&root])
            .with_revocation(list.as_bytes(), LEAF, &[], now())
            .expect("a good list")
    };
    let own = leaf(&root, &[1]);
    let first = in_memory(&own, given(old.revocation_list(40).revoke(&[7]).pem()));
    let (watch, mut publisher) = MaterialWatch::from_memory((*first.current()).clone());
    publisher.replace_trust(given(new.revocation_list(1).pem()));
    let trust = Arc::clone(watch.current().trust());
    assert_eq!(verdict(&trust, &of_old, now()), Err("revoked"));
    assert_eq!(verdict(&trust, &of_new, now()), Ok(()));
    // Only so many are kept while nobody knows; once a peer has shown who signed them, each line has one.
    for number in 2..20 {
        publisher.replace_trust(given(new.revocation_list(number).pem()));
    }
    let trust = Arc::clone(watch.current().trust());
    assert_eq!(verdict(&trust, &of_old, now()), Err("revoked"));
    assert_eq!(trust.revocation_lists().len(), 2);
    let strangers = Authority::root("nobody's");
    for number in 1..20 {
        publisher.replace_trust(given(strangers.revocation_list(number).pem()));
    }
    let lists = watch.current().trust().revocation_lists();
    assert_eq!(lists.len(), 2 + 1 + 4, "{lists:?}");
}

/// V18. A list that names a known CA's key and is not signed by it is damaged, or worse.
#[test]
fn a_list_that_was_tampered_with_is_refused() {
    let root = Authority::root("root");
    let mut list = root.revocation_list(1).revoke(&[7]).der();
    let good = roots(&[&root]).with_revocation(&list, LEAF, &[], now());
    assert_eq!(good.expect("DER is read, too").revocation_lists().len(), 1);
    let at = list
        .windows(3)
        .rposition(|w| w == [2, 1, 7])
        .expect("the entry");
    list[at + 2] = 8;
    let refused = roots(&[&root]).with_revocation(&list, LEAF, &[], now());
    assert!(
        matches!(
            refused,
            Err(TrustError::RevocationSignature { position: 1, .. })
        ),
        "{refused:?}"
    );
    for nothing in ["", "hello"] {
        assert!(
            roots(&[&root])
                .with_revocation(nothing.as_bytes(), LEAF, &[], now())
                .is_err()
        );
    }
}

/// V18. Every entry of a long list is found, and nobody else.
#[test]
fn a_long_list_is_searched_whole() {
    const ENTRIES: u32 = 100_000;
    let root = Authority::root("root");
    let serial = |number: u32| [&[0x40], &number.to_be_bytes()[..]].concat();
    let spec = root.revocation_list(1);
    let list = (0..ENTRIES).fold(spec, |spec, number| spec.revoke(&serial(number)));
    let trust = trust(&[&root], &[list.pem()], LEAF);
    assert_eq!(trust.revocation_lists()[0].entries, 100_000);
    for (number, expected) in [
        (0, Err("revoked")),
        (ENTRIES / 2, Err("revoked")),
        (ENTRIES - 1, Err("revoked")),
        (ENTRIES, Ok(())),
    ] {
        assert_eq!(
            verdict(&trust, &leaf(&root, &serial(number)), now()),
            expected
        );
    }
}
