//! C1, C4: the management API as a process serves it: mutual TLS for one administrator, a UNIX socket for the owner.

use std::{
    fs,
    os::unix::{fs::PermissionsExt as _, net::UnixListener},
    path::{Path, PathBuf},
    time::Duration,
};

use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use vidimus_client::{ClientError, Endpoint, NodeClient, tonic::Code};
use vidimus_keys::Secret;
use vidimus_node::run::{Endpoints, RunConfig, RunError, run_with_clock};
use vidimus_testkit::{openssl, wait_until_async};

use crate::house::{House, csr, leaf, openssl_verifies};

const DEADLINE: Duration = Duration::from_secs(60);
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// A node that serves until it is stopped.
pub(crate) struct Running {
    pub(crate) endpoints: Endpoints,
    shutdown: CancellationToken,
    ended: JoinHandle<Result<(), RunError>>,
}

pub(crate) fn run_config(house: &House, name: &str) -> RunConfig {
    let passphrase = "a passphrase of some length".to_owned().into();
    RunConfig {
        metrics: None,
        data_dir: house.data(name),
        secret: Secret::from_passphrase(passphrase).unwrap(),
        config: None,
    }
}

impl Running {
    pub(crate) async fn start(house: &House, name: &str) -> Self {
        let shutdown = CancellationToken::new();
        let program = run_with_clock(run_config(house, name), house.clock(), shutdown.clone());
        #[expect(clippy::disallowed_methods, reason = "the test joins it")]
        let ended = tokio::spawn(program);
        let path = house.data(name).endpoints();
        let endpoints = wait_until_async(DEADLINE, || async {
            assert!(!ended.is_finished(), "the node ended");
            let text = fs::read(&path).map_err(|error| error.to_string())?;
            serde_json::from_slice(&text).map_err(|error| error.to_string())
        })
        .await;
        Self {
            endpoints,
            shutdown,
            ended,
        }
    }

    pub(crate) async fn connect(&self, identity: &Path) -> Result<NodeClient, ClientError> {
        let address = self.endpoints.management.to_string();
        NodeClient::connect(Endpoint::mtls(&address, None, identity).unwrap()).await
    }

    pub(crate) async fn stop(self) {
        self.shutdown.cancel();
        let ended = tokio::time::timeout(DEADLINE, self.ended).await;
        ended
            .expect("it stops in time")
            .expect("it doesn't panic")
            .expect("it drains");
    }
}

/// An identity folder with other certificate and key files.
fn identity(house: &House, name: &str, ca: &str, certificate: &str, key: &str) -> PathBuf {
    let dir = house.path(name);
    vidimus_fs::dir::create_private(&dir).unwrap();
    house.write(&format!("{name}/ca.crt"), ca);
    house.write(&format!("{name}/tls.crt"), fs::read(certificate).unwrap());
    house.write(&format!("{name}/tls.key"), fs::read(key).unwrap());
    dir
}

/// C4: the administrator that `init` made issues over mutual TLS, and verifies the node against the root.
#[tokio::test(flavor = "multi_thread")]
async fn the_administrator_issues_over_mutual_tls() {
    let house = House::new();
    let root = house.issuing().await;
    let node = Running::start(&house, "issuing").await;
    let client = node.connect(&house.data("issuing").admin()).await.unwrap();
    let request = csr(&house.path(""), "web", &["web.example.org"]);
    let issued = client
        .issue_leaf(leaf(request, "leaf-mutual", &[]))
        .await
        .unwrap();
    openssl_verifies(&house, &root, &issued.chain_pem);
    let row = client
        .issued_certificate(&issued.serial_hex)
        .await
        .unwrap()
        .certificate;
    assert_eq!(row.unwrap().requester, "admin");

    // the node's own certificate is in the issued set like any other
    let all = client
        .list_issued(Default::default())
        .await
        .unwrap()
        .certificates;
    let own = all.iter().find(|row| row.requester == "node").unwrap();
    assert_eq!(own.profile, "vidimus/management");
    assert!(
        own.names.iter().any(|name| name == "localhost"),
        "{:?}",
        own.names
    );
    drop(client);
    let endpoints = house.data("issuing").endpoints();
    assert!(endpoints.exists());
    node.stop().await;
    assert!(!endpoints.exists());
}

