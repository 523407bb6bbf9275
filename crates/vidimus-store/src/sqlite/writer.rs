//! The thread that writes.
//!
//! Group commit: the thread takes what waits in its queue, up to [`MAX_BATCH`] requests, into one
//! transaction, so that one sync of the disk pays for all of them. Each request has its own
//! savepoint; a bad one is taken back alone. Answers go out after the commit. When a whole
//! transaction is lost (a full disk), each of its requests gets the error, and the chain's head
//! goes back to what the database holds.

use std::fs;
use std::path::{Path, PathBuf};
use std::thread::{self, JoinHandle};

use rusqlite::Connection;
use tokio::sync::{mpsc, oneshot, watch};

use super::transaction::{Chain, Tx, Write};
use super::{log_path, write_error};
use crate::error::{OpenError, StoreError};

/// The most requests in one transaction.
const MAX_BATCH: usize = 256;
/// The most requests that wait; who comes later waits to get into the queue.
const QUEUE: usize = 1024;
/// Readers can keep the write-ahead log from starting over; beyond this size they are waited for.
const MAX_LOG_BYTES: u64 = 64 << 20;

/// The handle on the thread.
#[derive(Debug)]
pub(super) struct Writer {
    queue: Option<mpsc::Sender<Box<dyn Job>>>,
    committed: watch::Receiver<u64>,
    thread: Option<JoinHandle<()>>,
}

impl Writer {
    pub(super) fn start(
        connection: Connection,
        chain: Chain,
        path: &Path,
    ) -> Result<Self, OpenError> {
        let (queue, jobs) = mpsc::channel(QUEUE);
        let (committed, seen) = watch::channel(chain.head().seq);
        let thread = Thread {
            connection,
            chain,
            path: path.to_owned(),
            log: log_path(path),
            jobs,
            committed,
            chain_is_stale: false,
            log_bound: MAX_LOG_BYTES,
        };
        let thread = thread::Builder::new()
            .name("vidimus-store".to_owned())
            .spawn(move || thread.run())
            .map_err(|source| OpenError::Thread {
                path: path.to_owned(),
                source,
            })?;
        Ok(Self {
            queue: Some(queue),
            committed: seen,
            thread: Some(thread),
        })
    }

    pub(super) async fn write<W: Write>(&self, write: W) -> Result<W::Reply, StoreError> {
        let (reply, answer) = oneshot::channel();
        let job: Box<dyn Job> = Box::new(Request {
            write: Some(write),
            outcome: None,
            reply,
        });
        let queue = self.queue.as_ref().ok_or(StoreError::Closed)?;
        queue.send(job).await.map_err(|_| StoreError::Closed)?;
        answer.await.map_err(|_| StoreError::Closed)?
    }

    pub(super) fn committed(&self) -> watch::Receiver<u64> {
        self.committed.clone()
    }

    /// Lets the thread finish what is in its queue, and waits until it has closed the database.
    pub(super) fn stop(&mut self) {
        self.queue = None;
        if let Some(thread) = self.thread.take() {
            // A panic of the thread has been reported by the panic hook.
            let _panicked = thread.join();
        }
    }
}

/// A request in the queue, its type forgotten.
trait Job: Send {
    /// Does it, within the transaction. An error means that it has to be taken back.
    fn apply(&mut self, tx: &mut Tx<'_>) -> Result<(), StoreError>;
    /// Answers, after the commit (or its failure).
    fn answer(self: Box<Self>, committed: Result<(), StoreError>);
    /// Whether nobody waits for the answer any more.
    fn is_abandoned(&self) -> bool;
}

struct Request<W: Write> {
    write: Option<W>,
    outcome: Option<W::Reply>,
    reply: oneshot::Sender<Result<W::Reply, StoreError>>,
}

impl<W: Write> Job for Request<W> {
    fn apply(&mut self, tx: &mut Tx<'_>) -> Result<(), StoreError> {
        let write = self.write.take().ok_or(StoreError::Closed)?;
        self.outcome = Some(write.apply(tx)?);
        Ok(())
    }

    fn answer(self: Box<Self>, committed: Result<(), StoreError>) {
        let Self { outcome, reply, .. } = *self;
        let result = committed.and_then(|()| outcome.ok_or(StoreError::Closed));
        // Whoever asked may have gone; what was recorded is recorded.
        let _gone = reply.send(result);
    }

