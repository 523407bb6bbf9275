//! How many issuances a second the store records, empty and with millions of rows in it.
//!
//! `cargo run --release -p vidimus-store --features suite --example load -- [ROWS [SUBMITTERS]]`
//! fills a store with ROWS made-up rows, then has SUBMITTERS tasks record certificates that were
//! signed before, and prints the rate and the time each answer took. The folder is TMPDIR's: put it
//! on the disk that is to be measured.

#![expect(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a program that measures; what goes wrong ends it"
)]

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use rusqlite::Connection;
use tokio::task::JoinSet;
use vidimus_store::suite::{Authority, audit_seed, draft};
use vidimus_store::{Issuance, IssuedFilter, Store};

/// Certificates recorded in one measurement.
const COUNT: usize = 60_000;

fn main() {
    let mut arguments = std::env::args()
        .skip(1)
        .map(|argument| argument.parse().unwrap());
    let rows: usize = arguments.next().unwrap_or(0);
    let submitters: usize = arguments.next().unwrap_or(64);
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("vidimus.db");
    drop(Store::open(&path, audit_seed().key()).unwrap());
    if rows > 0 {
        fill(&path, rows);
    }
    let authority = Authority::new();
    let signed: Vec<_> = (0..COUNT).map(|_| authority.sign()).collect();
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .unwrap()
        .block_on(async {
            let store = Store::open(&path, audit_seed().key()).unwrap();
            let (start, cpu) = (Instant::now(), cpu());
            let waits = record(&store, signed, submitters).await;
            let (took, cpu) = (start.elapsed(), self::cpu().saturating_sub(cpu));
            println!(
                "CPU per issuance: {:?}",
                cpu / u32::try_from(waits.len()).unwrap()
            );
            report(rows, submitters, took, waits);
            read(&store).await;
        });
}

async fn record(
    store: &Store,
    signed: Vec<vidimus_x509::issue::Signed>,
    submitters: usize,
) -> Vec<Duration> {
    let signed = Arc::new(signed);
    let next = Arc::new(AtomicUsize::new(0));
    let mut tasks = JoinSet::new();
    for _ in 0..submitters {
        let (store, signed, next) = (store.clone(), Arc::clone(&signed), Arc::clone(&next));
        tasks.spawn(async move {
            let mut waits = Vec::new();
            while let Some(one) = signed.get(next.fetch_add(1, Ordering::Relaxed)) {
                let issuance = Issuance {
                    signed: one.clone(),
                    profile: "leaf-server".to_owned(),
                    requester: "CN=admin,O=Example".to_owned(),
                    audit: draft("/vidimus.node.v1.NodeService/IssueLeaf")
                        .with_request(one.der())
                        .with("effective_not_after", "2030-06-01T00:00:00Z"),
                };
                let start = Instant::now();
                store.record_issuance(issuance).await.unwrap();
                waits.push(start.elapsed());
            }
            waits
        });
    }
    tasks.join_all().await.into_iter().flatten().collect()
}

/// The time that all processors have worked for this process, to 10 ms.
fn cpu() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let (_, fields) = stat.rsplit_once(") ").unwrap();
    let ticks: u64 = fields
        .split(' ')
        .skip(11)
        .take(2)
        .map(|ticks| ticks.parse::<u64>().unwrap())
        .sum();
    Duration::from_millis(ticks * 10)
}

fn report(rows: usize, submitters: usize, took: Duration, mut waits: Vec<Duration>) {
    waits.sort_unstable();
    let at = |per_mille: usize| waits[(waits.len() - 1) * per_mille / 1000];
    println!(
        "{rows} rows before, {submitters} submitters: {:.0} issuances/s, p50 {:?}, p99 {:?}, p99.9 {:?}",
        waits.len() as f64 / took.as_secs_f64(),
        at(500),
        at(990),
        at(999),
    );
}

async fn read(store: &Store) {
    let time = Instant::now();
    let count = store.issued_count().await.unwrap();
    println!("count: {count} in {:?}", time.elapsed());
    let time = Instant::now();
    let page = store
        .list_issued(IssuedFilter::default(), 100, None)
        .await
        .unwrap();
    println!(
        "first page: {} rows in {:?}",
        page.items.len(),
        time.elapsed()
    );
    let filter = IssuedFilter {
        profile: Some("leaf-server".to_owned()),
    };
    let time = Instant::now();
    let page = store.list_issued(filter, 100, None).await.unwrap();
    println!(
        "first page of a profile: {} rows in {:?}",
        page.items.len(),
        time.elapsed()
    );
    let serial = page.items[50].serial;
    let time = Instant::now();
    store.find_issued(&serial).await.unwrap().unwrap();
    println!("one certificate in {:?}", time.elapsed());
}

fn fill(path: &Path, rows: usize) {
    let connection = Connection::open(path).unwrap();
    connection
        .execute_batch(&format!(
            "PRAGMA synchronous = OFF; PRAGMA cache_size = -400000;
             BEGIN;
             WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {rows})
             INSERT INTO audit SELECT i, i, printf('%.600c', 'x'), printf('%.86c', 'y') FROM n;
             WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {rows})
             INSERT INTO certificate SELECT i, randomblob(16), i, i, i, i, 'leaf-' || (i % 10),
                 'CN=admin', 'CN=host.example', printf('%.40c', '0'), '[\"host.example\"]',
                 randomblob(750) FROM n;
             COMMIT;"
        ))
        .unwrap();
}
