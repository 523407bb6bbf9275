//! Writers that are slow and don't rename: whatever is seen of their work is all old or all new, per unit (V10, T15, T18).
//!
//! The clock is driven, so that every pause of a writer is as long as it says, however busy the machine.

use std::collections::BTreeSet;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rustls_pki_types::CertificateDer;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use vidimus_testkit::pki::{AuthoritySpec, Curve};
use vidimus_testkit::{Authority, Credential};
use vidimus_tls::clock::Clock;
use vidimus_tls::identity::Fingerprint;
use vidimus_tls::material::{Material, MaterialFiles, Root, Trust, Usage};
use vidimus_tls::watch::{MaterialDriver, MaterialWatch, WatchOptions};

use crate::support::put;

/// How long a writer pauses: less than the time that content must stand still, which is 250 ms by default.
const PAUSE: Duration = Duration::from_millis(240);

/// Each file is cut in so many places in one writing. From one writing to the next the places move on by a byte, until each
/// offset has been one.
const CUTS: usize = 12;

type Files = [(&'static str, String); 3];

/// Two versions of everything. The bundle has two roots: cut after the first it is a valid shorter bundle.
fn versions() -> [(Files, CertificateDer<'static>); 2] {
    let root = |name: &str| AuthoritySpec::new(name).curve(Curve::P256).root();
    ["a", "b"].map(|name| {
        let (one, two) = (root(name), root("x"));
        let leaf: Credential = one.leaf("s").curve(Curve::P256).issue();
        let roots: [&Authority; 2] = [&one, &two];
        (leaf.files(&roots), leaf.leaf_der().to_vec().into())
    })
}

/// The pieces of a file that is cut at these places.
fn pieces(content: &str, cuts: &BTreeSet<usize>) -> Vec<Vec<u8>> {
    let inside = cuts.iter().copied().filter(|cut| *cut < content.len());
    let ends: Vec<usize> = inside.chain([content.len()]).collect();
    let starts = [0].into_iter().chain(ends.iter().copied());
    let between = starts.zip(&ends);
    between
        .map(|(from, to)| content.as_bytes()[from..*to].to_vec())
        .collect()
}

/// Writes one file after the other, each in place and piece by piece.
async fn write(
    dir: &Path,
    files: &Files,
    order: [usize; 3],
    cuts: &BTreeSet<usize>,
    pause: Duration,
) {
    for index in order {
        let (name, content) = &files[index];
        let path = dir.join(name);
        put(&path, "");
        for piece in pieces(content, cuts) {
            let mut file = OpenOptions::new()
                .append(true)
                .open(&path)
                .expect("the file");
            file.write_all(&piece).expect("a write");
            sleep(pause).await;
        }
    }
}

/// A watch of these files, to be driven, and the folder they are in.
async fn follow(files: &Files) -> (tempfile::TempDir, MaterialWatch, MaterialDriver) {
    let dir = tempfile::tempdir().expect("a folder");
    for (name, content) in files {
        put(dir.path().join(name), content);
    }
    let options = WatchOptions {
        // Looks at every stage of the writing, and begins each time at another one.
        poll: Duration::from_millis(70),
        notices: false,
        ..WatchOptions::default()
    };
    let files = MaterialFiles::in_dir(dir.path());
    let started = MaterialWatch::start(files, Usage::Server, options).await;
    let (watch, driver) = started.expect("good material");
    (dir, watch, driver)
}

async fn every_cut_in_this_order(order: [usize; 3]) {
    let versions = versions();
    let (dir, watch, driver) = follow(&versions[0].0).await;
    let lengths = versions
        .iter()
        .flat_map(|(files, _)| files)
        .map(|(_, text)| text.len());
    let step = lengths.max().expect("files").div_ceil(CUTS);
    let mut seen = watch.subscribe();
    let stop = CancellationToken::new();
    let rotate = async {
        for first in 0..step {
            let cuts = (0..CUTS).map(|number| first + number * step).collect();
            let (files, leaf) = &versions[(first + 1) % 2];
            let writing = write(dir.path(), files, order, &cuts, PAUSE);
            let seeing = async {
                let (old_files, old_leaf) = &versions[first % 2];
                let (old_roots, roots) = (names(&trust_of(old_files)), names(&trust_of(files)));
                // Whatever is seen of a unit is the whole of either version, until both are new.
                let mut is_new = false;
                while !is_new {
                    seen.changed().await.expect("the watch");
                    let material = seen.borrow_and_update().clone();
                    let (own, all) = (&material.identity().chain()[0], names(material.trust()));
                    assert!([old_leaf, leaf].contains(&own), "cut at {cuts:?}");
                    assert!([&old_roots, &roots].contains(&&all), "cut at {cuts:?}");
                    is_new = own == leaf && all == roots;
                }
            };
            tokio::join!(writing, seeing);
        }
        stop.cancel();
    };
    tokio::join!(driver.run(stop.clone()), rotate);
    let status = watch.status();
    assert_eq!(status.failures, 0, "{status:?}");
    // Each unit once for each writing, if not both at once.
    assert!(status.reloads <= 2 * step as u64, "{status:?}");
}

fn trust_of(files: &Files) -> Trust {
    Trust::from_pem(files[2].1.as_bytes(), Clock::system().now()).expect("roots")
}

fn names(trust: &Trust) -> Vec<Fingerprint> {
    trust.roots().iter().map(Root::fingerprint).collect()
}

/// V10, T15, T18.
#[tokio::test(start_paused = true)]
async fn certificate_key_roots_are_seen_whole() {
    every_cut_in_this_order([0, 1, 2]).await;
}

/// V10, T15, T18.
#[tokio::test(start_paused = true)]
async fn certificate_roots_key_are_seen_whole() {
    every_cut_in_this_order([0, 2, 1]).await;
}

/// V10, T15, T18.
#[tokio::test(start_paused = true)]
async fn key_certificate_roots_are_seen_whole() {
    every_cut_in_this_order([1, 0, 2]).await;
}

/// V10, T15, T18.
#[tokio::test(start_paused = true)]
async fn key_roots_certificate_are_seen_whole() {
    every_cut_in_this_order([1, 2, 0]).await;
}

/// V10, T15, T18.
#[tokio::test(start_paused = true)]
async fn roots_certificate_key_are_seen_whole() {
    every_cut_in_this_order([2, 0, 1]).await;
}

/// V10, T15, T18.
#[tokio::test(start_paused = true)]
async fn roots_key_certificate_are_seen_whole() {
    every_cut_in_this_order([2, 1, 0]).await;
}

/// V10. The limit that is documented: a writer that pauses for longer is believed, so a bundle that it cut after its first
/// certificate is a bundle. Nothing that is broken is taken even then.
#[tokio::test(start_paused = true)]
async fn a_writer_that_pauses_for_longer_is_seen_half_way() {
    let versions = versions();
    let (dir, watch, driver) = follow(&versions[0].0).await;
    let (files, leaf) = &versions[1];
    let after_the_first = files[2].1.find("-----END").expect("a certificate") + 26;
    let cuts = BTreeSet::from([after_the_first]);
    let mut seen = watch.subscribe();
    let stop = CancellationToken::new();
    let rotate = async {
        let writing = write(dir.path(), files, [2, 0, 1], &cuts, 3 * PAUSE);
        let seeing = async {
            let half = seen.wait_for(|material| material.generation() == 2).await;
            assert_eq!(half.expect("the watch").trust().roots().len(), 1);
            let whole = |material: &Arc<Material>| {
                material.trust().roots().len() == 2 && &material.identity().chain()[0] == leaf
            };
            seen.wait_for(whole).await.expect("the watch");
        };
        tokio::join!(writing, seeing);
        stop.cancel();
    };
    tokio::join!(driver.run(stop.clone()), rotate);
    assert!(watch.status().failures > 0, "a certificate without its key");
}
