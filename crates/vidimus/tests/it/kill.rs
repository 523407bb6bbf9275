//! A node that is killed at any moment has recorded every certificate that it returned.

use std::{
    collections::BTreeSet,
    fs,
    sync::{
        Mutex,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant, UNIX_EPOCH},
};

use vidimus_client::{Endpoint, NodeClient, pb};
use vidimus_daemon::clock::{Clock as _, SystemClock};

use crate::support::{Cas, PATIENCE, Ran, RunningNode};

const KILLS: usize = 100;
const CLIENTS: usize = 4;
/// The longest time under load before a kill.
const LONGEST: Duration = Duration::from_millis(40);

/// A small generator, so that a failed run can be repeated from its printed seed.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        // xorshift64*, Vigna 2016.
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) % limit
    }
}

fn seed() -> u64 {
    let given = std::env::var("KILL_SEED")
        .ok()
        .and_then(|text| text.parse().ok());
    let now = SystemClock
        .now()
        .duration_since(UNIX_EPOCH)
        .expect("after 1970");
    given.unwrap_or_else(|| {
        u64::try_from(now.as_nanos() & u128::from(u64::MAX)).expect("cut to 64 bits") | 1
    })
}

/// Asks for certificates until the node is gone; notes each serial number when its certificate has arrived.
async fn client(
    socket: std::path::PathBuf,
    csr: Vec<u8>,
    returned: &Mutex<BTreeSet<String>>,
    gone: &AtomicBool,
) {
    let Ok(client) = NodeClient::connect(Endpoint::Unix(socket)).await else {
        return;
    };
    while !gone.load(Ordering::Relaxed) {
        let request = pb::IssueLeafRequest {
            csr: csr.clone(),
            profile: "leaf-server".to_owned(),
            ..Default::default()
        };
        let Ok(answer) = client.issue_leaf(request).await else {
            return;
        };
        returned.lock().expect("the set").insert(answer.serial_hex);
    }
}

/// Lets clients ask until the kill, at a moment of the generator's choice after the first answer.
fn kill_under_load(
    mut node: RunningNode,
    csr: &[u8],
    returned: &Mutex<BTreeSet<String>>,
    random: &mut Random,
) {
    let socket = node.data.join("node.sock");
    let before = returned.lock().expect("the set").len();
    let gone = AtomicBool::new(false);
    let wait =
        Duration::from_micros(random.below(u64::try_from(LONGEST.as_micros()).expect("short")));
    thread::scope(|scope| {
        scope.spawn(|| {
            let runtime = tokio::runtime::Runtime::new().expect("a runtime");
            runtime.block_on(async {
                let clients =
                    (0..CLIENTS).map(|_| client(socket.clone(), csr.to_vec(), returned, &gone));
                futures::future::join_all(clients).await
            });
        });
        let deadline = Instant::now() + PATIENCE;
        while returned.lock().expect("the set").len() == before {
            assert!(
                Instant::now() < deadline,
                "no certificate arrived: {:?}",
                node.process.lines()
            );
            thread::yield_now();
        }
        let kill_at = Instant::now() + wait;
        while Instant::now() < kill_at {
            thread::yield_now();
        }
        node.process.kill();
        gone.store(true, Ordering::Relaxed);
    });
    node.process.wait_exit(PATIENCE);
}

/// C14, C20, X10: kill -9 at 100 random moments under load; no returned certificate is unrecorded, and the log holds.
#[test]
fn a_killed_node_has_recorded_every_certificate_that_it_returned() {
    let seed = seed();
    println!("KILL_SEED={seed}");
    let mut random = Random(seed);
    let cas = Cas::make();
    let csr = fs::read(cas.openssl_csr("web.example.org")).expect("the request");
    let returned = Mutex::new(BTreeSet::new());
    for _ in 0..KILLS {
        kill_under_load(cas.run_node(), &csr, &returned, &mut random);
    }
    let returned = returned.into_inner().expect("the set");
    assert!(
        returned.len() >= KILLS,
        "{} certificates in {KILLS} rounds",
        returned.len()
    );

    let node = cas.run_node();
    let listed =
        Ran::well(node.socket(["ca", "list-issued", "-o", "json", "--limit", "1000000"])).json();
    let recorded: BTreeSet<&str> = listed
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|row| row["serial"].as_str())
        .collect();
    let lost: Vec<&String> = returned
        .iter()
        .filter(|serial| !recorded.contains(serial.as_str()))
        .collect();
    assert!(
        lost.is_empty(),
        "seed {seed}: returned but not recorded: {lost:?}"
    );

    let store = Ran::well(["audit", "verify", &cas.text("node"), "-o", "json"]).json();
    assert_eq!(store["intact"], true, "seed {seed}: {store}");
    // The daily files were caught up when the node started the last time.
    let files = Ran::well(["audit", "verify", &cas.text("node/audit"), "-o", "json"]).json();
    assert_eq!(files["intact"], true, "seed {seed}: {files}");
    assert!(
        files["entries"].as_u64() >= Some(returned.len() as u64),
        "{files}"
    );
}
