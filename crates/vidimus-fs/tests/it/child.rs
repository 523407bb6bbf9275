//! Work that needs a process of its own, which may be killed: the test binary started again, with
//! the name of the work in its environment.

use std::env;
use std::ffi::OsStr;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use vidimus_fs::lock::DirLock;
use vidimus_fs::{Mode, durable};

const WORK: &str = "VIDIMUS_FS_TEST_WORK";
const PATH: &str = "VIDIMUS_FS_TEST_PATH";

/// The command that does `work` on `path` in a process of its own, behind a shell that first runs
/// `before` (a `ulimit`).
pub(crate) fn command(work: &str, path: &Path, before: &str) -> Command {
    let mut command = Command::new("sh");
    command
        .arg("-c")
        .arg(format!(
            "{before}\nexec \"$0\" child::works_when_it_is_told_to --exact --nocapture"
        ))
        .arg(env::current_exe().unwrap())
        .env(WORK, work)
        .env(PATH, path)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// Not a test by itself: does what [`command`] asks for, and nothing without it.
#[test]
fn works_when_it_is_told_to() {
    let Some(work) = env::var_os(WORK) else {
        return;
    };
    let path = PathBuf::from(env::var_os(PATH).unwrap());
    if work == OsStr::new("write") {
        durable::write(path, &vec![b'n'; 1 << 20], Mode::Private).unwrap();
    } else if work == OsStr::new("create") {
        durable::create_new(path, &vec![b'n'; 1 << 20], Mode::Private).unwrap();
    } else if work == OsStr::new("lock") {
        let _lock = DirLock::acquire(path).unwrap();
        println!("locked");
        std::io::stdout().flush().unwrap();
        // Until the parent closes our input, or kills us.
        let _read = std::io::stdin().read(&mut [0]);
    }
}
