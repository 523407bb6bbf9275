//! Events of the system for the watched folders, re-armed when a folder is replaced.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use notify::event::{AccessKind, AccessMode};
use notify::{Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher};
use tokio::sync::Notify;

/// Wakes the driver when something happens in a watched folder.
pub(crate) struct Notices {
    watcher: Option<RecommendedWatcher>,
    folders: Vec<Folder>,
    wake: Arc<Notify>,
    warned: bool,
}

struct Folder {
    path: PathBuf,
    /// Device and inode that the watch is on; `None` if there is no watch.
    armed: Option<(u64, u64)>,
}

impl Notices {
    pub(crate) fn new(folders: Vec<PathBuf>, enabled: bool) -> Self {
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
        let folder = |path| Folder { path, armed: None };
        let mut notices = Self {
            warned: watcher.is_none(),
            watcher,
            folders: folders.into_iter().map(folder).collect(),
            wake,
        };
        notices.arm();
        notices
    }

    /// Watches these folders instead of those so far.
    pub(crate) fn follow(&mut self, folders: Vec<PathBuf>) {
        if let Some(watcher) = self.watcher.as_mut() {
            let left = self
                .folders
                .iter()
                .filter(|folder| folder.armed.is_some() && !folders.contains(&folder.path));
            for folder in left {
                // The watch may be gone with its folder already, which is all we want.
                let _gone = watcher.unwatch(&folder.path);
            }
        }
        self.folders.retain(|folder| folders.contains(&folder.path));
        for path in folders {
            if !self.folders.iter().any(|folder| folder.path == path) {
                self.folders.push(Folder { path, armed: None });
            }
        }
        self.arm();
    }

    /// Watches every folder, also where it is no longer the folder that was.
    pub(crate) fn arm(&mut self) {
        let Some(watcher) = self.watcher.as_mut() else {
            return;
        };
        for folder in &mut self.folders {
            let present = identity_of(&folder.path);
            if folder.armed != present && folder.armed.take().is_some() {
                // The watch may be gone with its folder already, which is all we want.
                let _gone = watcher.unwatch(&folder.path);
            }
            // Also where it seems to be watched: a folder that was removed and made again can have the old one's number, and
            // to a watch that is alive this does nothing.
            match watcher.watch(&folder.path, RecursiveMode::NonRecursive) {
                Ok(()) => {
                    if folder.armed.is_none() {
                        self.wake.notify_one();
                    }
                    folder.armed = present;
                }
                Err(error) => {
                    folder.armed = None;
                    if !self.warned {
                        self.warned = true;
                        tracing::warn!(
                            folder = %folder.path.display(),
                            error = %error,
                            "cannot watch a folder for changes; it is polled instead"
                        );
                    }
                }
            }
        }
    }

    /// Whether every folder is watched.
    pub(crate) fn is_armed(&self) -> bool {
        self.watcher.is_some() && self.folders.iter().all(|folder| folder.armed.is_some())
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
