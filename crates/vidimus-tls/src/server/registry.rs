//! The connections being served, each with a handle to end it.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Instant, SystemTime};

use arc_swap::ArcSwapOption;
use serde::Serialize;
use tokio::sync::{Notify, watch};

use super::verdict::Verdict;
use crate::clock::{serialize_optional_time, serialize_time};
use crate::identity::{Fingerprint, PeerIdentity};
use crate::verify::VerifiedChain;

/// Tells the connections of one server apart. In the extensions of every request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct ConnectionId(u64);

impl std::fmt::Display for ConnectionId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

/// One connection being served.
#[derive(Clone, Debug, Serialize)]
pub struct ConnectionInfo {
    /// Unique within its server.
    pub id: ConnectionId,
    /// Who is at the other end.
    pub peer: PeerIdentity,
    /// The peer's address, or `unix`.
    pub remote: String,
    /// The material generation that the handshake used; 0 without TLS.
    pub generation: u64,
    /// The root that the peer's certificate leads to at present; `None` for pinned certificates and without TLS.
    pub anchor: Option<Fingerprint>,
    /// That root's subject.
    pub anchor_subject: Option<String>,
    /// The generation under whose roots it was judged last; 0 without TLS.
    pub judged_generation: u64,
    /// When the first certificate of that path expires.
    #[serde(serialize_with = "serialize_optional_time")]
    pub not_after: Option<SystemTime>,
    /// When it was registered.
    #[serde(serialize_with = "serialize_time")]
    pub since: SystemTime,
    /// Calls in flight.
    pub streams: usize,
    /// Whether it has been told to end.
    pub draining: bool,
    /// Whether its peer is no longer trusted: it ends soon, and no new call passes.
    pub withdrawn: bool,
}

/// What the connection's own task and its calls share with the registry.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) id: ConnectionId,
    pub(super) peer: PeerIdentity,
    pub(super) remote: String,
    pub(super) address: Option<SocketAddr>,
    pub(super) generation: u64,
    /// The policy in force when it was registered.
    pub(super) policy: u64,
    pub(super) since: SystemTime,
    standing: Mutex<Standing>,
    pub(super) streams: AtomicUsize,
    /// Goes up with whatever happens on the connection: a call begun, or bytes of a stream.
    pub(super) activity: AtomicU64,
    withdrawn: AtomicBool,
    refusing: AtomicBool,
    control: watch::Sender<Control>,
    /// What the policy said last; the wrong answer if policy or epoch moved on meanwhile.
    pub(super) verdict: ArcSwapOption<Verdict>,
    /// Grows whenever the peer is trusted by another path.
    pub(super) epoch: AtomicU64,
    /// Told when policy or epoch moved on, for the calls that are running.
    pub(super) recheck: Arc<Notify>,
}

/// What a connection is trusted by at present; changes when it is judged again.
#[derive(Clone, Debug)]
pub(super) struct Standing {
    /// The chain along the path that holds; `None` without TLS.
    pub(super) chain: Option<VerifiedChain>,
    /// The generation whose trust it was judged against.
    pub(super) generation: u64,
}

/// What a connection has been told to do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Control {
    /// Send a GOAWAY and finish the calls in flight.
    pub(super) drain: bool,
    /// Close hard at this moment.
    pub(super) deadline: Option<Instant>,
}

impl Entry {
    pub(super) fn info(&self) -> ConnectionInfo {
        let Standing { chain, generation } = self.standing();
        let chain = chain.as_ref();
        let subject = chain.and_then(VerifiedChain::anchor_subject);
        ConnectionInfo {
            id: self.id,
            peer: self.peer.clone(),
            remote: self.remote.clone(),
            generation: self.generation,
            anchor: chain.and_then(VerifiedChain::anchor),
            anchor_subject: subject.map(str::to_owned),
            judged_generation: generation,
            not_after: chain.map(VerifiedChain::earliest_not_after),
            since: self.since,
            streams: self.streams.load(Ordering::Relaxed),
            draining: self.is_draining(),
            withdrawn: self.is_withdrawn(),
        }
    }

