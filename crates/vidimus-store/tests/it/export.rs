//! The daily files.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use tempfile::TempDir;
use tokio_util::sync::CancellationToken;
use vidimus_store::export::{AuditFiles, ExportError};
use vidimus_store::suite::{audit_seed, draft};
use vidimus_store::verify::{self, Verdict};
use vidimus_store::{Options, Store};

/// 2030-01-01T00:00:00Z.
const NEW_YEAR: u64 = 1_893_456_000;
const DAY: u64 = 86_400;
const DEADLINE: Duration = Duration::from_secs(30);

/// A store with a clock to set, and the folder of its files.
struct Bench {
    dir: TempDir,
    clock: Arc<AtomicU64>,
}

impl Bench {
    fn new() -> Self {
        Self {
            dir: tempfile::tempdir().unwrap(),
            clock: Arc::new(AtomicU64::new(NEW_YEAR)),
        }
    }

    fn open(&self) -> Store {
        let clock = Arc::clone(&self.clock);
        let options = Options {
            clock: Arc::new(move || {
                SystemTime::UNIX_EPOCH + Duration::from_secs(clock.load(Ordering::Relaxed))
            }),
            ..Options::default()
        };
        Store::open_with(
            self.dir.path().join("vidimus.db"),
            audit_seed().key(),
            options,
        )
        .unwrap()
    }

    fn audit(&self) -> PathBuf {
        self.dir.path().join("audit")
    }

    fn file(&self, day: &str) -> PathBuf {
        self.audit().join(format!("{day}.log"))
    }

    fn set_day(&self, day: u64) {
        self.clock.store(NEW_YEAR + day * DAY, Ordering::Relaxed);
    }

    /// Demands that the files are the log, line for line.
    async fn check(&self, store: &Store) {
        let lines = store.audit_lines(1, 100_000).await.unwrap();
        let expected: String = lines.iter().map(|line| line.text() + "\n").collect();
        let mut days = days(&self.audit());
        days.sort();
        let found: String = days
            .iter()
            .map(|day| fs::read_to_string(day).unwrap())
            .collect();
        assert_eq!(found, expected);
        let head = store.audit_head().await.unwrap();
        let verdict = verify::path(self.audit(), audit_seed().key().public(), Some(head));
        assert!(matches!(verdict, Ok(Verdict::Intact(_))), "{verdict:?}");
    }
}

fn days(dir: &Path) -> Vec<PathBuf> {
    fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|suffix| suffix == "log"))
        .collect()
}

async fn entries(store: &Store, count: u64) {
    for _ in 0..count {
        store
            .append_audit(draft("IssueLeaf").with("note", "two words"))
            .await
            .unwrap();
    }
}

fn append(path: &Path, text: &str) {
    let mut file = OpenOptions::new().append(true).open(path).unwrap();
    file.write_all(text.as_bytes()).unwrap();
}

/// C14.
#[tokio::test]
async fn each_day_has_its_file_for_its_owner_alone() {
    let bench = Bench::new();
    let store = bench.open();
    let files = AuditFiles::new(bench.audit(), store.clone());
    assert_eq!(files.catch_up().await.unwrap(), 0);
    entries(&store, 3).await;
    bench.set_day(1);
    entries(&store, 2).await;
    assert_eq!(files.catch_up().await.unwrap(), 5);
    bench.set_day(40);
    entries(&store, 1).await;
    assert_eq!(files.catch_up().await.unwrap(), 6);
    assert_eq!(files.catch_up().await.unwrap(), 6);
    bench.check(&store).await;
    for (day, lines) in [("2030-01-01", 3), ("2030-01-02", 2), ("2030-02-10", 1)] {
        let path = bench.file(day);
        assert_eq!(
            fs::read_to_string(&path).unwrap().lines().count(),
            lines,
            "{day}"
        );
        assert_eq!(
            fs::metadata(&path).unwrap().permissions().mode() & 0o777,
            0o600
        );
    }
    let mode = fs::metadata(bench.audit()).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
    assert_eq!(files.status().borrow().exported_seq, 6);
}

