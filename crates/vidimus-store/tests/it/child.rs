//! Work that needs a process of its own, which may be killed, traced, or live in a file system of
//! its own: the test binary started again, with the name of the work in its environment.

use std::env;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::Command;

const WORK: &str = "VIDIMUS_STORE_TEST_WORK";
const PATH: &str = "VIDIMUS_STORE_TEST_PATH";

/// What a child can do.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Work {
    /// Records issuances until it is killed, several at a time, and writes daily files; prints each
    /// serial number after the answer.
    Record,
    /// Records a few issuances, one after the other; prints each serial number after the answer.
    RecordInTurn,
    /// Fills the file system that the path is in, and goes on when there is room.
    FillTheDisk,
}

impl Work {
    fn name(self) -> &'static str {
        match self {
            Self::Record => "record",
            Self::RecordInTurn => "record-in-turn",
            Self::FillTheDisk => "fill-the-disk",
        }
    }
}

/// The program and the arguments that do `work` on `path`, behind `before` (`strace ...`), which is
/// a program with its arguments, or nothing.
pub(crate) fn command(work: Work, path: &Path, before: &[&OsStr]) -> Command {
    let own = env::current_exe().unwrap().into_os_string();
    let arguments = ["child::works_when_it_is_told_to", "--exact", "--nocapture"];
    let mut words: Vec<OsString> = before.iter().map(OsString::from).collect();
    words.push(own);
    words.extend(arguments.map(OsString::from));
    let mut command = Command::new(&words[0]);
    command
        .args(&words[1..])
        .env(WORK, work.name())
        .env(PATH, path);
    command
}

/// Not a test by itself: does what [`command`] asks for, and nothing without it.
#[test]
fn works_when_it_is_told_to() {
    let Some(work) = env::var_os(WORK) else {
        return;
    };
    let path = PathBuf::from(env::var_os(PATH).unwrap());
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        match work.to_str().unwrap() {
            "record" => crate::kill::record(&path).await,
            "record-in-turn" => crate::syncs::record_in_turn(&path).await,
            "fill-the-disk" => crate::full::fill_the_disk(&path).await,
            other => panic!("no such work: {other}"),
        }
    });
}
