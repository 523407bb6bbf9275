//! `crl.pem` beside the other files: when it counts, and what becomes of a bad one.

use std::sync::Arc;

use vidimus_testkit::{Pki, wait_until_async};
use vidimus_tls::material::{
    MaterialFiles, RevocationCheck, RevocationGap, RevocationOptions, Usage,
};
use vidimus_tls::watch::{MaterialDriver, MaterialWatch, WatchOptions};

use super::{leaf, now, verdict};
use crate::support::{DEADLINE, World, put, quick, soon};

async fn start(
    world: &World,
    revocation: RevocationOptions,
) -> Result<(MaterialWatch, MaterialDriver), vidimus_tls::material::MaterialError> {
    let options = WatchOptions {
        revocation,
        ..quick()
    };
    MaterialWatch::start(
        MaterialFiles::in_dir(world.dir.path()),
        Usage::Server,
        options,
    )
    .await
}

/// V18. Lists count if there were any at the start, or if that is asked for; and then there must be some.
#[tokio::test]
async fn the_start_decides_whether_lists_count() {
    let world = World::new();
    let check = |watch: &MaterialWatch| watch.status().revocation;
    let asked = RevocationOptions {
        check: Some(RevocationCheck::Chain),
        ..RevocationOptions::default()
    };
    let (watch, _) = start(&world, RevocationOptions::default())
        .await
        .expect("good material");
    assert_eq!(check(&watch), RevocationCheck::Off);
    let missing = start(&world, asked).await.expect_err("a refusal");
    assert!(missing.to_string().contains("crl.pem"), "{missing}");
    let nowhere = MaterialFiles {
        crl: None,
        ..MaterialFiles::in_dir(world.dir.path())
    };
    let options = WatchOptions {
        revocation: asked,
        ..quick()
    };
    let started = MaterialWatch::start(nowhere, Usage::Server, options).await;
    assert!(started.is_err(), "asked for, and nowhere to be found");
    let lax = RevocationOptions {
        missing: RevocationGap::Accept,
        ..asked
    };
    let (watch, _) = start(&world, lax).await.expect("good material");
    assert_eq!(check(&watch), RevocationCheck::Chain);

    put(
        world.dir.path().join("crl.pem"),
        world.pki.issuing.revocation_list(1).pem(),
    );
    let (watch, _) = start(&world, RevocationOptions::default())
        .await
        .expect("good material");
    assert_eq!(check(&watch), RevocationCheck::Leaf);
    // The process's own chain knows the CA that signed it.
    assert!(watch.status().revocation_lists[0].signed_by_known);
    put(world.dir.path().join("crl.pem"), "hello");
    assert!(start(&world, RevocationOptions::default()).await.is_err());
    let off = RevocationOptions {
        check: Some(RevocationCheck::Off),
        ..RevocationOptions::default()
    };
    let (watch, _) = start(&world, off).await.expect("good material");
    assert!(watch.status().revocation_lists.is_empty());
}

/// V18. A bad file keeps the last good lists and roots and is counted; a good one after it is taken; one that vanishes
/// changes nothing.
#[tokio::test]
async fn bad_and_vanished_lists_leave_the_last_good_ones_in_use() {
    let world = World::new();
    let path = world.dir.path().join("crl.pem");
    let list = |number: u64, serial: u8| {
        world
            .pki
            .issuing
            .revocation_list(number)
            .revoke(&[serial])
            .pem()
    };
    put(&path, list(1, 7));
    let (watch, driver) = start(&world, RevocationOptions::default())
        .await
        .expect("good material");
    let lost = leaf(&world.pki.issuing, &[7]);
    let stop = tokio_util::sync::CancellationToken::new();
    let verdict_now = || verdict(&Arc::clone(watch.current().trust()), &lost, now());
    let change = async {
        put(
            &path,
            "-----BEGIN X509 CRL-----\nMAA=\n-----END X509 CRL-----\n",
        );
        wait_until_async(DEADLINE, || async {
            let status = watch.status();
            status
                .trust
                .last_error
                .filter(|_| status.failures == 1)
                .ok_or("no failure yet")
        })
        .await;
        assert_eq!(verdict_now(), Err("revoked"));
        put(&path, list(2, 8));
        soon("the list", watch.wait_for_generation(2)).await;
        assert_eq!(verdict_now(), Ok(()));
        assert_eq!(watch.status().trust.last_error, None);
        put(&path, list(3, 7));
        soon("the list", watch.wait_for_generation(3)).await;
        std::fs::remove_file(&path).expect("a file");
        // Something that does count, to see that the removal was looked at.
        let other = Pki::new("Other");
        put(
            world.dir.path().join("ca.crt"),
            format!("{}{}", world.pki.root.pem(), other.root.pem()),
        );
        soon("the roots", watch.wait_for_generation(4)).await;
        assert_eq!(verdict_now(), Err("revoked"));
        assert_eq!(
            watch.status().revocation_lists[0].number.as_deref(),
            Some("3")
        );
        stop.cancel();
    };
    tokio::join!(driver.run(stop.clone()), change);
}
