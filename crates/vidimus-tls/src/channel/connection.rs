//! One live connection, as calls and status pages see it.

use std::future::Future;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, SystemTime};

use hyper::client::conn::http2::SendRequest;
use serde::Serialize;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use super::body::CallBody;
use super::connect::Connected;
use super::core::Core;
use super::dispatch::Dispatch;
use super::driver::Driver;
use super::slots::Slots;
use super::target::Target;
use super::wire::WireState;
use crate::clock::serialize_time;
use crate::config::ClientCertificate;
use crate::events::Event;
use crate::identity::{CertificateIdentity, Fingerprint};
use crate::material::Material;
use crate::verify::VerifiedChain;

/// Who is at the other end, and with which material we came.
#[derive(Clone, Debug)]
pub(super) struct Peer {
    address: String,
    generation: Option<u64>,
    presented: Option<Fingerprint>,
    chain: Option<VerifiedChain>,
}

impl Peer {
    /// The other end of a connection without TLS.
    pub(super) fn unverified(address: String) -> Self {
        Self {
            address,
            generation: None,
            presented: None,
            chain: None,
        }
    }

    pub(super) fn verified(
        address: String,
        material: &Material,
        certificate: ClientCertificate,
        chain: &VerifiedChain,
    ) -> Self {
        let presented = match certificate {
            ClientCertificate::Presented => Some(material.identity().fingerprint()),
            ClientCertificate::Withheld => None,
        };
        Self {
            address,
            generation: Some(material.generation()),
            presented,
            chain: Some(chain.clone()),
        }
    }
}

/// A live connection for status pages.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct ConnectionStatus {
    /// Counts the channel's connections from 1.
    pub id: u64,
    /// The server's address.
    pub address: String,
    /// Whether new calls use it; one that isn't current ends with its last call.
    pub current: bool,
    /// The generation of the material that was presented; `None` without TLS.
    pub generation: Option<u64>,
    /// SHA-256 of the certificate that was presented; `None` without TLS or without one.
    pub presented: Option<Fingerprint>,
    /// SHA-256 of the root that the server's chain leads to; `None` if that wasn't verified.
    pub anchor: Option<Fingerprint>,
    /// The server's certificate, believed only if there is an anchor; `None` without TLS.
    pub server: Option<CertificateIdentity>,
    /// Whether its server is no longer trusted: it is cut within seconds.
    pub withdrawn: bool,
    /// Calls that have begun and not ended.
    pub calls_in_flight: u64,
    /// Calls that have begun, resends included.
    pub calls: u64,
    /// When the server accepted it.
    #[serde(serialize_with = "serialize_time")]
    pub since: SystemTime,
}

/// A live connection. hyper closes it in good order once the last holder has let go and its streams have ended.
#[derive(Debug)]
pub(super) struct Connection {
    id: u64,
    dispatch: Dispatch,
    wire: Arc<WireState>,
    peer: Peer,
    since: SystemTime,
    /// The same by the clock that timers go by.
    opened: Instant,
    slots: Arc<Slots>,
    retired: AtomicBool,
    withdrawn: AtomicBool,
    /// The path by which the server's chain holds at present; another one when it was judged again.
    chain: Mutex<Option<VerifiedChain>>,
    /// When it is cut, whatever runs on it.
    deadline: watch::Sender<Option<Instant>>,
    /// Why it will be.
    reason: OnceLock<String>,
    /// The calls it had begun when somebody last looked whether it is needed; `None` before the first look.
    calls_seen: Mutex<Option<u64>>,
}

impl Connection {
    /// Takes a fresh connection apart into its handle and what must be run.
    pub(super) fn new(id: u64, connected: Connected, since: SystemTime) -> (Arc<Self>, Driver) {
        let Connected {
            dispatch,
            driver,
            wire,
            slots,
            peer,
            trust: _,
        } = connected;
        let connection = Self {
            id,
            dispatch,
            wire,
            chain: Mutex::new(peer.chain.clone()),
            peer,
            since,
            opened: Instant::now(),
            slots,
            retired: AtomicBool::new(false),
            withdrawn: AtomicBool::new(false),
            deadline: watch::Sender::new(None),
            reason: OnceLock::new(),
            calls_seen: Mutex::new(None),
        };
        (Arc::new(connection), driver)
    }

    pub(super) fn id(&self) -> u64 {
        self.id
    }

    pub(super) fn address(&self) -> &str {
        &self.peer.address
    }

    pub(super) fn generation(&self) -> Option<u64> {
        self.peer.generation
    }

    /// How long ago the server accepted it.
    pub(super) fn age(&self) -> Duration {
        self.opened.elapsed()
    }

    pub(super) fn wire(&self) -> &WireState {
        &self.wire
    }

    pub(super) fn slots(&self) -> &Slots {
        &self.slots
    }

