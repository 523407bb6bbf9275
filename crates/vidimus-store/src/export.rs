//! The daily files: the audit log once more, in plain files that other programs can ship.
//!
//! The table is the log; the files follow it. An entry is written to `YYYY-MM-DD.log` (its UTC day)
//! after its commit, within a moment, and synced. The files themselves say how far they reach,
//! so there is no second truth to fall out of step: after a crash, a torn last line is cut off
//! and writing goes on with the entry after the last whole one. No entry is written twice, none is
//! left out.
//!
//! Two rules that follow from it:
//! - Days never go back. After a clock was set back, entries go on into the newest file, so that
//!   the files in the order of their names are the log in the order of its entries.
//! - The newest file is the store's, and is made again if it is taken away. Older ones are the
//!   operator's, to be moved or deleted. `.cursor` remembers which is the newest, and its first
//!   entry, for when all files were moved.

pub(crate) mod place;

use std::error::Error;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::watch;
use tokio::{task, time};
use tokio_util::sync::CancellationToken;
use vidimus_fs::dir::DirError;
use vidimus_fs::durable::WriteError;
use vidimus_fs::read::ReadError;

use crate::error::StoreError;
use crate::reader::Reader;
use crate::store::Store;
use place::Place;

/// How many entries are read and written at a time.
const BATCH: u32 = 1024;
/// How long entries gather before they are written: under load one sync of the file pays for many
/// of them, and the disk is left to the commits.
const GATHER: Duration = Duration::from_millis(100);
/// How long to wait after a failure: the first time, and at most.
const RETRY: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(30));

/// Why the files are behind the log. Nothing is lost: the table has every entry, and the next
/// attempt goes on from where the files end.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// The cursor file doesn't say what it should.
    #[error("{path} is not a cursor of audit files")]
    Cursor {
        /// The file.
        path: PathBuf,
    },
    /// The folder is not one for the owner alone, or can't be made.
    #[error(transparent)]
    Folder(#[from] DirError),
    /// A file ends with something that this store's log does not contain: it is another log's, it
    /// was changed, or the store was put back to an older state. It is left as it is.
    #[error(
        "{path} ends with what is not entry {seq} of the store: the files are of another log, or newer than the store"
    )]
    Foreign {
        /// The file.
        path: PathBuf,
        /// The number that the file's last line claims; 0 if it is no entry.
        seq: u64,
    },
    /// The cursor could not be read.
    #[error(transparent)]
    ReadCursor(#[from] ReadError),
    /// A file or the folder could not be read.
    #[error("read {path}")]
    Read {
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// The entries could not be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The cursor could not be written, or the folder not synced.
    #[error(transparent)]
    Sync(#[from] WriteError),
    /// A file could not be made, written or synced.
    #[error("write {path}")]
    Write {
        /// The file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
}

/// How the files are doing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ExportStatus {
    /// The number of the last entry that is in the files, synced.
    pub exported_seq: u64,
    /// How many attempts have failed since the last that succeeded; 0 when all is well.
    pub failures: u64,
    /// Why the last attempt failed, with its causes; absent when all is well.
    pub last_error: Option<String>,
}

/// The daily files of one store, in one folder.
#[derive(Debug)]
pub struct AuditFiles {
    store: Store,
    files: Arc<Mutex<Files>>,
    status: watch::Sender<ExportStatus>,
}

impl AuditFiles {
    /// The files in `dir`, which is made (mode 0700) by the first entry that is written.
    #[must_use]
    pub fn new(dir: impl AsRef<Path>, store: Store) -> Self {
        let files = Files {
            dir: dir.as_ref().to_owned(),
            reader: store.reader().clone(),
            place: None,
        };
        Self {
            store,
            files: Arc::new(Mutex::new(files)),
            status: watch::Sender::new(ExportStatus::default()),
        }
    }

    /// How the files are doing, as it changes.
    #[must_use]
    pub fn status(&self) -> watch::Receiver<ExportStatus> {
        self.status.subscribe()
    }

    /// Writes every entry that is committed and not in the files yet; returns the number of the
    /// last one that is. To be called at start, before the node answers anybody.
    ///
    /// # Errors
    /// [`ExportError`]; it can be tried again.
    pub async fn catch_up(&self) -> Result<u64, ExportError> {
        let files = Arc::clone(&self.files);
        let result = task::spawn_blocking(move || {
            files
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .catch_up()
        })
        .await
        .unwrap_or(Err(ExportError::Store(StoreError::Closed)));
        self.status.send_modify(|status| match &result {
            Ok(seq) => {
                *status = ExportStatus {
                    exported_seq: *seq,
                    ..ExportStatus::default()
                };
            }
            Err(error) => {
                status.failures = status.failures.saturating_add(1);
                status.last_error = Some(with_causes(error));
            }
        });
        result
    }

    /// Follows the log until `shutdown`, and then once more to its end. Failures are logged, shown
    /// in the status and tried again, after a pause that grows to half a minute.
    pub async fn run(self, shutdown: CancellationToken) {
        let mut committed = self.store.committed();
        let mut pause = RETRY.0;
        while !shutdown.is_cancelled() {
            committed.borrow_and_update();
            match self.catch_up().await {
                Ok(_) => {
                    pause = RETRY.0;
                    tokio::select! {
                        () = shutdown.cancelled() => break,
                        changed = committed.changed() => if changed.is_err() { break },
                    }
                    tokio::select! {
                        () = shutdown.cancelled() => break,
                        () = time::sleep(GATHER) => {}
                    }
                }
                Err(error) => {
                    tracing::error!(
                        error = with_causes(&error),
                        "the audit files are behind the audit log; trying again"
                    );
                    tokio::select! {
                        () = shutdown.cancelled() => break,
                        () = time::sleep(pause) => pause = (pause * 2).min(RETRY.1),
                    }
                }
            }
        }
        if let Err(error) = self.catch_up().await {
            tracing::error!(
                error = with_causes(&error),
                "the audit files end before the audit log; the next start writes the rest"
            );
        }
    }
}

/// The part that blocks.
#[derive(Debug)]
struct Files {
    dir: PathBuf,
    reader: Reader,
    /// The open file; absent at first, and after a failure, when what is on disk is looked at
    /// again.
    place: Option<Place>,
}

impl Files {
    fn catch_up(&mut self) -> Result<u64, ExportError> {
        loop {
            let mut place = match self.place.take().filter(Place::is_where_it_was) {
                Some(place) => place,
                None => Place::find(&self.dir, &self.reader)?,
            };
            let lines = self.reader.audit_lines_blocking(place.next_seq(), BATCH)?;
            let last = lines.is_empty();
            if let Some(first) = lines.first().filter(|line| line.seq != place.next_seq()) {
                let what = format!("audit entries before {} are missing", first.seq);
                return Err(StoreError::Corrupt { what }.into());
            }
            place.write(&lines)?;
            let reached = place.next_seq().saturating_sub(1);
            // Kept only if nothing failed: a failed write may have left half a line.
            self.place = Some(place);
            if last {
                return Ok(reached);
            }
        }
    }
}

/// The message and those of its causes: a status is read where nobody can ask for the source.
fn with_causes(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}
