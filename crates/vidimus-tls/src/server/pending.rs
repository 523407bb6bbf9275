//! Sockets whose handshake is not finished: bounded in all and by source, and the oldest goes first.
//!
//! A peer that connects and falls silent costs a socket and, past its `ClientHello`, a little more. If a bound simply
//! refused newcomers, a handful of silent peers would keep everybody out; a handshake that goes well takes milliseconds,
//! so the oldest one is the one least likely to.
//!
//! Those whose `ClientHello` is there and those whose isn't are two groups, and the larger one makes room: neither silent
//! sockets nor stalled handshakes can take the places of both.

use std::collections::{BTreeMap, HashMap};
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio_util::sync::CancellationToken;

#[derive(Debug)]
pub(super) struct Pending {
    max: usize,
    max_per_source: usize,
    waiting: Mutex<Waiting>,
}

#[derive(Debug, Default)]
struct Waiting {
    next: u64,
    /// In the order of arrival.
    sockets: BTreeMap<u64, Socket>,
    by_source: HashMap<IpAddr, usize>,
}

#[derive(Debug)]
struct Socket {
    source: Option<IpAddr>,
    /// Whether its `ClientHello` has arrived.
    greeted: bool,
    displaced: CancellationToken,
}

impl Pending {
    pub(super) fn new(max: usize, max_per_source: usize) -> Arc<Self> {
        Arc::new(Self {
            max: max.max(1),
            max_per_source: max_per_source.max(1),
            waiting: Mutex::default(),
        })
    }

    /// Registers a socket; its token is cancelled if it has to make room.
    pub(super) fn enter(self: &Arc<Self>, source: Option<IpAddr>) -> Waiter {
        let source = source.map(network);
        let mut waiting = self.lock();
        let of_source = source.and_then(|source| waiting.by_source.get(&source).copied());
        if of_source.unwrap_or_default() >= self.max_per_source {
            waiting.displace(|socket| socket.source == source);
        } else if waiting.sockets.len() >= self.max {
            waiting.displace(|_| true);
        }
        let id = waiting.next;
        waiting.next = waiting.next.wrapping_add(1);
        let displaced = CancellationToken::new();
        let socket = Socket {
            source,
            greeted: false,
            displaced: displaced.clone(),
        };
        waiting.sockets.insert(id, socket);
        if let Some(source) = source {
            let count = waiting.by_source.entry(source).or_default();
            *count = count.saturating_add(1);
        }
        Waiter {
            pending: Arc::clone(self),
            id,
            displaced,
        }
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Default)]
struct Group {
    oldest: Option<u64>,
    size: usize,
}

impl Waiting {
    /// Drops the oldest of the larger group among the chosen.
    fn displace(&mut self, choose: impl Fn(&Socket) -> bool) {
        let (mut silent, mut greeted) = (Group::default(), Group::default());
        for (id, socket) in self.sockets.iter().filter(|(_, socket)| choose(socket)) {
            let group = if socket.greeted {
                &mut greeted
            } else {
                &mut silent
            };
            group.oldest.get_or_insert(*id);
            group.size = group.size.saturating_add(1);
        }
        let larger = if greeted.size > silent.size {
            greeted
        } else {
            silent
        };
        if let Some(socket) = larger.oldest.and_then(|id| self.remove(id)) {
            socket.displaced.cancel();
        }
    }

    fn remove(&mut self, id: u64) -> Option<Socket> {
        let socket = self.sockets.remove(&id)?;
        if let Some(source) = socket.source
            && let Some(count) = self.by_source.get_mut(&source)
        {
            *count = count.saturating_sub(1);
            if *count == 0 {
                self.by_source.remove(&source);
            }
        }
        Some(socket)
    }
}

/// What counts as one source: an IPv4 address, or the 64 bits that one IPv6 subscriber has at least.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(address) => address.into(),
        IpAddr::V6(address) => {
            let prefix = u128::from(address) & !u128::from(u64::MAX);
            Ipv6Addr::from(prefix).into()
        }
    }
}

/// One waiting socket; leaves its place when dropped.
#[derive(Debug)]
pub(super) struct Waiter {
    pending: Arc<Pending>,
    id: u64,
    displaced: CancellationToken,
}

impl Waiter {
    /// Says whose socket it is, where that was not known at its arrival. It keeps its place in the order.
    #[cfg(feature = "proxy-protocol")]
    pub(super) fn belongs_to(&self, source: IpAddr) {
        let source = network(source);
        let mut waiting = self.pending.lock();
        let of_source = waiting.by_source.get(&source).copied().unwrap_or_default();
        if of_source >= self.pending.max_per_source {
            waiting.displace(|socket| socket.source == Some(source));
        }
        if let Some(socket) = waiting.sockets.get_mut(&self.id) {
            socket.source = Some(source);
            let count = waiting.by_source.entry(source).or_default();
            *count = count.saturating_add(1);
        }
    }

