//! What goes on while connections are judged again, what is judged while a server shuts down, and what is forgotten.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use tokio_stream::StreamExt;
use vidimus_proto::testkit::v1::EchoRequest;
use vidimus_testkit::{Pki, wait_until_async};
use vidimus_tls::clock::Clock;
use vidimus_tls::material::{Identity, Material, Trust, Usage};
use vidimus_tls::policy::{AllowList, PolicyWatch};
use vidimus_tls::server::{Limits, Security, Server};
use vidimus_tls::watch::{MaterialPublisher, MaterialWatch};

use crate::support::{Client, DEADLINE, Running, SERVER, Setup, call, request, soon};

/// A server's material in memory, with a root that is to stay and one that is to leave.
struct Rotation {
    stays: Pki,
    leaves: Pki,
    watch: MaterialWatch,
    publisher: MaterialPublisher,
}

impl Rotation {
    fn new() -> Self {
        let (stays, leaves) = (Pki::new("Stays"), Pki::new("Leaves"));
        let leaf = stays.leaf("server").dns(SERVER).server().issue();
        let now = Clock::system().now();
        let (chain, key) = (leaf.chain_pem(), leaf.key_pem());
        let identity = Identity::from_pem(chain.as_bytes(), key.as_bytes(), Usage::Server, now);
        let both = stays.root.pem() + &leaves.root.pem();
        let trust = Trust::from_pem(both.as_bytes(), now).expect("two roots");
        let material = Material::of(identity.expect("an identity"), trust);
        let (watch, publisher) = MaterialWatch::from_memory(material);
        Self {
            stays,
            leaves,
            watch,
            publisher,
        }
    }

    fn remove(&mut self) {
        let clock = Clock::system();
        let trust = Trust::from_pem(self.stays.root.pem().as_bytes(), clock.now());
        self.publisher.replace_trust(trust.expect("a root"));
    }

    fn client(&self, pki: &Pki, name: &str) -> Client {
        Client::new(&self.stays.root).with(&pki.leaf(name).dns(name).client().issue())
    }
}

async fn wait_withdrawn(server: &Server, count: u64) {
    wait_until_async(DEADLINE, || async {
        match server.stats().withdrawn {
            withdrawn if withdrawn == count => Ok(()),
            other => Err(other),
        }
    })
    .await;
}

/// V14. Judging thousands of connections takes its time. It is not taken from those who come or call meanwhile.
#[tokio::test]
async fn connections_are_accepted_while_others_are_judged() {
    let mut rotation = Rotation::new();
    // The first look at this clock after it was armed takes until the test lets go.
    let (armed, (release, held)) = (Arc::new(AtomicBool::new(false)), mpsc::channel::<()>());
    let (looked, held) = (Arc::clone(&armed), Mutex::new(held));
    let real = Clock::system();
    let clock = Clock::from_fn(move || {
        if looked.swap(false, Ordering::AcqRel) {
            let held = held.lock().expect("one judge");
            held.recv_timeout(DEADLINE)
                .expect("the test goes on meanwhile");
        }
        real.now()
    });
    let setup = Setup {
        clock,
        limits: Limits {
            expiry_interval: DEADLINE,
            ..Limits::default()
        },
        ..Setup::default()
    };
    let running = Running::start(Security::mutual(rotation.watch.clone()), setup).await;
    let doomed = rotation.client(&rotation.leaves, "leaves.test");
    let mut doomed = doomed.echo(running.address).await;
    call(&mut doomed).await.expect("a call");

    armed.store(true, Ordering::Release);
    rotation.remove();
    wait_until_async(DEADLINE, || async {
        if armed.load(Ordering::Acquire) {
            Err("not judged yet")
        } else {
            Ok(())
        }
    })
    .await;
    let safe = rotation.client(&rotation.stays, "stays.test");
    let mut safe = safe.echo(running.address).await;
    call(&mut safe).await.expect("accepted and served");
    assert_eq!(running.server.stats().withdrawn, 0);
    release.send(()).expect("the judge waits");
    wait_withdrawn(&running.server, 1).await;
    call(&mut safe).await.expect("goes on");
    running.stop().await;
}

