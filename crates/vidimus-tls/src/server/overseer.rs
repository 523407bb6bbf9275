//! Holds the open connections of a server to what is trusted and allowed now.

use std::convert::Infallible;
use std::future;
use std::io;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use tokio::sync::{oneshot, watch};

use super::shrink::{expire, sweep};
use super::verdict::tighten;
use super::{Inner, Security};
use crate::material::{Material, Trust};
use crate::policy::Policy;

/// Follows roots and policy, and has a thread judge the connections. It sees every change from its making on.
///
/// The thread is its own: with thousands of connections judging takes seconds, in which others are to be accepted and
/// served, and handlers may hold all threads that the runtime has for work that blocks.
pub(super) struct Overseer {
    server: Arc<Inner>,
    roots: Roots,
    policies: watch::Receiver<Arc<Policy>>,
    /// The thread ends with this.
    changes: Sender<Change>,
    thread: JoinHandle<()>,
    /// Closed when the thread has ended.
    ended: oneshot::Receiver<Infallible>,
}

/// What the connections are to be held to, and when those close that it ends: counted from the change, however long the
/// thread is busy with others.
enum Change {
    Roots(Arc<Material>, Option<Instant>),
    Policy(Option<Instant>),
}

impl Overseer {
    pub(super) fn start(server: &Arc<Inner>) -> io::Result<Self> {
        let roots = Roots::of(&server.security);
        let policies = server.policy.subscribe();
        let (changes, queue) = channel();
        let (ending, ended) = oneshot::channel();
        let judged = Arc::clone(server);
        let thread = thread::Builder::new().name("vidimus-judge".to_owned());
        let thread = thread.spawn(move || {
            let _ending = ending;
            hold(&judged, &queue);
        })?;
        Ok(Self {
            server: Arc::clone(server),
            roots,
            policies,
            changes,
            thread,
            ended,
        })
    }

    /// # Panics
    ///
    /// If the thread did: nothing is to be served by a server that no longer holds its connections to anything.
    pub(super) async fn run(mut self) -> Infallible {
        loop {
            let change = tokio::select! {
                biased;
                material = self.roots.changed() => {
                    Change::Roots(material, self.server.withdrawal_deadline())
                }
                // The sender is in the server's own watch, which outlives this.
                _ = self.policies.changed() => Change::Policy(self.server.withdrawal_deadline()),
                _ = &mut self.ended => break,
            };
            if self.changes.send(change).is_err() {
                break;
            }
        }
        match self.thread.join() {
            Err(panic) => resume_unwind(panic),
            // Without a panic it outlives the sender of changes.
            Ok(()) => future::pending().await,
        }
    }
}

/// One change after the other, each for all connections, so that what is found under older trust comes first; and between
/// them a look at the clock now and then.
fn hold(server: &Inner, changes: &Receiver<Change>) {
    let period = server.limits.expiry_interval.max(Duration::from_millis(1));
    let mut pause = Duration::ZERO;
    let mut looked = Instant::now();
    loop {
        match changes.recv_timeout(pause.saturating_sub(looked.elapsed())) {
            Ok(Change::Roots(material, deadline)) => sweep(server, &material, deadline),
            Ok(Change::Policy(deadline)) => tighten(server, deadline),
            Err(RecvTimeoutError::Timeout) => {
                expire(server);
                (pause, looked) = (period, Instant::now());
            }
            Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}

/// The roots of a server. What was seen last outlives each wait, so that no change is missed between two of them.
struct Roots(Option<(watch::Receiver<Arc<Material>>, Arc<Trust>)>);

impl Roots {
    fn of(security: &Security) -> Self {
        match security {
            Security::Mutual { material, .. } => {
                let receiver = material.subscribe();
                let seen = Arc::clone(receiver.borrow().trust());
                Self(Some((receiver, seen)))
            }
            Security::Plaintext(_) | Security::Local(_) => Self(None),
        }
    }

    /// Waits until the roots are others than those seen last. Cancel-safe.
    async fn changed(&mut self) -> Arc<Material> {
        let Some((receiver, seen)) = &mut self.0 else {
            return future::pending().await;
        };
        loop {
            let now = Arc::clone(&receiver.borrow_and_update());
            if !Arc::ptr_eq(now.trust(), seen) {
                *seen = Arc::clone(now.trust());
                return now;
            }
            if receiver.changed().await.is_err() {
                return future::pending().await;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::time::SystemTime;

    use super::*;
    use crate::clock::Clock;
    use crate::identity::{PeerIdentity, UnixPeer};
    use crate::policy::{AllowList, PolicyWatch};
    use crate::server::registry::NewConnection;
    use crate::server::{Limits, LocalPeers, Server};

    const DEADLINE: Duration = Duration::from_secs(30);

    /// V14. A connection's time runs from the change that ends it, not from when its turn to be judged comes.
    #[tokio::test]
    async fn the_deadline_counts_from_the_change() {
        // The thread's first look at the clock takes until the test lets go.
        let (release, held) = channel::<()>();
        let (looking, mut looks) = tokio::sync::mpsc::unbounded_channel();
        let held = Mutex::new(held);
        let clock = Clock::from_fn(move || {
            looking.send(()).expect("the test waits");
            let held = held.lock().expect("one judge");
            held.recv_timeout(DEADLINE).expect("the test goes on");
            SystemTime::UNIX_EPOCH
        });
        let list = |text| AllowList::parse(text).expect("a list");
        let (policy, mut publisher) = PolicyWatch::from_memory(list("uid:1, uid:2"));
        let limits = Limits {
            expiry_interval: DEADLINE,
            ..Limits::default()
        };
        let grace = limits.withdrawal_grace;
        let server = Server::builder(Security::Local(LocalPeers::users([1, 2])))
            .policy(policy)
            .limits(limits)
            .clock(clock)
            .build();
        let registration = server.0.registry.register(NewConnection {
            peer: PeerIdentity::Unix(UnixPeer {
                uid: 2,
                gid: 2,
                pid: None,
            }),
            address: None,
            generation: 0,
            chain: None,
            policy: server.policy().generation(),
            since: SystemTime::UNIX_EPOCH,
        });
        let mut control = registration.entry().control();
        let test = async {
            looks.recv().await.expect("a look");
            publisher.replace(list("uid:1"));
            // The overseer is polled before the test is.
            tokio::task::yield_now().await;
            let latest = Instant::now() + grace;
            release.send(()).expect("the thread waits");
            let ending = control.wait_for(|control| control.drain);
            let ending = tokio::time::timeout(DEADLINE, ending).await;
            let ending = *ending.expect("in time").expect("an entry");
            assert!(ending.deadline.is_some_and(|deadline| deadline <= latest));
        };
        let overseer = Overseer::start(&server.0).expect("a thread");
        tokio::select! {
            biased;
            never = overseer.run() => match never {},
            () = test => {}
        }
    }

    /// V14. A thread that fails takes the server with it: nothing is served that is no longer held to anything.
    #[tokio::test]
    #[should_panic(expected = "the clock fails")]
    async fn a_thread_that_panics_is_not_outlived() {
        let server = Server::builder(Security::Local(LocalPeers::users([1])))
            .clock(Clock::from_fn(|| panic!("the clock fails")))
            .build();
        let overseer = Overseer::start(&server.0).expect("a thread");
        let never = tokio::time::timeout(DEADLINE, overseer.run()).await;
        never.expect("in time");
    }
}