    /// Says that its `ClientHello` has arrived.
    pub(super) fn greeted(&self) {
        if let Some(socket) = self.pending.lock().sockets.get_mut(&self.id) {
            socket.greeted = true;
        }
    }

    /// Waits until this socket has to make room.
    pub(super) async fn displaced(&self) {
        self.displaced.cancelled().await;
    }
}

impl Drop for Waiter {
    fn drop(&mut self) {
        self.pending.lock().remove(self.id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(last: u8) -> Option<IpAddr> {
        Some(IpAddr::from([192, 0, 2, last]))
    }

    /// T17.
    #[test]
    fn the_oldest_socket_makes_room() {
        let pending = Pending::new(2, 2);
        let first = pending.enter(source(1));
        let second = pending.enter(source(2));
        assert!(!first.displaced.is_cancelled());
        let third = pending.enter(source(3));
        assert!(first.displaced.is_cancelled());
        assert!(!second.displaced.is_cancelled());
        drop(second);
        let fourth = pending.enter(source(4));
        assert!(!third.displaced.is_cancelled());
        assert!(!fourth.displaced.is_cancelled());
        drop((first, third, fourth));
        let waiting = pending.lock();
        assert!(waiting.sockets.is_empty() && waiting.by_source.is_empty());
    }

    /// T17. Neither silent sockets nor stalled handshakes push the others out.
    #[test]
    fn the_larger_group_makes_room() {
        let pending = Pending::new(4, 4);
        let greeted: Vec<Waiter> = (1..=2).map(|n| pending.enter(source(n))).collect();
        greeted.iter().for_each(Waiter::greeted);
        let silent: Vec<Waiter> = (3..=20).map(|n| pending.enter(source(n))).collect();
        let gone = |waiters: &[Waiter]| {
            let gone = waiters.iter().filter(|w| w.displaced.is_cancelled());
            gone.count()
        };
        assert_eq!((gone(&greeted), gone(&silent)), (0, 16));
        silent.iter().for_each(Waiter::greeted);
        let last = pending.enter(source(21));
        assert_eq!((gone(&greeted), gone(&silent)), (1, 16));
        assert!(greeted.first().is_some_and(|w| w.displaced.is_cancelled()));
        assert!(!last.displaced.is_cancelled());
    }

    /// T17. One source only ever displaces itself.
    #[test]
    fn a_source_that_takes_its_share_displaces_its_own() {
        let pending = Pending::new(10, 2);
        let other = pending.enter(source(1));
        let mine: Vec<Waiter> = (0..5).map(|_| pending.enter(source(2))).collect();
        assert!(!other.displaced.is_cancelled());
        let gone: Vec<bool> = mine.iter().map(|w| w.displaced.is_cancelled()).collect();
        assert_eq!(gone, [true, true, true, false, false]);
    }

    /// T17. Behind a proxy all sockets would be of one source, if they weren't counted as their clients'.
    #[cfg(feature = "proxy-protocol")]
    #[test]
    fn a_source_that_is_known_later_has_the_same_share() {
        let pending = Pending::new(10, 2);
        let unknown: Vec<Waiter> = (0..4).map(|_| pending.enter(None)).collect();
        for waiter in &unknown {
            assert!(!waiter.displaced.is_cancelled(), "none has a source yet");
            waiter.belongs_to(IpAddr::from([192, 0, 2, 1]));
        }
        let gone: Vec<bool> = unknown.iter().map(|w| w.displaced.is_cancelled()).collect();
        assert_eq!(gone, [true, true, false, false]);
        drop(unknown);
        let waiting = pending.lock();
        assert!(waiting.sockets.is_empty() && waiting.by_source.is_empty());
    }

    /// T17. Whoever has an IPv6 subnet has more addresses than there are places.
    #[test]
    fn addresses_of_one_ipv6_subnet_are_one_source() {
        let pending = Pending::new(10, 1);
        let enter = |text: &str| pending.enter(Some(text.parse().expect("an address")));
        let first = enter("2001:db8::1");
        let other = enter("2001:db8:0:1::1");
        let mapped = enter("::ffff:192.0.2.1");
        let second = enter("2001:db8::ffff:2");
        let plain = enter("192.0.2.1");
        assert!(first.displaced.is_cancelled() && mapped.displaced.is_cancelled());
        for waiter in [other, second, plain] {
            assert!(!waiter.displaced.is_cancelled());
        }
    }
}
