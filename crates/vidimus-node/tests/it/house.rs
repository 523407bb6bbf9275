//! Nodes in temporary folders, their files, and CSRs by the openssl program.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
    time::{Duration, SystemTime},
};

use tempfile::TempDir;
use vidimus_client::{NodeClient, pb};
use vidimus_daemon::clock::{Clock, SystemClock};
use vidimus_keys::Secret;
use vidimus_node::{
    LocalService, Node,
    ceremony::{self, Ceremony},
    config::{self, Api, Config, Role, Template, template},
    data::DataDir,
};
use vidimus_testkit::openssl;
use zeroize::Zeroizing;

/// A clock that starts at the present and can be put forward.
#[derive(Debug)]
pub(crate) struct TestClock(Mutex<Duration>);

impl TestClock {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self(Mutex::new(Duration::ZERO)))
    }

    pub(crate) fn advance(&self, by: Duration) {
        *self.0.lock().unwrap() += by;
    }
}

impl Clock for TestClock {
    fn now(&self) -> SystemTime {
        SystemClock.now() + *self.0.lock().unwrap()
    }
}

/// A folder with nodes and files of one test.
#[derive(Debug)]
pub(crate) struct House {
    dir: TempDir,
    pub(crate) clock: Arc<TestClock>,
}

impl House {
    pub(crate) fn new() -> Self {
        let dir = TempDir::new().unwrap();
        Self {
            dir,
            clock: TestClock::new(),
        }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub(crate) fn clock(&self) -> Arc<dyn Clock> {
        Arc::clone(&self.clock) as Arc<dyn Clock>
    }

    pub(crate) fn data(&self, name: &str) -> DataDir {
        DataDir::new(self.path(name))
    }

    /// Writes a file and answers its path as text, for arguments.
    pub(crate) fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> String {
        let path = self.path(name);
        vidimus_fs::durable::write(&path, bytes.as_ref(), vidimus_fs::Mode::Public).unwrap();
        path.display().to_string()
    }

    /// A root `root` from the template, after `edit`; its certificate.
    pub(crate) async fn root_with(&self, edit: impl Fn(String) -> String) -> String {
        let text = edit(config_text(Role::Root, "Root", None));
        let config = config::parse("root.yaml", &text).unwrap();
        let done = ceremony::init(&self.data("root"), &config, &secret(), &self.clock())
            .await
            .unwrap();
        match done.outcome {
            Ceremony::Established { certificate_pem } => certificate_pem,
            Ceremony::AwaitingCertificate { .. } => panic!("a root waits for nobody"),
        }
    }

    pub(crate) async fn root(&self) -> String {
        self.root_with(|text| text).await
    }

    /// A subordinate `name` that waits for its chain; its request.
    pub(crate) async fn request(&self, name: &str, config: &Config) -> String {
        let done = ceremony::init(&self.data(name), config, &secret(), &self.clock())
            .await
            .unwrap();
        match done.outcome {
            Ceremony::AwaitingCertificate { csr_pem } => csr_pem,
            Ceremony::Established { .. } => panic!("a subordinate has no certificate yet"),
        }
    }

    /// Signs a request with a node's `sub-ca` profile, offline.
    pub(crate) async fn signed_by(&self, name: &str, csr_pem: &str) -> String {
        let client = self.offline(name).await;
        let request = pb::SignSubordinateCsrRequest {
            csr: csr_pem.as_bytes().to_vec(),
            profile: "sub-ca".to_owned(),
        };
        client.sign_subordinate(request).await.unwrap().chain_pem
    }

    /// An issuing node `issuing` below a root `root`; the root's certificate.
    pub(crate) async fn issuing_with(&self, edit: impl Fn(String) -> String) -> String {
        let root_pem = self.root().await;
        let text = edit(config_text(Role::Issuing, "Issuing", Some(&root_pem)));
        let config = config::parse("issuing.yaml", &text).unwrap();
        let csr_pem = self.request("issuing", &config).await;
        let chain = self.signed_by("root", &csr_pem).await;
        self.complete("issuing", &chain).await.unwrap();
        root_pem
    }

    pub(crate) async fn issuing(&self) -> String {
        self.issuing_with(|text| text).await
    }

    pub(crate) async fn complete(
        &self,
        name: &str,
        chain_pem: &str,
    ) -> Result<ceremony::Initialised, ceremony::CompleteError> {
        let chain = chain_pem.as_bytes();
        ceremony::complete(&self.data(name), chain, &secret(), &self.clock()).await
    }

    pub(crate) async fn open(&self, name: &str) -> Node {
        Node::open(self.data(name), secret(), self.clock())
            .await
            .unwrap()
    }

    /// A client of a node that this process opens.
    pub(crate) async fn offline(&self, name: &str) -> NodeClient {
        NodeClient::over(self.open(name).await.local_service())
    }
}

/// The node and a client of it.
pub(crate) fn client_of(node: &Arc<Node>) -> NodeClient {
    NodeClient::over(LocalService::new(Arc::clone(node)))
}

pub(crate) fn secret() -> Arc<Secret> {
    let passphrase = Zeroizing::new("a passphrase of some length".to_owned());
    Arc::new(Secret::from_passphrase(passphrase).unwrap())
}

/// A config from the template that listens on a free port.
pub(crate) fn config_text(role: Role, name: &str, parent_pem: Option<&str>) -> String {
    let api = Api {
        listen: "127.0.0.1:0".parse().unwrap(),
        ..Api::default()
    };
    template(&Template {
        role,
        common_name: name,
        parent_pem,
        api,
    })
}

/// A new P-384 key and a CSR for it, DER, by openssl.
pub(crate) fn csr(dir: &Path, name: &str, dns: &[&str]) -> Vec<u8> {
    csr_for(
        dir,
        name,
        dns,
        &["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-384"],
    )
}

pub(crate) fn csr_for(dir: &Path, name: &str, dns: &[&str], key: &[&str]) -> Vec<u8> {
    let out = dir.join(format!("{name}.csr")).display().to_string();
    let key_out = dir.join(format!("{name}.key")).display().to_string();
    let subject = format!("/CN={name}");
    let mut args = vec!["req", "-new", "-nodes", "-outform", "DER", "-sha384"];
    args.extend(key);
    args.extend(["-subj", &subject, "-out", &out, "-keyout", &key_out]);
    let names: Vec<_> = dns.iter().map(|name| format!("DNS:{name}")).collect();
    let extension = format!("subjectAltName={}", names.join(","));
    if !dns.is_empty() {
        args.extend(["-addext", &extension]);
    }
    openssl(args).success();
    fs::read(out).unwrap()
}

pub(crate) fn leaf(csr: Vec<u8>, profile: &str, dns: &[&str]) -> pb::IssueLeafRequest {
    pb::IssueLeafRequest {
        csr,
        profile: profile.to_owned(),
        dns_names: dns.iter().map(|&name| name.to_owned()).collect(),
        ip_addresses: Vec::new(),
    }
}

/// Splits a PEM chain into its first certificate and the rest.
pub(crate) fn first_and_rest(chain_pem: &str) -> (String, String) {
    let end = "-----END CERTIFICATE-----\n";
    match chain_pem.split_once(end) {
        Some((first, rest)) => (format!("{first}{end}"), rest.to_owned()),
        None => panic!("no certificate in {chain_pem:?}"),
    }
}

/// What `openssl verify` says of a chain under a root.
pub(crate) fn openssl_verifies(house: &House, root_pem: &str, chain_pem: &str) {
    let (leaf, rest) = first_and_rest(chain_pem);
    let root = house.write("verify-root.pem", root_pem);
    let leaf = house.write("verify-leaf.pem", leaf);
    let mut args = vec!["verify", "-x509_strict", "-check_ss_sig", "-CAfile", &root];
    let rest_file = house.write("verify-rest.pem", &rest);
    if !rest.is_empty() {
        args.extend(["-untrusted", &rest_file]);
    }
    args.push(&leaf);
    openssl(args).success();
}