/// V14. A connection that may finish its calls during the shutdown is held to trust and policy all the same.
#[tokio::test]
async fn what_changes_during_the_shutdown_counts() {
    let mut rotation = Rotation::new();
    let everybody = AllowList::parse("leaves.test, stays.test, off.test").expect("a list");
    let (policy, mut policies) = PolicyWatch::from_memory(everybody);
    let setup = Setup {
        policy: Some(policy),
        limits: Limits {
            drain_timeout: Duration::from_secs(3600),
            withdrawal_grace: Duration::from_millis(50),
            ..Limits::default()
        },
        ..Setup::default()
    };
    let running = Running::start(Security::mutual(rotation.watch.clone()), setup).await;
    let endless = EchoRequest {
        count: 0,
        delay_milliseconds: 5,
        ..request("stream")
    };
    let mut streams = Vec::new();
    for (pki, name) in [
        (&rotation.leaves, "leaves.test"),
        (&rotation.stays, "off.test"),
        (&rotation.stays, "stays.test"),
    ] {
        let mut echo = rotation.client(pki, name).echo(running.address).await;
        let answers = echo.server_stream(endless.clone()).await.expect("a stream");
        let mut answers = answers.into_inner();
        answers.next().await.expect("an answer").expect("no error");
        streams.push(answers);
    }
    running.begin_shutdown();
    wait_until_async(DEADLINE, || async {
        let draining = running
            .server
            .connections()
            .iter()
            .filter(|c| c.draining)
            .count();
        if draining == 3 { Ok(()) } else { Err(draining) }
    })
    .await;
    rotation.remove();
    policies.replace(AllowList::parse("leaves.test, stays.test").expect("a list"));
    wait_withdrawn(&running.server, 2).await;
    let mut stays = streams.pop().expect("three streams");
    for mut ended in streams {
        soon("the stream's end", async {
            while let Some(Ok(_)) = ended.next().await {}
        })
        .await;
    }
    stays.next().await.expect("an answer").expect("goes on");
    drop(stays);
    let drained = running.stop().await;
    assert_eq!((drained.open, drained.cut), (3, 2));
}

/// V14. Handlers that hold every thread that the runtime has for work that blocks don't put off the end of a connection.
#[test]
fn busy_handlers_do_not_put_off_a_withdrawal() {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_all().max_blocking_threads(1).build();
    runtime.expect("a runtime").block_on(async {
        let mut rotation = Rotation::new();
        let security = Security::mutual(rotation.watch.clone());
        let running = Running::start(security, Setup::default()).await;
        let doomed = rotation.client(&rotation.leaves, "leaves.test");
        let mut doomed = doomed.echo(running.address).await;
        call(&mut doomed).await.expect("a call");

        let (release, held) = mpsc::channel::<()>();
        let busy = tokio::task::spawn_blocking(move || held.recv());
        rotation.remove();
        wait_withdrawn(&running.server, 1).await;
        release.send(()).expect("the handler waits");
        busy.await.expect("a thread").expect("released");
        running.stop().await;
    });
}

/// V14. A key that was replaced is gone from memory with the last handshake that uses it, though its connections go on.
#[tokio::test]
async fn a_replaced_key_is_not_kept_for_the_next_handshake() {
    let mut rotation = Rotation::new();
    let security = Security::mutual(rotation.watch.clone());
    let running = Running::start(security, Setup::default()).await;
    let client = rotation.client(&rotation.stays, "stays.test");
    let mut client = client.echo(running.address).await;
    call(&mut client).await.expect("a call");

    let replaced = Arc::downgrade(rotation.watch.current().identity());
    let next = rotation.stays.leaf("next").dns(SERVER).server().issue();
    let (chain, key) = (next.chain_pem(), next.key_pem());
    let (chain, key) = (chain.as_bytes(), key.as_bytes());
    let publisher = &mut rotation.publisher;
    let taken = publisher.replace_identity(chain, key, Usage::Server);
    taken.expect("a good identity");
    wait_until_async(DEADLINE, || async {
        match replaced.strong_count() {
            0 => Ok(()),
            held => Err(held),
        }
    })
    .await;
    call(&mut client).await.expect("goes on");
    running.stop().await;
}