    /// What it is trusted by at present.
    pub(super) fn standing(&self) -> Standing {
        let standing = self.standing.lock();
        standing.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The chain that holds at present.
    pub(super) fn chain(&self) -> Option<VerifiedChain> {
        self.standing().chain
    }

    pub(super) fn anchor(&self) -> Option<Fingerprint> {
        self.chain().as_ref().and_then(VerifiedChain::anchor)
    }

    /// Notes that the connection was judged again: by the same path, or by another one. What was found under older trust
    /// than that of the last time is too late.
    pub(super) fn stands(&self, generation: u64, anew: Option<VerifiedChain>) {
        let mut standing = self.standing.lock().unwrap_or_else(PoisonError::into_inner);
        if generation < standing.generation {
            return;
        }
        standing.generation = generation;
        if anew.is_some() {
            standing.chain = anew;
            drop(standing);
            self.epoch.fetch_add(1, Ordering::Release);
        }
    }

    /// Whether the peer is no longer trusted or allowed, so that the connection ends soon.
    pub(super) fn is_withdrawn(&self) -> bool {
        self.withdrawn.load(Ordering::Relaxed)
    }

    /// Whether no new call may pass: the peer was withdrawn, or its certificate has expired.
    pub(super) fn is_refusing(&self) -> bool {
        self.refusing.load(Ordering::Relaxed)
    }

    pub(super) fn is_draining(&self) -> bool {
        self.control.borrow().drain
    }

    /// Ends the connection; of several deadlines the earliest counts. Whether it wasn't ending before.
    pub(super) fn drain(&self, deadline: Option<Instant>) -> bool {
        let mut began = false;
        self.control.send_if_modified(|control| {
            let earliest = match (control.deadline, deadline) {
                (Some(one), Some(two)) => Some(one.min(two)),
                (one, two) => one.or(two),
            };
            let wanted = Control {
                drain: true,
                deadline: earliest,
            };
            let changed = *control != wanted;
            began = !control.drain;
            *control = wanted;
            changed
        });
        began
    }

    /// Lets no new call pass from now on. A peer that answers no PING could begin calls after its GOAWAY for ever.
    pub(super) fn refuse_calls(&self) {
        self.refusing.store(true, Ordering::Relaxed);
    }

    /// Refuses new calls from now on and ends the connection.
    pub(super) fn withdraw(&self, deadline: Option<Instant>) {
        self.withdrawn.store(true, Ordering::Relaxed);
        self.refuse_calls();
        self.drain(deadline);
    }

    pub(super) fn control(&self) -> watch::Receiver<Control> {
        self.control.subscribe()
    }
}

#[derive(Debug, Default)]
pub(super) struct Registry {
    next: AtomicU64,
    entries: Mutex<BTreeMap<ConnectionId, Arc<Entry>>>,
}

/// What is known of a connection when it is registered.
pub(super) struct NewConnection {
    pub(super) peer: PeerIdentity,
    pub(super) address: Option<SocketAddr>,
    pub(super) generation: u64,
    pub(super) chain: Option<VerifiedChain>,
    pub(super) policy: u64,
    pub(super) since: SystemTime,
}

/// Keeps a connection registered; dropping it takes the connection out.
pub(super) struct Registration<'a> {
    registry: &'a Registry,
    entry: Arc<Entry>,
}

impl Registration<'_> {
    pub(super) fn entry(&self) -> &Arc<Entry> {
        &self.entry
    }
}

impl Drop for Registration<'_> {
    fn drop(&mut self) {
        self.registry.lock().remove(&self.entry.id);
    }
}

impl Registry {
    pub(super) fn register(&self, new: NewConnection) -> Registration<'_> {
        let id = ConnectionId(self.next.fetch_add(1, Ordering::Relaxed));
        let entry = Arc::new(Entry {
            id,
            peer: new.peer,
            remote: remote_text(new.address),
            address: new.address,
            generation: new.generation,
            policy: new.policy,
            since: new.since,
            standing: Mutex::new(Standing {
                chain: new.chain,
                generation: new.generation,
            }),
            streams: AtomicUsize::new(0),
            activity: AtomicU64::new(0),
            withdrawn: AtomicBool::new(false),
            refusing: AtomicBool::new(false),
            control: watch::Sender::new(Control::default()),
            verdict: ArcSwapOption::empty(),
            epoch: AtomicU64::new(0),
            recheck: Arc::default(),
        });
        self.lock().insert(id, Arc::clone(&entry));
        Registration {
            registry: self,
            entry,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.lock().len()
    }

    pub(super) fn list(&self) -> Vec<ConnectionInfo> {
        self.entries().iter().map(|entry| entry.info()).collect()
    }

    /// The entries of this moment, so that nothing is done under the lock.
    pub(super) fn entries(&self) -> Vec<Arc<Entry>> {
        self.lock().values().cloned().collect()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<ConnectionId, Arc<Entry>>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The peer's address for logs, `unix` if it has none.
pub(super) fn remote_text(address: Option<SocketAddr>) -> String {
    address.map_or_else(|| "unix".to_owned(), |address| address.to_string())
}