/// C1: only the pinned certificate. One that the CA itself issued, one that the administrator's key signed, and none are
/// refused in the handshake.
#[tokio::test(flavor = "multi_thread")]
async fn other_client_certificates_are_refused() {
    let house = House::new();
    let root = house.issuing().await;
    let node = Running::start(&house, "issuing").await;
    let admin = house.data("issuing").admin();
    let client = node.connect(&admin).await.unwrap();
    let file = |path: &Path| path.display().to_string();

    // issued by the node's own CA, for clients
    let request = csr(&house.path(""), "client", &["client.example.org"]);
    let issued = client
        .issue_leaf(leaf(request, "leaf-client", &[]))
        .await
        .unwrap();
    let certificate = house.write("client.crt", &issued.chain_pem);
    let by_ca = identity(
        &house,
        "by-ca",
        &root,
        &certificate,
        &file(&house.path("client.key")),
    );

    // issued by the administrator's key: a pin is no anchor
    csr(&house.path(""), "forged", &[]);
    let (csr_file, forged) = (house.path("forged.csr"), house.path("forged.crt"));
    let (admin_crt, admin_key) = (admin.join("tls.crt"), admin.join("tls.key"));
    openssl([
        "x509",
        "-req",
        "-inform",
        "DER",
        "-in",
        &file(&csr_file),
        "-CA",
        &file(&admin_crt),
        "-CAkey",
        &file(&admin_key),
        "-days",
        "30",
        "-out",
        &file(&forged),
    ])
    .success();
    let chain = format!(
        "{}{}",
        fs::read_to_string(&forged).unwrap(),
        fs::read_to_string(&admin_crt).unwrap()
    );
    let chain = house.write("forged-chain.crt", chain);
    let by_admin = identity(
        &house,
        "by-admin",
        &root,
        &chain,
        &file(&house.path("forged.key")),
    );

    // the pinned certificate with another key
    let stolen = identity(
        &house,
        "stolen",
        &root,
        &file(&admin_crt),
        &file(&house.path("client.key")),
    );

    for (name, folder) in [("by-ca", by_ca), ("by-admin", by_admin), ("stolen", stolen)] {
        match node.connect(&folder).await {
            Err(ClientError::Connect(refused)) => {
                assert_eq!(refused.code(), Code::Unavailable, "{name}: {refused}");
            }
            Err(ClientError::Material(_)) => assert_eq!(name, "stolen"),
            other => panic!("{name}: {other:?}"),
        }
    }
    client.status().await.unwrap();
    drop(client);
    node.stop().await;
}

/// C1: a pin does not outlive its certificate, neither for a new connection nor for one that is open.
#[tokio::test(flavor = "multi_thread")]
async fn an_expired_administrator_is_refused() {
    let house = House::new();
    house.issuing().await;
    let node = Running::start(&house, "issuing").await;
    let admin = house.data("issuing").admin();
    let open = node.connect(&admin).await.unwrap();
    open.status().await.unwrap();
    // the administrator's certificate ends after five years; the CA's chain ends then too, but it is the node's clock that
    // is put forward, so the client still takes the server's certificate
    house.clock.advance(DAY * (5 * 365 + 2));
    let refused = open.status().await.unwrap_err();
    assert_eq!(refused.code(), Code::PermissionDenied, "{refused}");
    let refused = node.connect(&admin).await;
    assert!(
        matches!(&refused, Err(ClientError::Connect(_))),
        "{refused:?}"
    );
    drop(open);
    node.stop().await;
}

/// C1: the config can pin an administrator; then `init` makes none.
#[tokio::test(flavor = "multi_thread")]
async fn a_config_pins_an_administrator_of_its_own() {
    let house = House::new();
    let (key, certificate) = (house.path("own.key"), house.path("own.crt"));
    let file = |path: &Path| path.display().to_string();
    openssl([
        "req",
        "-x509",
        "-nodes",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:P-256",
        "-subj",
        "/CN=operator",
        "-days",
        "30",
        "-addext",
        "extendedKeyUsage=clientAuth",
        "-addext",
        "basicConstraints=critical,CA:FALSE",
        "-keyout",
        &file(&key),
        "-out",
        &file(&certificate),
    ])
    .success();
    let pem = fs::read_to_string(&certificate)
        .unwrap()
        .replace('\n', "\n    ");
    let bootstrap = format!("bootstrap:\n  admin_cert_pem: |\n    {}\n", pem.trim());
    let root = house
        .issuing_with(|text| format!("{bootstrap}{text}"))
        .await;
    assert!(!house.data("issuing").admin().exists());
    let node = Running::start(&house, "issuing").await;
    let own = identity(&house, "operator", &root, &file(&certificate), &file(&key));
    let client = node.connect(&own).await.unwrap();
    client.config().await.unwrap();
    let events = client
        .audit_events(Default::default())
        .await
        .unwrap()
        .events;
    let get_config = events
        .iter()
        .find(|event| event.rpc_method.ends_with("/GetConfig"));
    assert_eq!(get_config.unwrap().actor_subject, "CN=operator");
    drop(client);
    node.stop().await;
}

