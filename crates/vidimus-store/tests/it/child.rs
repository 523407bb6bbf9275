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
    /// Checks the store in a folder that can't be written to.
    ReadOnlyMedium,
    /// Fills the file system that the path is in, and goes on when there is room.
    FillTheDisk,
}

impl Work {
    fn name(self) -> &'static str {
        match self {
            Self::Record => "record",
            Self::RecordInTurn => "record-in-turn",
            Self::ReadOnlyMedium => "read-only-medium",
            Self::FillTheDisk => "fill-the-disk",
        }
    }
}

/// The program and the arguments that do `work` on `path`, behind `before` (`strace ...`), which is
/// a program with its arguments, or nothing.
pub(crate) fn command(work: Work, path: &Path, before: &[impl AsRef<OsStr>]) -> Command {
    let own = env::current_exe().unwrap().into_os_string();
    let arguments = ["child::works_when_it_is_told_to", "--exact", "--nocapture"];
    let mut words: Vec<OsString> = before.iter().map(|word| word.as_ref().to_owned()).collect();
    words.push(own);
    words.extend(arguments.map(OsString::from));
    let mut command = Command::new(&words[0]);
    command
        .args(&words[1..])
        .env(WORK, work.name())
        .env(PATH, path);
    command
}

/// A shell that mounts a tmpfs at `mount`, in a mount namespace of its own, runs `then` and becomes
/// the command behind it; nothing if the kernel gives tests no such namespace.
pub(crate) fn in_own_mount(mount: &Path, then: &str) -> Option<Vec<OsString>> {
    let tmpfs = format!("mount -t tmpfs -o size=4m tmpfs '{}'", mount.display());
    let shell = ["unshare", "-rm", "sh", "-c"].map(OsString::from);
    let possible = Command::new(&shell[0])
        .args(&shell[1..])
        .arg(&tmpfs)
        .status();
    if !possible.is_ok_and(|status| status.success()) {
        let why = "no mount namespace to be had here";
        assert!(env::var_os("VIDIMUS_TEST_ALL").is_none(), "{why}");
        eprintln!("not tested: {why}");
        return None;
    }
    let script = format!("{tmpfs} && {then} exec \"$0\" \"$@\"");
    Some(shell.into_iter().chain([script.into()]).collect())
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
            "read-only-medium" => crate::files::check_read_only(&path),
            "fill-the-disk" => crate::full::fill_the_disk(&path).await,
            other => panic!("no such work: {other}"),
        }
    });
}