    fn is_abandoned(&self) -> bool {
        self.reply.is_closed()
    }
}

struct Thread {
    connection: Connection,
    chain: Chain,
    path: PathBuf,
    log: PathBuf,
    jobs: mpsc::Receiver<Box<dyn Job>>,
    committed: watch::Sender<u64>,
    /// A transaction was lost: the end of the log has to be read from the database again.
    chain_is_stale: bool,
    /// The size at which the write-ahead log is next made to start over.
    log_bound: u64,
}

impl Thread {
    fn run(mut self) {
        while let Some(first) = self.jobs.blocking_recv() {
            self.batch(first);
            self.bound_log();
        }
    }

    fn batch(&mut self, first: Box<dyn Job>) {
        if let Err(error) = self.begin() {
            first.answer(Err(error));
            return;
        }
        let mut done = Vec::new();
        let mut next = Some(first);
        while let Some(job) = next {
            if let Err(lost) = self.apply(job, &mut done) {
                self.give_up(done, &lost);
                return;
            }
            next = if done.len() < MAX_BATCH {
                self.jobs.try_recv().ok()
            } else {
                None
            };
        }
        if let Err(lost) = self.execute("a transaction", "COMMIT") {
            self.give_up(done, &lost);
            return;
        }
        self.committed.send_replace(self.chain.head().seq);
        for job in done {
            job.answer(Ok(()));
        }
    }

    fn begin(&mut self) -> Result<(), StoreError> {
        if self.chain_is_stale {
            self.chain.reload(&self.connection)?;
            self.chain_is_stale = false;
        }
        self.execute("a transaction", "BEGIN IMMEDIATE")
    }

    /// Applies one request. The error is not the request's (that one is answered at once) but the
    /// transaction's: it is lost with all that was done in it.
    fn apply(
        &mut self,
        mut job: Box<dyn Job>,
        done: &mut Vec<Box<dyn Job>>,
    ) -> Result<(), StoreError> {
        if job.is_abandoned() {
            return Ok(());
        }
        let before = self.chain.head();
        let applied = self
            .execute("a request", "SAVEPOINT request")
            .and_then(|()| {
                job.apply(&mut Tx {
                    connection: &self.connection,
                    chain: &mut self.chain,
                    path: &self.path,
                })
            });
        match applied.and_then(|()| self.execute("a request", "RELEASE request")) {
            Ok(()) => {
                done.push(job);
                Ok(())
            }
            Err(error) => {
                job.answer(Err(error.clone()));
                self.chain.rewind(before);
                // Some failures (no room, a broken disk) make SQLite take back the transaction by
                // itself; then there is no savepoint to go back to.
                let kept = !self.connection.is_autocommit()
                    && self.execute("a request", "ROLLBACK TO request").is_ok()
                    && self.execute("a request", "RELEASE request").is_ok();
                if kept { Ok(()) } else { Err(error) }
            }
        }
    }

    /// Ends a transaction that can't be committed: nothing of it is written, and everybody who
    /// waits for it hears why.
    fn give_up(&mut self, done: Vec<Box<dyn Job>>, error: &StoreError) {
        if !self.connection.is_autocommit()
            && let Err(rollback) = self.execute("a transaction", "ROLLBACK")
        {
            tracing::error!(error = %rollback, "the store could not roll back");
        }
        self.chain_is_stale = true;
        for job in done {
            job.answer(Err(error.clone()));
        }
    }

    fn execute(&self, what: &'static str, sql: &str) -> Result<(), StoreError> {
        self.connection
            .prepare_cached(sql)
            .and_then(|mut statement| statement.execute([]))
            .map(|_rows| ())
            .map_err(|error| write_error(what, &self.path, error))
    }

    /// SQLite starts the log over when it happens to find no reader in it. Under constant reading
    /// that may never be, so at a certain size it is made to: readers are waited for
    /// (`busy_timeout`), and ours are short. A foreign one that stays is not waited for again
    /// before the log has grown by as much again.
    fn bound_log(&mut self) {
        let size = fs::metadata(&self.log).map_or(0, |metadata| metadata.len());
        if size <= self.log_bound {
            return;
        }
        let checkpoint = "PRAGMA wal_checkpoint(TRUNCATE)";
        let busy = self
            .connection
            .query_row(checkpoint, [], |row| row.get::<_, bool>(0));
        self.log_bound = match busy {
            Ok(false) => MAX_LOG_BYTES,
            Ok(true) => {
                tracing::warn!(
                    bytes = size,
                    "a reader keeps the store's write-ahead log from starting over"
                );
                size.saturating_add(MAX_LOG_BYTES)
            }
            Err(error) => {
                tracing::error!(%error, "the store could not start its write-ahead log over");
                size.saturating_add(MAX_LOG_BYTES)
            }
        };
    }
}
