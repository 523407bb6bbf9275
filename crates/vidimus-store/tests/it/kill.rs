//! Kill -9 at any moment: nothing that was answered is lost, and the log verifies.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use aws_lc_rs::rand::SecureRandom;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use vidimus_store::Store;
use vidimus_store::export::AuditFiles;
use vidimus_store::suite::{Authority, audit_seed, intact, random};
use vidimus_store::verify::{self, Verdict, VerifyError};
use vidimus_testkit::{Process, try_wait_until};
use vidimus_x509::serial::Serial;

use crate::child::{self, Work};

/// How many stores are made, and how often the process is killed that uses one: also while it
/// recovers from the kill before.
const STORES: u64 = 5;
const POINTS: u64 = 4;
const DEADLINE: Duration = Duration::from_secs(60);

/// The child: eight at a time, until it is killed.
pub(crate) async fn record(dir: &Path) {
    let store = Store::open(dir.join("vidimus.db"), audit_seed().key()).unwrap();
    let files = AuditFiles::new(dir.join("audit"), store.clone());
    files.catch_up().await.unwrap();
    let authority = Arc::new(Authority::new());
    let mut tasks = JoinSet::new();
    tasks.spawn(files.run(CancellationToken::new()));
    for _ in 0..8 {
        let (store, authority) = (store.clone(), Arc::clone(&authority));
        tasks.spawn(async move {
            loop {
                let issuance = authority.issuance("leaf");
                let recorded = store.record_issuance(issuance).await.unwrap();
                println!("recorded {} on disk", recorded.serial);
            }
        });
    }
    tasks.join_all().await;
}

/// X10, C14. What a process printed after the answer is in the store, whenever it was killed; the
/// log and the daily files are whole, and every certificate has its entry.
#[test]
fn killed_at_any_moment_the_store_has_all_that_was_answered() {
    let seed = seed();
    println!("VIDIMUS_TEST_SEED={seed}");
    let mut dice = Dice(seed);
    let mut total = 0;
    for _ in 0..STORES {
        let dir = tempfile::tempdir().unwrap();
        let mut answered = BTreeSet::new();
        for point in 0..POINTS {
            let when = format!("seed {seed}, point {point}");
            kill_once(dir.path(), &mut dice, &mut answered, &when);
            check(dir.path(), &answered, &when);
        }
        total += answered.len();
    }
    assert!(total > 0);
}

fn kill_once(dir: &Path, dice: &mut Dice, answered: &mut BTreeSet<Serial>, when: &str) {
    let mut process = Process::spawn(child::command(Work::Record, dir, &["env"]));
    // At least so many answers, and then a moment that no answer marks.
    let answers = usize::try_from(dice.below(120)).unwrap();
    let moment = Duration::from_micros(dice.below(20_000));
    let reached = try_wait_until(DEADLINE, || match recorded(&process).len() {
        count if count >= answers => Ok(()),
        count => Err(count),
    });
    assert!(reached.is_ok(), "{when}: {process}");
    let start = std::time::Instant::now();
    while start.elapsed() < moment {
        std::hint::spin_loop();
    }
    process.kill();
    process.wait_exit(DEADLINE);
    answered.extend(recorded(&process));
}

fn check(dir: &Path, answered: &BTreeSet<Serial>, when: &str) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    runtime.block_on(async {
        let store = Store::open(dir.join("vidimus.db"), audit_seed().key()).unwrap();
        for serial in answered {
            let found = store.find_issued(serial).await.unwrap();
            assert!(found.is_some(), "{serial} is lost ({when})");
        }
        let entries = intact(&store);
        assert_eq!(store.issued_count().await.unwrap(), entries, "{when}");

        let files = AuditFiles::new(dir.join("audit"), store.clone());
        assert_eq!(files.catch_up().await.unwrap(), entries, "{when}");
        let head = store.audit_head().await.unwrap();
        let verdict = verify::path(dir.join("audit"), audit_seed().key().public(), Some(head));
        if entries == 0 {
            // Killed before the first entry: there is no file yet.
            assert!(
                matches!(&verdict, Err(VerifyError::NoLog { .. })),
                "{verdict:?} ({when})"
            );
            return;
        }
        assert!(
            matches!(&verdict, Ok(Verdict::Intact(found)) if found.entries == entries),
            "{verdict:?} ({when})"
        );
    });
}

/// The serial numbers that the process printed, in lines that it printed to their end.
pub(crate) fn recorded(process: &Process) -> Vec<Serial> {
    let lines = process.stdout();
    let serials = lines.iter().filter_map(|line| {
        let (_, serial) = line.split_once("recorded ")?;
        serial.strip_suffix(" on disk")
    });
    serials
        .map(|serial| Serial::parse_hex(serial).unwrap())
        .collect()
}

/// From the environment, to run the same again; else a new one.
fn seed() -> u64 {
    if let Ok(seed) = std::env::var("VIDIMUS_TEST_SEED") {
        return seed.parse().unwrap();
    }
    let mut bytes = [0; 8];
    random().fill(&mut bytes).unwrap();
    u64::from_be_bytes(bytes)
}

/// Numbers that follow from a seed (splitmix64).
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % bound
    }
}
