//! Events of the system for the watched folders, re-armed when a folder is replaced.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use notify::event::{AccessKind, AccessMode};
use notify::{Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher};
use tokio::sync::Notify;

use super::settle::blocking;

/// Wakes the driver when something happens in a watched folder.
pub(crate) struct Notices {
    /// Held by one look at a time, on a thread that may block.
    watched: Arc<Mutex<Watched>>,
    wake: Arc<Notify>,
    armed: bool,
    warned: bool,
}

impl Notices {
    /// No folder is watched yet, and none ever unless `enabled`.
    pub(crate) fn new(enabled: bool) -> Self {
        let wake = Arc::new(Notify::new());
        let notify = Arc::clone(&wake);
        let watcher = enabled
            .then(|| {
                notify::recommended_watcher(move |event| {
                    if may_be_a_change(&event) {
                        notify.notify_one();
                    }
                })
            })
            .transpose()
            .unwrap_or_else(|error| {
                tracing::warn!(
                    error = %error,
                    "cannot watch folders for changes; they are polled instead"
                );
                None
            });
        let folders = Vec::new();
        Self {
            watched: Arc::new(Mutex::new(Watched { watcher, folders })),
            wake,
            armed: false,
            warned: false,
        }
    }

    /// Watches these folders instead of those so far, also where one is no longer the folder that was. To find out which, and
    /// to watch them, can hang as a read can.
    pub(crate) async fn follow(&mut self, folders: impl FnOnce() -> Vec<PathBuf> + Send + 'static) {
        let watched = Arc::clone(&self.watched);
        let armed = blocking(move || {
            let folders = folders();
            let mut watched = watched.lock().unwrap_or_else(PoisonError::into_inner);
            watched.follow(folders)
        })
        .await;
        if armed.some_are_new {
            self.wake.notify_one();
        }
        self.armed = armed.all;
        if let Some((folder, error)) = armed.failed
            && !self.warned
        {
            self.warned = true;
            tracing::warn!(
                folder = %folder.display(),
                error = %error,
                "cannot watch a folder for changes; it is polled instead"
            );
        }
    }

    /// Whether every folder is watched.
    pub(crate) fn is_armed(&self) -> bool {
        self.armed
    }

    /// Waits for the next event. Events that came meanwhile count as one.
    pub(crate) async fn next(&self) {
        self.wake.notified().await;
    }
}

impl std::fmt::Debug for Notices {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Notices")
            .field("armed", &self.is_armed())
            .finish_non_exhaustive()
    }
}

struct Watched {
    watcher: Option<RecommendedWatcher>,
    folders: Vec<Folder>,
}

struct Folder {
    path: PathBuf,
    /// Device and inode that the watch is on; `None` if there is no watch.
    armed: Option<(u64, u64)>,
}

/// What came of watching folders.
struct Armed {
    all: bool,
    /// Whether a folder is watched that was not before: what happened there until now is no event.
    some_are_new: bool,
    failed: Option<(PathBuf, notify::Error)>,
}

impl Watched {
    fn follow(&mut self, folders: Vec<PathBuf>) -> Armed {
        let mut armed = Armed {
            all: self.watcher.is_some(),
            some_are_new: false,
            failed: None,
        };
        let Some(watcher) = self.watcher.as_mut() else {
            return armed;
        };
        self.folders.retain(|folder| {
            let stays = folders.contains(&folder.path);
            if !stays && folder.armed.is_some() {
                // The watch may be gone with its folder already, which is all we want.
                let _gone = watcher.unwatch(&folder.path);
            }
            stays
        });
        for path in folders {
            if !self.folders.iter().any(|folder| folder.path == path) {
                self.folders.push(Folder { path, armed: None });
            }
        }
        for folder in &mut self.folders {
            let present = identity_of(&folder.path);
            if folder.armed != present && folder.armed.take().is_some() {
                // As above.
                let _gone = watcher.unwatch(&folder.path);
            }
            // Also where it seems to be watched: a folder that was removed and made again can have the old one's number, and
            // to a watch that is alive this does nothing.
            match watcher.watch(&folder.path, RecursiveMode::NonRecursive) {
                Ok(()) => {
                    armed.some_are_new |= folder.armed.is_none();
                    folder.armed = present;
                }
                Err(error) => {
                    folder.armed = None;
                    armed.failed = Some((folder.path.clone(), error));
                }
            }
            armed.all &= folder.armed.is_some();
        }
        armed
    }
}

/// Everything but looking: the driver's own reads would otherwise wake it for ever.
fn may_be_a_change(event: &notify::Result<Event>) -> bool {
    match event {
        Ok(event) => match event.kind {
            EventKind::Access(access) => access == AccessKind::Close(AccessMode::Write),
            EventKind::Any
            | EventKind::Create(_)
            | EventKind::Modify(_)
            | EventKind::Remove(_)
            | EventKind::Other => true,
        },
        // An overflow, for one: something was missed.
        Err(_) => true,
    }
}

fn identity_of(path: &Path) -> Option<(u64, u64)> {
    let metadata = std::fs::metadata(path).ok()?;
    Some((metadata.dev(), metadata.ino()))
}