    /// The server's chain; `None` without TLS, and where anybody is believed.
    pub(super) fn verified(&self) -> Option<VerifiedChain> {
        self.chain().filter(|chain| chain.anchor().is_some())
    }

    fn chain(&self) -> Option<VerifiedChain> {
        self.chain
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// The server's chain holds along this path now.
    pub(super) fn stands(&self, chain: VerifiedChain) {
        *self.chain.lock().unwrap_or_else(PoisonError::into_inner) = Some(chain);
    }

    /// For sending one request, if it still takes any.
    pub(super) fn sender(&self) -> Option<SendRequest<CallBody>> {
        self.dispatch.sender()
    }

    /// Whether a new call may use it.
    pub(super) fn is_usable(&self) -> bool {
        !self.retired.load(Ordering::Acquire) && self.dispatch.is_open()
    }

    /// Gives it no more calls.
    pub(super) fn retire(&self) {
        self.retired.store(true, Ordering::Release);
    }

    /// Ends it no later than `at`; the first reason and the earliest moment count.
    pub(super) fn end(&self, reason: String, at: Instant) {
        let _first = self.reason.set(reason);
        self.deadline.send_modify(|deadline| {
            *deadline = Some(deadline.map_or(at, |before| before.min(at)));
        });
    }

    /// The same because its server is no longer trusted.
    pub(super) fn withdraw(&self, reason: String, at: Instant) {
        self.retire();
        self.withdrawn.store(true, Ordering::Release);
        self.end(reason, at);
    }

    pub(super) fn is_withdrawn(&self) -> bool {
        self.withdrawn.load(Ordering::Acquire)
    }

    /// Whether it has a moment at which it ends.
    pub(super) fn is_ending(&self) -> bool {
        self.deadline.borrow().is_some()
    }

    /// Why it was cut, once it has been.
    pub(super) fn cut_reason(&self) -> Option<&str> {
        let cut = self
            .deadline
            .borrow()
            .is_some_and(|at| at <= Instant::now());
        self.reason.get().filter(|_| cut).map(String::as_str)
    }

    /// Waits for the moment at which it ends, without keeping it alive.
    pub(super) fn ended(&self) -> impl Future<Output = ()> + Send + use<> {
        let mut deadline = self.deadline.subscribe();
        async move {
            let mut held = true;
            loop {
                let at = *deadline.borrow_and_update();
                let cut = async {
                    match at {
                        Some(at) => sleep_until(at).await,
                        None => std::future::pending().await,
                    }
                };
                tokio::select! {
                    () = cut => return,
                    changed = deadline.changed(), if held => held = changed.is_ok(),
                }
            }
        }
    }

    /// Whether it has carried no call since the last time this was asked. A fresh one has not had the time to.
    pub(super) fn is_unused(&self) -> bool {
        let mut seen = self
            .calls_seen
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let now = Some(self.slots.calls());
        let before = std::mem::replace(&mut *seen, now);
        before == now && self.slots.taken() == 0
    }

    pub(super) fn connected(&self, target: &Target) -> Event {
        let chain = self.chain();
        let identity = chain.as_ref().map(VerifiedChain::identity);
        Event::ChannelConnected {
            target: target.to_string(),
            connection: self.id,
            remote: self.peer.address.clone(),
            peer: identity.map_or_else(String::new, |identity| identity.label().to_owned()),
            fingerprint: identity.map(|identity| identity.fingerprint()),
            anchor: chain.as_ref().and_then(VerifiedChain::anchor),
            generation: self.peer.generation.unwrap_or_default(),
        }
    }

    pub(super) fn status(&self) -> ConnectionStatus {
        let chain = self.chain();
        ConnectionStatus {
            id: self.id,
            address: self.peer.address.clone(),
            current: self.is_usable(),
            generation: self.peer.generation,
            presented: self.peer.presented,
            anchor: chain.as_ref().and_then(VerifiedChain::anchor),
            server: chain.map(|chain| CertificateIdentity::clone(chain.identity())),
            withdrawn: self.is_withdrawn(),
            calls_in_flight: u64::try_from(self.slots.taken()).unwrap_or(u64::MAX),
            calls: self.slots.calls(),
            since: self.since,
        }
    }
}

/// A call in flight: has a slot, and keeps its connection and the channel's background work alive until its answer has
/// ended.
#[derive(Debug)]
pub(super) struct CallGuard {
    connection: Arc<Connection>,
    core: Arc<Core>,
}

impl CallGuard {
    /// For a connection on which a slot was taken.
    pub(super) fn new(core: Arc<Core>, connection: Arc<Connection>) -> Self {
        Self { connection, core }
    }

    pub(super) fn connection(&self) -> &Arc<Connection> {
        &self.connection
    }

    pub(super) fn core(&self) -> &Core {
        &self.core
    }
}

impl Drop for CallGuard {
    fn drop(&mut self) {
        self.connection.slots.give_back();
    }
}