/// C14. Whatever a crash leaves of the last line, the next start makes it whole, once.
#[tokio::test]
async fn a_torn_last_line_is_written_again_and_no_line_twice() {
    let bench = Bench::new();
    let store = bench.open();
    entries(&store, 4).await;
    AuditFiles::new(bench.audit(), store.clone())
        .catch_up()
        .await
        .unwrap();
    let whole = fs::read(bench.file("2030-01-01")).unwrap();
    let line = whole.len() / 4;
    for kept in [
        whole.len(),
        whole.len() - 1,
        whole.len() - line / 2,
        line * 3 + 1,
        line * 2,
        1,
        0,
    ] {
        fs::File::create(bench.file("2030-01-01"))
            .unwrap()
            .write_all(&whole[..kept])
            .unwrap();
        let reached = AuditFiles::new(bench.audit(), store.clone())
            .catch_up()
            .await
            .unwrap();
        assert_eq!(reached, 4, "{kept} bytes kept");
        bench.check(&store).await;
    }
}

/// C14. Many entries while nobody exports (more than one round takes), and a reopening.
#[tokio::test]
async fn a_start_catches_up_with_all_that_was_committed() {
    let bench = Bench::new();
    let store = bench.open();
    let mut writers = tokio::task::JoinSet::new();
    for _ in 0..30 {
        let store = store.clone();
        writers.spawn(async move { entries(&store, 100).await });
    }
    writers.join_all().await;
    drop(store);
    let store = bench.open();
    let files = AuditFiles::new(bench.audit(), store.clone());
    assert_eq!(files.catch_up().await.unwrap(), 3000);
    bench.check(&store).await;
}

/// C14. The newest file is the store's: taken away, it is made again from its first entry. Older
/// ones are the operator's, even if all files are moved.
#[tokio::test]
async fn moved_files_are_left_moved_but_for_the_newest() {
    let bench = Bench::new();
    let store = bench.open();
    let files = AuditFiles::new(bench.audit(), store.clone());
    entries(&store, 2).await;
    files.catch_up().await.unwrap();
    bench.set_day(1);
    entries(&store, 2).await;
    files.catch_up().await.unwrap();

    let newest = fs::read(bench.file("2030-01-02")).unwrap();
    fs::remove_file(bench.file("2030-01-01")).unwrap();
    fs::rename(bench.file("2030-01-02"), bench.dir.path().join("taken")).unwrap();
    // Noticed while running, and by a new start.
    for files in [files, AuditFiles::new(bench.audit(), store.clone())] {
        assert_eq!(files.catch_up().await.unwrap(), 4);
        assert_eq!(fs::read(bench.file("2030-01-02")).unwrap(), newest);
        assert!(!bench.file("2030-01-01").exists());
        fs::remove_file(bench.file("2030-01-02")).unwrap();
    }
    bench.set_day(2);
    entries(&store, 1).await;
    let files = AuditFiles::new(bench.audit(), store.clone());
    assert_eq!(files.catch_up().await.unwrap(), 5);
    assert_eq!(fs::read(bench.file("2030-01-02")).unwrap(), newest);
    let third = fs::read_to_string(bench.file("2030-01-03")).unwrap();
    assert_eq!(third.lines().count(), 1);
    let verdict = verify::path(bench.file("2030-01-03"), audit_seed().key().public(), None);
    assert!(matches!(verdict, Ok(Verdict::Intact(found)) if found.start.seq == 4));
}

/// C14. Without the cursor file, the files themselves tell.
#[tokio::test]
async fn a_lost_cursor_is_no_loss() {
    let bench = Bench::new();
    let store = bench.open();
    entries(&store, 3).await;
    AuditFiles::new(bench.audit(), store.clone())
        .catch_up()
        .await
        .unwrap();
    fs::remove_file(bench.audit().join(".cursor")).unwrap();
    // As if it had been stopped between making the next day's file and its first line.
    fs::File::create(bench.file("2030-01-02")).unwrap();
    bench.set_day(1);
    entries(&store, 3).await;
    assert_eq!(
        AuditFiles::new(bench.audit(), store.clone())
            .catch_up()
            .await
            .unwrap(),
        6
    );
    bench.check(&store).await;
}

