//! The order of system calls: the write-ahead log is synced before each answer.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs;
use std::path::Path;
use std::time::Duration;

use vidimus_store::Store;
use vidimus_store::suite::{Authority, audit_seed, draft};
use vidimus_testkit::Process;

use crate::child::{self, Work};

/// Half of them issuances, half of them other entries (a refusal is on disk before its answer too).
const ANSWERS: usize = 20;

/// The child: one after the other, so that each answer has its own commit.
pub(crate) async fn record_in_turn(dir: &Path) {
    let store = Store::open(dir.join("vidimus.db"), audit_seed().key()).unwrap();
    let authority = Authority::new();
    for turn in 0..ANSWERS {
        if turn % 2 == 0 {
            store
                .record_issuance(authority.issuance("leaf"))
                .await
                .unwrap();
        } else {
            store.append_audit(draft("refused")).await.unwrap();
        }
        println!("answered {turn}");
    }
}

/// X10, C14. Traced by strace: between two answers the log is written, and after its last write
/// and before the next answer it is synced.
#[test]
fn the_log_is_synced_before_each_answer() {
    let dir = tempfile::tempdir().unwrap();
    let trace = dir.path().join("trace");
    let strace = [
        "strace",
        "-f",
        "-y",
        "-s",
        "64",
        "-e",
        "trace=write,writev,pwrite64,pwritev,pwritev2,fsync,fdatasync,sync_file_range",
        "-o",
    ];
    let mut before: Vec<&OsStr> = strace.iter().map(OsStr::new).collect();
    before.push(trace.as_os_str());
    let command = child::command(Work::RecordInTurn, dir.path(), &before);
    let found = std::process::Command::new("strace").arg("-V").output();
    assert!(
        found.is_ok_and(|output| output.status.success()),
        "this test needs the program strace (apt-get install strace)"
    );
    let mut process = Process::spawn(command);
    let status = process.wait_exit(Duration::from_secs(120));
    assert!(status.success(), "{:?}", process.lines());

    let trace = fs::read_to_string(&trace).unwrap();
    let answers = judge(&trace).unwrap_or_else(|wrong| panic!("{wrong}\n{trace}"));
    assert_eq!(answers, ANSWERS, "{trace}");
}

/// X10. The judgement itself: a trace without the sync, or with it too late, is refused.
#[test]
fn a_trace_without_a_sync_in_its_place_is_refused() {
    let write = "7 pwrite64(5</d/vidimus.db-wal>, \"x\"..., 24, 0) = 24\n";
    let sync = "7 fdatasync(5</d/vidimus.db-wal>) = 0\n";
    let other = "7 fdatasync(5</d/2030-01-01.log>) = 0\n";
    let answer = "9 write(1<pipe:[3]>, \"answered 1\\n\", 11) = 11\n";
    let begun = "7 fdatasync(5</d/vidimus.db-wal> <unfinished ...>\n";
    let ended = "7 <... fdatasync resumed>) = 0\n";
    let good = [
        [write, sync, answer].concat(),
        [write, begun, ended, answer].concat(),
    ];
    for trace in good {
        assert_eq!(judge(&trace), Ok(1), "{trace}");
        assert_eq!(judge(&(trace.clone() + &trace)), Ok(2));
    }
    let bad = [
        answer.to_owned(),
        [write, answer, sync].concat(),
        [write, other, answer].concat(),
        [write, sync, write, answer].concat(),
        [write, begun, answer, ended].concat(),
        [write, sync, answer, answer].concat(),
        [
            write,
            "7 fdatasync(5</d/vidimus.db-wal>) = -1 EIO (Input/output error)\n",
            answer,
        ]
        .concat(),
    ];
    for trace in bad {
        assert!(judge(&trace).is_err(), "{trace}");
    }
}

/// Walks over the calls; returns how many answers there are, each with its sync before it.
fn judge(trace: &str) -> Result<usize, String> {
    let mut answers = 0;
    // What has happened to the log since the last answer.
    let (mut written, mut synced) = (false, false);
    let mut syncing: BTreeSet<&str> = BTreeSet::new();
    let mut writing: BTreeMap<&str, &str> = BTreeMap::new();
    for line in trace.lines() {
        let Some((thread, call)) = line.split_once(' ') else {
            continue;
        };
        let call = call.trim_start();
        let of_log = call.contains("-wal>");
        let sync = call.starts_with("fdatasync(") || call.starts_with("fsync(");
        let done = call.ends_with("= 0");
        let resumed_sync = call.starts_with("<... fdatasync") || call.starts_with("<... fsync");
        if sync && of_log {
            if call.contains("<unfinished") {
                syncing.insert(thread);
            } else {
                synced = done;
            }
        } else if resumed_sync && syncing.remove(thread) {
            synced = done;
        } else if call.starts_with("pwrite") && of_log {
            (written, synced) = (true, false);
            if call.contains("<unfinished") {
                writing.insert(thread, call);
            }
        } else if call.starts_with("<... pwrite") && writing.remove(thread).is_some() {
            synced = false;
        } else if call.contains("\"answered ") {
            if !(written && synced) {
                return Err(format!(
                    "log written: {written}, synced after it: {synced}, before: {line}"
                ));
            }
            (written, synced) = (false, false);
            answers += 1;
        }
    }
    Ok(answers)
}
