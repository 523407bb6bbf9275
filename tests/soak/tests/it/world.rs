//! A server and its clients, each with a mounted Secret that is replaced again and again.

use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tonic::service::Routes;
use vidimus_proto::testkit::v1::echo_server::EchoServer;
use vidimus_testkit::kubelet::Volume;
use vidimus_testkit::{Authority, Credential, Pki, wait_until_async};
use vidimus_tls::channel::{Channel, ChannelStatus, ClientTls};
use vidimus_tls::identity::Fingerprint;
use vidimus_tls::material::{MaterialFiles, Usage};
use vidimus_tls::policy::AllowList;
use vidimus_tls::runtime::Runtime;
use vidimus_tls::server::{Limits, Security, Server};
use vidimus_tls::watch::{MaterialWatch, WatchOptions};

use crate::service::{Numbers, Published};

const SERVER: &str = "server.test";
const CLIENT: &str = "client.test";
/// No wait is longer. A busy machine needs a minute for some thousand handshakes.
const DEADLINE: Duration = Duration::from_secs(300);

/// One side: its folder and what is in it.
struct Side {
    volume: Volume,
    watch: MaterialWatch,
    leaf: Credential,
}

impl Side {
    /// Replaces the folder's content, and waits until it is in use.
    async fn write(&mut self, roots: &[&Authority]) {
        let generation = self.watch.current().generation();
        self.volume.swap(&self.leaf.files(roots));
        let used = self.watch.wait_for_generation(generation + 1);
        let in_time = tokio::time::timeout(DEADLINE, used).await;
        in_time.expect("the new material is used");
    }
}

/// Everything that a soak needs.
pub(crate) struct World {
    pub(crate) channels: Vec<Channel>,
    pub(crate) numbers: watch::Sender<Published>,
    rotations: u32,
    pki: Pki,
    server: Server,
    serving: Side,
    calling: Side,
    stop: CancellationToken,
    tasks: JoinSet<()>,
    _folder: tempfile::TempDir,
}

impl World {
    /// Serves, and makes so many channels with their own connections.
    pub(crate) async fn start(channels: usize, grace: Duration, jitter: Duration) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let pki = Pki::new("CA 0");
        let mut runtime = Runtime::new();
        let mut side = async |name: &str, leaf: Credential, usage| {
            let volume = leaf.write_volume(&folder.path().join(name), &[&pki.root]);
            let files = MaterialFiles::in_dir(volume.dir());
            let started = runtime.material(files, usage, WatchOptions::default());
            let watch = started.await.expect("good material");
            Side {
                volume,
                watch,
                leaf,
            }
        };
        let serving = side("server", server_leaf(&pki), Usage::Server).await;
        let calling = side("client", client_leaf(&pki), Usage::Client).await;
        let numbers = watch::Sender::new(Published::default());
        let server = Server::builder(Security::mutual(serving.watch.clone()))
            .allow_list(AllowList::parse(CLIENT).expect("a list"))
            .limits(Limits {
                // All clients share one address here.
                max_handshakes: 8192,
                max_handshakes_per_source: 8192,
                withdrawal_grace: grace,
                ..Limits::default()
            })
            .build();
        let stop = CancellationToken::new();
        let mut tasks = JoinSet::new();
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a port");
        let target = listener.local_addr().expect("an address").to_string();
        let routes = Routes::new(EchoServer::new(Numbers(numbers.subscribe())));
        let (accepting, token) = (server.clone(), stop.clone());
        tasks.spawn(async move {
            let drained = accepting.serve(listener.into(), routes, token).await;
            drained.expect("the server serves");
        });
        tasks.spawn(runtime.run(stop.clone()));
        let channel = || {
            let tls = ClientTls::Watch(calling.watch.clone());
            let builder = Channel::builder(&target, SERVER, tls)
                .connect_timeout(Duration::from_secs(60))
                .rotation_jitter(jitter)
                .withdrawal_grace(grace);
            builder.build().expect("a channel")
        };
        Self {
            channels: (0..channels).map(|_| channel()).collect(),
            numbers,
            rotations: 0,
            pki,
            server,
            serving,
            calling,
            stop,
            tasks,
            _folder: folder,
        }
    }

    /// Replaces leaf and CA of both sides: adds the new root, issues anew, and removes the old root once no channel needs it
    /// for new calls.
    pub(crate) async fn rotate(&mut self) {
        self.rotations += 1;
        let new = Pki::new(&format!("CA {}", self.rotations));
        let old = std::mem::replace(&mut self.pki, new);
        let both = [&old.root, &self.pki.root];
        self.serving.write(&both).await;
        self.calling.write(&both).await;

        self.serving.leaf = server_leaf(&self.pki);
        self.serving.write(&both).await;
        self.calling.leaf = client_leaf(&self.pki);
        self.calling.write(&both).await;
        let leaf = Fingerprint::of(self.calling.leaf.leaf_der());
        let anchor = Fingerprint::of(self.pki.root.der());
        let moved = |status: &ChannelStatus| {
            let mut current = status.connections.iter().filter(|each| each.current);
            current.all(|each| each.presented == Some(leaf) && each.anchor == Some(anchor))
        };
        self.until_all("still the old leaf", moved).await;

        let one = [&self.pki.root];
        self.serving.write(&one).await;
        self.calling.write(&one).await;
        let renewed = |status: &ChannelStatus| {
            let mut connections = status.connections.iter();
            connections.all(|each| each.presented == Some(leaf) && each.anchor == Some(anchor))
        };
        self.until_all("still connected by the old root", renewed)
            .await;
        wait_until_async(DEADLINE, || async {
            let connections = self.server.connections();
            let rest = connections
                .iter()
                .filter(|each| each.anchor != Some(anchor));
            match rest.count() {
                0 => Ok(()),
                count => Err(format!("{count} connections by the old root")),
            }
        })
        .await;
    }

    async fn until_all(&self, what: &str, holds: impl Fn(&ChannelStatus) -> bool) {
        for channel in &self.channels {
            wait_until_async(DEADLINE, || async {
                let status = channel.status();
                if holds(&status) {
                    Ok(())
                } else {
                    Err(format!("{what}: {status:?}"))
                }
            })
            .await;
        }
    }

    /// Ends the server; the channels go with their last clones.
    pub(crate) async fn stop(mut self) {
        self.channels.clear();
        self.stop.cancel();
        while let Some(ended) = self.tasks.join_next().await {
            ended.expect("no task panics");
        }
    }
}

fn server_leaf(pki: &Pki) -> Credential {
    pki.leaf("server").dns(SERVER).server().issue()
}

fn client_leaf(pki: &Pki) -> Credential {
    pki.leaf("client").dns(CLIENT).client().issue()
}
