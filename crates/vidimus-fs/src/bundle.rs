//! Several files that change together.
//!
//! The layout is the one that the kubelet uses for a mounted Secret: each file's name in the
//! folder is a link to `..data/<name>`, and `..data` is a link to a folder that holds one
//! generation of all files. A new generation is complete and synced before the one rename that
//! swaps `..data`.
//!
//! Invariant: a reader who resolves `..data` once sees all files of one generation; nobody ever
//! sees a file half written. Only the newest generation is kept: an old private key does not lie
//! about, so a reader whose generation went away in between resolves `..data` again.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::{self, DirBuilder, File, Permissions, TryLockError};
use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use crate::durable::{self, Mode, WriteError, folder_of, temporary_beside};
use crate::read::{self, ReadError};

const DATA: &str = "..data";
const GENERATION: &str = "..generation-";
/// Files that were laid out by hand are taken over into the layout; larger ones are not ours.
const MAX_ADOPTED_BYTES: u64 = 64 << 20;
/// How long somebody else's turn at a folder is waited for; a turn is a matter of milliseconds.
pub const PATIENCE: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(10);

/// Why the new files are not what readers see. Up to the swap of `..data` they see the old ones.
#[derive(Debug, thiserror::Error)]
pub enum PublishError {
    /// A file's name has a folder in it, starts with `..` or is empty.
    #[error("{name:?} can't be the name of a file in a bundle")]
    Name {
        /// The name.
        name: String,
    },
    /// The folder, or the new generation's folder in it, could not be made or listed.
    #[error("prepare {path}")]
    Prepare {
        /// The folder.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// Somebody else's turn at the folder did not end.
    #[error("another program has been changing {path} for {} s and has not finished", waited.as_secs())]
    Busy {
        /// The folder.
        path: PathBuf,
        /// How long its end was waited for.
        waited: Duration,
    },
    /// A file that was there before could not be taken over.
    #[error(transparent)]
    Adopt(#[from] ReadError),
    /// A file of the new generation could not be written.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// A link could not be put in its place.
    #[error("link {path}")]
    Link {
        /// The link.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// The new files are in use, but something old could not be removed.
    #[error("remove {path}, which is no longer in use")]
    Remove {
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
}

/// Makes `files` (name, content, mode) the content of `dir`, all in one step. Names published
/// before and not named now go away. The folder and those above it are made if they are missing,
/// with mode 0755: who may read is for each file's mode to say.
///
/// Files that were put there by hand under the same names are taken over first, so that even the
/// first publishing over them is one step for readers.
///
/// # Errors
/// [`PublishError`]; after any but [`PublishError::Remove`] readers see the old files.
pub fn publish(dir: impl AsRef<Path>, files: &[(&str, &[u8], Mode)]) -> Result<(), PublishError> {
    let dir = dir.as_ref();
    check_names(files)?;
    create_public(dir)?;
    Turn::take(dir, PATIENCE)?.publish(files)
}

/// The right to publish into a folder. Others wait until it is dropped, so that what its holder publishes can be made of
/// what it finds there. Two publishers at a time would also take each other's generation away.
#[derive(Debug)]
pub struct Turn {
    dir: PathBuf,
    _lock: File,
}

impl Turn {
    /// Waits on this thread until nobody else has it, but no longer than `patience`. The folder must be there.
    ///
    /// # Errors
    /// [`PublishError::Prepare`] and [`PublishError::Busy`].
    pub fn take(dir: impl AsRef<Path>, patience: Duration) -> Result<Self, PublishError> {
        let path = dir.as_ref().to_owned();
        let began = Instant::now();
        let lock = match File::open(&path) {
            Ok(folder) => folder,
            Err(source) => return Err(PublishError::Prepare { path, source }),
        };
        loop {
            match lock.try_lock() {
                Ok(()) => {
                    return Ok(Self {
                        dir: path,
                        _lock: lock,
                    });
                }
                Err(TryLockError::Error(source)) => {
                    return Err(PublishError::Prepare { path, source });
                }
                Err(TryLockError::WouldBlock) if began.elapsed() >= patience => {
                    return Err(PublishError::Busy {
                        path,
                        waited: patience,
                    });
                }
                // A blocked wait for a lock can't be given a deadline.
                Err(TryLockError::WouldBlock) => thread::sleep(PAUSE),
            }
        }
    }

    /// As [`publish`], and the turn goes on.
    ///
    /// # Errors
    /// [`PublishError`]; after any but [`PublishError::Remove`] readers see the old files.
    pub fn publish(&self, files: &[(&str, &[u8], Mode)]) -> Result<(), PublishError> {
        check_names(files)?;
        let dir = self.dir.as_path();
        adopt(dir, files)?;
        let names: Vec<&str> = files.iter().map(|(name, _, _)| *name).collect();
        let generation = write_generation(dir, files)?;
        // New names first: they lead nowhere until the swap, then all appear together.
        link_names(dir, &names)?;
        replace_link(dir, OsStr::new(DATA), &generation)?;
        durable::sync_folder(dir)?;
        remove_old(dir, &names, &generation)
    }
}

/// Brings regular files of the names to be published into the layout, content unchanged.
fn adopt(dir: &Path, files: &[(&str, &[u8], Mode)]) -> Result<(), PublishError> {
    let is_link = |name: &&str| fs::symlink_metadata(dir.join(name)).is_ok_and(|m| m.is_symlink());
    let is_there = |name: &&str| fs::symlink_metadata(dir.join(name)).is_ok();
    if files
        .iter()
        .all(|(name, ..)| !is_there(name) || is_link(name))
    {
        return Ok(());
    }
    let mut present = BTreeMap::new();
    for name in listing(&dir.join(DATA)).unwrap_or_default() {
        if let Some(name) = name.to_str() {
            present.insert(name.to_owned(), dir.join(DATA).join(name));
        }
    }
    for (name, ..) in files.iter().filter(|(name, ..)| is_there(name)) {
        present.insert((*name).to_owned(), dir.join(name));
    }
    let mut contents = Vec::new();
    for (name, path) in &present {
        let mode = match fs::metadata(path) {
            Ok(metadata) if metadata.permissions().mode() & 0o077 == 0 => Mode::Private,
            Ok(_) => Mode::Public,
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(source) => {
                let path = path.clone();
                return Err(ReadError::Read { path, source }.into());
            }
        };
        contents.push((name.as_str(), read::bounded(path, MAX_ADOPTED_BYTES)?, mode));
    }
    let adopted: Vec<(&str, &[u8], Mode)> = contents
        .iter()
        .map(|(name, bytes, mode)| (*name, bytes.as_slice(), *mode))
        .collect();
    let generation = write_generation(dir, &adopted)?;
    replace_link(dir, OsStr::new(DATA), &generation)?;
    let names: Vec<&str> = adopted.iter().map(|(name, ..)| *name).collect();
    link_names(dir, &names)
}

/// Writes the files into a new folder and syncs it; its name is returned.
fn write_generation(dir: &Path, files: &[(&str, &[u8], Mode)]) -> Result<OsString, PublishError> {
    let newest = listing(dir)?
        .iter()
        .filter_map(|name| name.to_str()?.strip_prefix(GENERATION)?.parse::<u64>().ok())
        .max()
        .unwrap_or(0);
    let name = OsString::from(format!("{GENERATION}{:020}", newest.saturating_add(1)));
    let folder = dir.join(&name);
    make_folder(&folder)?;
    match fill(&folder, files) {
        Ok(()) => Ok(name),
        Err(error) => {
            // It may hold a private key that nobody will use. What can't be removed now goes with
            // the next publication.
            let _leftover = fs::remove_dir_all(&folder);
            Err(error)
        }
    }
}

fn fill(folder: &Path, files: &[(&str, &[u8], Mode)]) -> Result<(), PublishError> {
    for (file, bytes, mode) in files {
        durable::create_new(folder.join(file), bytes, *mode)?;
    }
    durable::sync_folder(folder)?;
    Ok(())
}

fn link_names(dir: &Path, names: &[&str]) -> Result<(), PublishError> {
    for name in names {
        let target = Path::new(DATA).join(name);
        if fs::read_link(dir.join(name)).is_ok_and(|found| found == target) {
            continue;
        }
        replace_link(dir, OsStr::new(name), target.as_os_str())?;
    }
    Ok(())
}

/// Makes `dir/name` a link to `target`, whatever it was, in one step.
fn replace_link(dir: &Path, name: &OsStr, target: &OsStr) -> Result<(), PublishError> {
    let path = dir.join(name);
    let temporary = temporary_beside(&path, name);
    // The folder is locked, so a link of that name is a leftover of an earlier process.
    let _leftover = fs::remove_file(&temporary);
    symlink(target, &temporary)
        .and_then(|()| {
            fs::rename(&temporary, &path).inspect_err(|_| {
                let _leftover = fs::remove_file(&temporary);
            })
        })
        .map_err(|source| PublishError::Link { path, source })
}

/// Removes what the swap left behind: other generations, and links whose name is not published.
fn remove_old(dir: &Path, names: &[&str], generation: &OsStr) -> Result<(), PublishError> {
    for name in listing(dir)? {
        let path = dir.join(&name);
        let is_generation = name
            .to_str()
            .is_some_and(|name| name.starts_with(GENERATION));
        let removed = if is_generation && name != generation {
            fs::remove_dir_all(&path)
        } else if !names.iter().any(|published| name == OsStr::new(published))
            && fs::read_link(&path).is_ok_and(|target| target.starts_with(DATA))
        {
            fs::remove_file(&path)
        } else {
            continue;
        };
        removed.map_err(|source| PublishError::Remove { path, source })?;
    }
    durable::sync_folder(dir)?;
    Ok(())
}

fn check_names(files: &[(&str, &[u8], Mode)]) -> Result<(), PublishError> {
    for (name, ..) in files {
        let plain = Path::new(name).file_name() == Some(OsStr::new(name));
        if !plain || name.starts_with("..") {
            return Err(PublishError::Name {
                name: (*name).to_owned(),
            });
        }
    }
    Ok(())
}

fn create_public(dir: &Path) -> Result<(), PublishError> {
    if dir.is_dir() {
        return Ok(());
    }
    let above = folder_of(dir);
    if above != dir {
        create_public(above)?;
    }
    make_folder(dir)?;
    durable::sync_folder(above)?;
    Ok(())
}

fn make_folder(path: &Path) -> Result<(), PublishError> {
    DirBuilder::new()
        .mode(0o755)
        .create(path)
        .and_then(|()| fs::set_permissions(path, Permissions::from_mode(0o755)))
        .map_err(|source| PublishError::Prepare {
            path: path.to_owned(),
            source,
        })
}

fn listing(dir: &Path) -> Result<Vec<OsString>, PublishError> {
    fs::read_dir(dir)
        .and_then(|entries| entries.map(|entry| entry.map(|e| e.file_name())).collect())
        .map_err(|source| PublishError::Prepare {
            path: dir.to_owned(),
            source,
        })
}
