//! Whether a server is alive at a path: it holds a lock beside it.
//!
//! The system gives a lock up when its process ends, however it ends, so it is never stale. The file stays: removing it
//! would let two processes hold locks on two files of one name.

use std::fs::{File, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};

/// Held as long as it lives.
#[derive(Debug)]
pub(super) struct Lock(File);

/// Why the lock was not taken.
pub(super) enum Untaken {
    /// A live process holds it: its id, if it had time to write it.
    Held(Option<u32>),
    Failed(io::Error),
}

impl Lock {
    /// Takes the lock of `path` without waiting.
    pub(super) fn take(path: &Path) -> Result<Self, Untaken> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let opened = rustix::fs::open(file_of(path), flags, Mode::RUSR | Mode::WUSR);
        let mut file = File::from(opened.map_err(|error| Untaken::Failed(error.into()))?);
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(Untaken::Held(holder(&mut file))),
            Err(TryLockError::Error(error)) => return Err(Untaken::Failed(error)),
        }
        // Only a hint for the next one's message; a full disk is no reason to refuse the lock.
        let _hint = write_holder(&mut file);
        Ok(Self(file))
    }
}

impl Drop for Lock {
    /// Lets go by name: a child that another thread has just forked has a copy of the descriptor until it executes its
    /// program, and the lock would be held for as long.
    fn drop(&mut self) {
        let _closed_next = self.0.unlock();
    }
}

fn file_of(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".lock");
    name.into()
}

fn write_holder(file: &mut File) -> io::Result<()> {
    file.set_len(0)?;
    file.rewind()?;
    writeln!(file, "{}", std::process::id())
}

fn holder(file: &mut File) -> Option<u32> {
    let mut text = String::new();
    file.take(32).read_to_string(&mut text).ok()?;
    text.trim().parse().ok()
}