/// C14. A clock that was set back doesn't put later entries before earlier ones.
#[tokio::test]
async fn a_clock_set_back_goes_on_in_the_newest_file() {
    let bench = Bench::new();
    let store = bench.open();
    let files = AuditFiles::new(bench.audit(), store.clone());
    for day in [3, 1, 0, 3, 4] {
        bench.set_day(day);
        entries(&store, 2).await;
        files.catch_up().await.unwrap();
    }
    bench.check(&store).await;
    assert_eq!(days(&bench.audit()).len(), 2);
}

/// C14. Files that end with what the store doesn't have (another log, or a store that was put back
/// to an older state) are evidence: they are not touched.
#[tokio::test]
async fn files_that_know_more_than_the_store_are_left_alone() {
    let bench = Bench::new();
    let store = bench.open();
    entries(&store, 3).await;
    let files = AuditFiles::new(bench.audit(), store.clone());
    files.catch_up().await.unwrap();

    let other = Bench::new();
    let shorter = other.open();
    entries(&shorter, 2).await;
    let before = fs::read(bench.file("2030-01-01")).unwrap();
    let foreign = AuditFiles::new(bench.audit(), shorter.clone());
    let refused = foreign.catch_up().await;
    assert!(
        matches!(refused, Err(ExportError::Foreign { seq: 3, .. })),
        "{refused:?}"
    );
    let status = foreign.status().borrow().clone();
    assert!(
        status.failures == 1 && status.last_error.is_some(),
        "{status:?}"
    );
    assert_eq!(fs::read(bench.file("2030-01-01")).unwrap(), before);

    append(&bench.file("2030-01-01"), "something else\n");
    let refused = AuditFiles::new(bench.audit(), store.clone())
        .catch_up()
        .await;
    assert!(
        matches!(refused, Err(ExportError::Foreign { seq: 0, .. })),
        "{refused:?}"
    );
    fs::File::create(bench.file("2030-01-01"))
        .unwrap()
        .write_all(&before)
        .unwrap();
    assert_eq!(files.catch_up().await.unwrap(), 3);
}

/// C14.
#[tokio::test]
async fn a_folder_open_to_others_is_refused() {
    let bench = Bench::new();
    let store = bench.open();
    fs::create_dir(bench.audit()).unwrap();
    fs::set_permissions(bench.audit(), fs::Permissions::from_mode(0o755)).unwrap();
    let files = AuditFiles::new(bench.audit(), store.clone());
    let refused = files.catch_up().await;
    assert!(
        matches!(refused, Err(ExportError::Folder(_))),
        "{refused:?}"
    );
    fs::set_permissions(bench.audit(), fs::Permissions::from_mode(0o700)).unwrap();
    files.catch_up().await.unwrap();
}

/// C14. In the background the files follow within a moment; a failure is visible, and over as soon
/// as its cause is; at the end, the files have everything.
#[tokio::test]
async fn the_background_task_follows_survives_failures_and_ends_complete() {
    let bench = Bench::new();
    let store = bench.open();
    let files = AuditFiles::new(bench.audit(), store.clone());
    let mut status = files.status();
    let shutdown = CancellationToken::new();
    let mut task = tokio::task::JoinSet::new();
    task.spawn(files.run(shutdown.clone()));

    entries(&store, 3).await;
    let caught_up = status.wait_for(|status| status.exported_seq == 3);
    tokio::time::timeout(DEADLINE, caught_up)
        .await
        .unwrap()
        .unwrap();

    // The folder is gone and a file is in its place.
    fs::rename(bench.audit(), bench.dir.path().join("away")).unwrap();
    fs::File::create(bench.audit()).unwrap();
    entries(&store, 1).await;
    let failed = status.wait_for(|status| status.failures > 0);
    let error = tokio::time::timeout(DEADLINE, failed)
        .await
        .unwrap()
        .unwrap()
        .last_error
        .clone();
    assert!(error.is_some_and(|error| error.contains("not a folder")));
    fs::remove_file(bench.audit()).unwrap();
    fs::rename(bench.dir.path().join("away"), bench.audit()).unwrap();
    let recovered = status.wait_for(|status| status.failures == 0 && status.exported_seq == 4);
    tokio::time::timeout(DEADLINE, recovered)
        .await
        .unwrap()
        .unwrap();

    entries(&store, 5).await;
    shutdown.cancel();
    tokio::time::timeout(DEADLINE, task.join_all())
        .await
        .unwrap();
    bench.check(&store).await;
}