/// C1: the UNIX socket is the owner's, takes over a stale name, and never one that is in use or no socket.
#[tokio::test(flavor = "multi_thread")]
async fn the_socket_is_the_owners_alone() {
    let house = House::new();
    house.issuing().await;
    let path = house.data("issuing").path().join("node.sock");
    drop(UnixListener::bind(&path).unwrap());
    assert!(path.exists(), "a stale socket");
    let node = Running::start(&house, "issuing").await;
    assert_eq!(node.endpoints.socket, path);
    assert_eq!(
        fs::metadata(&path).unwrap().permissions().mode() & 0o777,
        0o600
    );
    let client = NodeClient::connect(Endpoint::Unix(path.clone()))
        .await
        .unwrap();
    assert_eq!(client.config().await.unwrap().generation, 1);
    let events = client
        .audit_events(Default::default())
        .await
        .unwrap()
        .events;
    let get_config = events
        .iter()
        .find(|event| event.rpc_method.ends_with("/GetConfig"));
    assert_eq!(
        get_config.unwrap().actor_subject,
        "",
        "the local socket has no subject"
    );
    drop(client);
    node.stop().await;
    assert!(!path.exists());

    let occupied = |house: &House| {
        run_with_clock(
            run_config(house, "issuing"),
            house.clock(),
            CancellationToken::new(),
        )
    };
    let live = UnixListener::bind(&path).unwrap();
    let refused = occupied(&house).await;
    assert!(matches!(refused, Err(RunError::Socket(_))), "{refused:?}");
    drop(live);
    fs::remove_file(&path).unwrap();
    house.write("issuing/node.sock", "a file");
    let refused = occupied(&house).await;
    assert!(matches!(refused, Err(RunError::Socket(_))), "{refused:?}");
    assert!(path.is_file(), "it is left alone");
}

/// C13: with a new CA key, the running node presents a certificate of the new CA; the old connection goes on.
#[tokio::test(flavor = "multi_thread")]
async fn a_rotation_renews_the_nodes_own_certificate() {
    let house = House::new();
    house.issuing().await;
    let new = House::new();
    let new_root = new.root().await;
    let node = Running::start(&house, "issuing").await;
    let admin = house.data("issuing").admin();
    let client = node.connect(&admin).await.unwrap();
    let csr_pem = client.begin_key_rotation().await.unwrap().csr_pem;
    let chain = new.signed_by("root", &csr_pem).await;
    let text = crate::house::config_text(
        vidimus_node::config::Role::Issuing,
        "Issuing",
        Some(&new_root),
    );
    client.apply_config(&text).await.unwrap();
    client.complete_key_rotation(&chain).await.unwrap();
    // `ca.crt` has the new root now: a new client verifies the node against it, with no wait between
    let again = node.connect(&admin).await.unwrap();
    again.status().await.unwrap();
    client.status().await.unwrap();
    drop((client, again));
    node.stop().await;
}

/// C1: the node's own certificate is renewed at half its life.
#[tokio::test(flavor = "multi_thread")]
async fn the_nodes_own_certificate_is_renewed_at_half_its_life() {
    let house = House::new();
    house.issuing().await;
    let node = Running::start(&house, "issuing").await;
    let client = node.connect(&house.data("issuing").admin()).await.unwrap();
    let own = || async {
        let all = client
            .list_issued(Default::default())
            .await
            .unwrap()
            .certificates;
        all.iter().filter(|row| row.requester == "node").count()
    };
    assert_eq!(own().await, 1);
    house.clock.advance(DAY * 46);
    wait_until_async(DEADLINE, || async {
        match own().await {
            2 => Ok(()),
            other => Err(format!("{other} certificates of its own")),
        }
    })
    .await;
    drop(client);
    node.stop().await;
}
