//! The node's own server certificate: issued by its CA at the start, its key never on disk, renewed at half its life and
//! with every new CA key, without a restart.

use std::{
    net::IpAddr,
    sync::Arc,
    time::{Duration, SystemTime},
};

use tokio::time::MissedTickBehavior;
use tokio_util::sync::CancellationToken;
use vidimus_daemon::telemetry;
use vidimus_keys::file::{FileKey, KeyError};
use vidimus_store::IdentityId;
use vidimus_tls::{
    clock::Clock as TlsClock,
    events::Events,
    material::{Identity, IdentityError, Material, Trust, Usage},
    watch::{MaterialPublisher, MaterialWatch},
};
use vidimus_x509::{
    issue::{self, RequestError, RequestNames},
    key::KeyAlgorithm,
    pem,
    profile::{
        BasicConstraints, ExtendedKeyUsage, KeyUsage, Profile, StaticSans, SubjectFields,
        ValidityPolicy,
    },
};
use zeroize::Zeroizing;

use crate::{call::Call, issuing::IssueError, node::Node};

const METHOD: &str = "internal/ManagementCertificate";
const VALIDITY_DAYS: u32 = 90;

/// How often the renewal looks whether it is time.
const LOOK: Duration = Duration::from_secs(5);

/// Why there is no server certificate.
#[derive(Debug, thiserror::Error)]
pub enum ManagementError {
    /// The certificate is not usable for a server.
    #[error("own server certificate")]
    Identity(#[from] IdentityError),
    /// The CA refused it.
    #[error("issue the own server certificate")]
    Issue(#[from] IssueError),
    /// The key can't be made.
    #[error("make the own server key")]
    Key(#[from] KeyError),
    /// The request can't be made.
    #[error("request the own server certificate")]
    Request(#[from] RequestError),
}

/// Keeps the server certificate fresh.
#[derive(Debug)]
pub(crate) struct ManagementCertificate {
    node: Arc<Node>,
    publisher: MaterialPublisher,
    renew_at: SystemTime,
}

/// What one issuance gave.
struct Fresh {
    chain_pem: String,
    key_pem: Zeroizing<String>,
    issuer: IdentityId,
    renew_at: SystemTime,
}

impl ManagementCertificate {
    /// Issues the first certificate.
    pub(crate) async fn issue(node: Arc<Node>) -> Result<(MaterialWatch, Self), ManagementError> {
        let fresh = fresh(&node).await?;
        let identity = Identity::from_pem(
            fresh.chain_pem.as_bytes(),
            fresh.key_pem.as_bytes(),
            Usage::Server,
            node.service().now(),
        )?;
        let (watch, publisher) =
            MaterialWatch::from_memory(Material::of(identity, Trust::nobody()));
        node.now_serves(fresh.issuer);
        let publisher = publisher.with_events(Events::default(), tls_clock(&node));
        let renew_at = fresh.renew_at;
        let this = Self {
            node,
            publisher,
            renew_at,
        };
        Ok((watch, this))
    }

    /// Renews until `shutdown`. A failure is logged and tried again; half a life is left for the operator.
    pub(crate) async fn run(mut self, shutdown: CancellationToken) {
        let mut identities = self.node.subscribe_identities();
        let mut ticks = tokio::time::interval(LOOK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut stale = false;
        loop {
            tokio::select! {
                () = shutdown.cancelled() => return,
                changed = identities.changed() => stale |= changed.is_ok(),
                _ = ticks.tick() => stale |= self.node.service().now() >= self.renew_at,
            }
            if stale {
                match self.renew().await {
                    Ok(()) => stale = false,
                    Err(error) => {
                        tracing::error!(error = %telemetry::chain(&error), "own server certificate not renewed");
                    }
                }
            }
        }
    }

    async fn renew(&mut self) -> Result<(), ManagementError> {
        let fresh = fresh(&self.node).await?;
        self.publisher.replace_identity(
            fresh.chain_pem.as_bytes(),
            fresh.key_pem.as_bytes(),
            Usage::Server,
        )?;
        self.renew_at = fresh.renew_at;
        self.node.now_serves(fresh.issuer);
        tracing::info!("own server certificate renewed");
        Ok(())
    }
}

/// The node's clock, as the TLS side takes it.
pub(crate) fn tls_clock(node: &Node) -> TlsClock {
    let clock = node.service().clock();
    TlsClock::from_fn(move || clock.now())
}

async fn fresh(node: &Node) -> Result<Fresh, ManagementError> {
    let key = FileKey::generate(KeyAlgorithm::EcdsaP384)?;
    let subject = SubjectFields {
        common_name: "vidimus node".to_owned(),
        ..SubjectFields::default()
    };
    let csr = issue::request(&subject, &RequestNames::default(), &key)?;
    let profile = profile(node);
    let issued = node
        .service()
        .issue_internal(&Call::node(METHOD), &csr, &profile)
        .await?;
    let mut chain_pem = pem::encode("CERTIFICATE", &issued.certificate.der);
    chain_pem.push_str(issued.issuer.below_root_pem());
    let now = node.service().now();
    let life = issued
        .certificate
        .not_after
        .duration_since(now)
        .unwrap_or_default();
    Ok(Fresh {
        chain_pem,
        key_pem: key.plaintext_pem(),
        issuer: issued.issuer.id(),
        renew_at: now + life / 2,
    })
}

/// A profile that no config can have: its name has a slash.
fn profile(node: &Node) -> Profile {
    let mut sans = StaticSans {
        dns: vec!["localhost".to_owned()],
        ip: vec![
            IpAddr::from([127, 0, 0, 1]),
            IpAddr::from([0, 0, 0, 0, 0, 0, 0, 1]),
        ],
        ..StaticSans::default()
    };
    let config = node.boot_config();
    let listen = config.api.listen.ip();
    let own = (!listen.is_unspecified()).then(|| listen.to_string());
    for name in config.api.names.iter().cloned().chain(own) {
        match name.parse::<IpAddr>() {
            Ok(address) if !sans.ip.contains(&address) => sans.ip.push(address),
            Err(_) if !sans.dns.contains(&name) => sans.dns.push(name),
            Ok(_) | Err(_) => {}
        }
    }
    Profile {
        name: "vidimus/management".to_owned(),
        key_alg: KeyAlgorithm::EcdsaP384,
        subject: SubjectFields::default(),
        validity_days: VALIDITY_DAYS,
        validity_policy: ValidityPolicy::Cap,
        basic_constraints: BasicConstraints::default(),
        key_usage: vec![KeyUsage::DigitalSignature],
        ext_key_usage: vec![ExtendedKeyUsage::ServerAuth],
        sans,
        allow_request_sans: false,
        extra_extensions: Vec::new(),
    }
}
