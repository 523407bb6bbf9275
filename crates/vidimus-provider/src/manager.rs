//! The manager's side: one client of one provider.
//!
//! TLS 1.3 with the identity and the roots of a folder, which are followed as they change; the
//! server name that VirtRigaud derives from the Provider's namespace and name; a deadline for every
//! call; and errors that say what a manager does about them.

mod calls;
mod error;
mod name;

pub use self::{
    calls::Deadlines,
    error::{CallError, Outcome},
    name::{NameError, ProviderName},
};

use std::{path::PathBuf, time::Duration};

use serde::Serialize;
use tokio_util::sync::CancellationToken;
use tonic::Streaming;
use tonic_health::pb::{HealthCheckRequest, HealthCheckResponse, health_client::HealthClient};
use vidimus_proto::provider::v1::provider_client::ProviderClient;
use vidimus_tls::{
    channel::{BuildError, Channel, ChannelStatus, ClientTls},
    danger::InsecureServerVerification,
    material::{MaterialError, MaterialFiles, Usage},
    watch::{MaterialDriver, MaterialStatus, MaterialWatch, WatchOptions},
};

use crate::server::MAX_MESSAGE;

/// How a manager reaches a provider.
#[derive(Clone, Debug)]
pub struct ManagerConfig {
    /// Whose server name the provider's certificate must carry.
    pub provider: ProviderName,
    /// `host:port`.
    pub endpoint: String,
    /// How the connection is protected.
    pub tls: ManagerTls,
    /// How the files are watched.
    pub watch: WatchOptions,
    /// How long an attempt to connect may take.
    pub connect_timeout: Duration,
    /// The shortest and the longest wait between failed attempts.
    pub backoff: (Duration, Duration),
    /// How long each call may take.
    pub deadlines: Deadlines,
}

/// How a manager protects its connection to a provider.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ManagerTls {
    /// Mutual TLS from the `tls.crt`, `tls.key` and `ca.crt` of this folder.
    Mutual(PathBuf),
    /// As [`Self::Mutual`], but whoever answers is believed to be the provider
    /// (`insecureSkipVerify`): for development. The client certificate is still presented, and
    /// each connect is logged as a warning.
    MutualInsecureSkipVerify(PathBuf),
    /// No TLS (`tls.enabled: false`), for providers that opted out.
    Plaintext,
}

/// A client of one provider. Clones share their connections.
#[derive(Clone, Debug)]
pub struct Manager {
    channel: Channel,
    client: ProviderClient<Channel>,
    deadlines: Deadlines,
    health: HealthClient<Channel>,
    material: Option<MaterialWatch>,
    posture: &'static str,
    provider: ProviderName,
}

/// The work behind a [`Manager`]: follows the files. The caller runs it.
#[derive(Debug)]
pub struct ManagerDriver(Option<MaterialDriver>);

/// A manager's state, for tables and pages.
#[derive(Clone, Debug, Serialize)]
pub struct ManagerStatus {
    /// The Provider's namespace.
    pub namespace: String,
    /// The Provider's name.
    pub name: String,
    /// `mutual`, `insecure-skip-verify` or `plaintext`.
    pub posture: &'static str,
    /// The certificate, the roots and how their reloads went; none under plaintext.
    pub material: Option<MaterialStatus>,
    /// The connections, their generations and peers, and counters.
    pub channel: ChannelStatus,
}

/// Why a manager could not be made.
#[derive(Debug, thiserror::Error)]
pub enum ManagerError {
    /// Endpoint, server name and protection don't go together.
    #[error("set up the channel to {endpoint}")]
    Channel {
        /// The endpoint.
        endpoint: String,
        /// The cause.
        #[source]
        source: BuildError,
    },
    /// The TLS files are not there or not good.
    #[error("load the TLS material of provider {provider}")]
    Material {
        /// `namespace/name`.
        provider: String,
        /// The cause.
        #[source]
        source: MaterialError,
    },
}

impl ManagerConfig {
    /// A manager of `provider` at `endpoint`, with VirtRigaud's deadlines.
    #[must_use]
    pub fn new(provider: ProviderName, endpoint: impl Into<String>, tls: ManagerTls) -> Self {
        Self {
            provider,
            endpoint: endpoint.into(),
            tls,
            watch: WatchOptions::default(),
            connect_timeout: Duration::from_secs(10),
            backoff: (Duration::from_secs(1), Duration::from_secs(2 * 60)),
            deadlines: Deadlines::default(),
        }
    }
}

impl Manager {
    /// Loads the material and makes the client, which connects when it is first needed.
    ///
    /// Must be called inside a tokio runtime.
    ///
    /// # Errors
    ///
    /// The files are not good, or the endpoint is none.
    pub async fn start(config: ManagerConfig) -> Result<(Self, ManagerDriver), ManagerError> {
        let Protection {
            tls,
            material,
            driver,
            posture,
        } = protect(&config).await?;
        let server_name = config.provider.server_name();
        let channel = Channel::builder(&config.endpoint, &server_name, tls)
            .connect_timeout(config.connect_timeout)
            .backoff(config.backoff.0, config.backoff.1)
            .clock(config.watch.clock.clone())
            .build()
            .map_err(|source| ManagerError::Channel {
                endpoint: config.endpoint,
                source,
            })?;
        let client = ProviderClient::new(channel.clone()).max_decoding_message_size(MAX_MESSAGE);
        let manager = Self {
            client,
            deadlines: config.deadlines,
            health: HealthClient::new(channel.clone()),
            channel,
            material,
            posture,
            provider: config.provider,
        };
        Ok((manager, ManagerDriver(driver)))
    }

    /// The Provider that it calls.
    #[must_use]
    pub const fn provider(&self) -> &ProviderName {
        &self.provider
    }

    /// The channel, for clients of other services of the same server.
    #[must_use]
    pub const fn channel(&self) -> &Channel {
        &self.channel
    }

    /// The material that is followed; none under plaintext.
    #[must_use]
    pub const fn material(&self) -> Option<&MaterialWatch> {
        self.material.as_ref()
    }

    /// The state of this moment.
    #[must_use]
    pub fn status(&self) -> ManagerStatus {
        ManagerStatus {
            namespace: self.provider.namespace().to_owned(),
            name: self.provider.name().to_owned(),
            posture: self.posture,
            material: self.material.as_ref().map(MaterialWatch::status),
            channel: self.channel_status(),
        }
    }

    /// The connections of this moment.
    #[must_use]
    pub fn channel_status(&self) -> ChannelStatus {
        self.channel.status()
    }

    /// Opens a connection if there is none.
    ///
    /// # Errors
    ///
    /// Why there is none, such as the alert by which the provider refused the certificate.
    pub async fn ready(&self) -> Result<(), CallError> {
        self.channel
            .ready()
            .await
            .map_err(|status| CallError::new("connect", status))
    }

    /// Moves new calls to a new connection, opened with the material of this moment.
    ///
    /// # Errors
    ///
    /// Why there is no new one; the connection before goes on serving.
    pub async fn reconnect(&self) -> Result<(), CallError> {
        self.channel
            .reconnect()
            .await
            .map_err(|status| CallError::new("reconnect", status))
    }

    /// Follows the provider's health: its state now and at each change. A provider that shuts down
    /// says `NOT_SERVING` and ends the stream.
    ///
    /// # Errors
    ///
    /// The provider could not be reached, or refused the call.
    pub async fn watch_health(
        &self,
        service: &str,
    ) -> Result<Streaming<HealthCheckResponse>, CallError> {
        let request = HealthCheckRequest {
            service: service.to_owned(),
        };
        let mut client = self.health.clone();
        let answer = client.watch(request).await;
        answer
            .map(tonic::Response::into_inner)
            .map_err(|status| CallError::new("Watch", status))
    }

    /// Takes no more calls, and lets those in flight finish for at most `grace`.
    pub async fn close(&self, grace: Duration) {
        self.channel.close(grace).await;
    }
}

impl ManagerDriver {
    /// Follows the files until the shutdown.
    pub async fn run(self, shutdown: CancellationToken) {
        match self.0 {
            Some(driver) => driver.run(shutdown).await,
            None => shutdown.cancelled().await,
        }
    }
}

struct Protection {
    tls: ClientTls,
    material: Option<MaterialWatch>,
    driver: Option<MaterialDriver>,
    posture: &'static str,
}

async fn protect(config: &ManagerConfig) -> Result<Protection, ManagerError> {
    let (directory, insecure) = match &config.tls {
        ManagerTls::Mutual(directory) => (directory, false),
        ManagerTls::MutualInsecureSkipVerify(directory) => (directory, true),
        ManagerTls::Plaintext => {
            tracing::warn!(
                audit = true,
                provider = %config.provider,
                "calls to this provider are neither encrypted nor authenticated"
            );
            let tls = ClientTls::Plaintext;
            return Ok(Protection {
                tls,
                material: None,
                driver: None,
                posture: "plaintext",
            });
        }
    };
    let files = MaterialFiles::in_dir(directory);
    let (watch, driver) = MaterialWatch::start(files, Usage::Client, config.watch.clone())
        .await
        .map_err(|source| ManagerError::Material {
            provider: config.provider.to_string(),
            source,
        })?;
    let (tls, posture) = if insecure {
        tracing::warn!(
            audit = true,
            provider = %config.provider,
            "insecureSkipVerify=true: whoever answers is believed to be this provider"
        );
        let any = InsecureServerVerification::accept_any_server_certificate();
        (
            ClientTls::Insecure(watch.clone(), any),
            "insecure-skip-verify",
        )
    } else {
        (ClientTls::Watch(watch.clone()), "mutual")
    };
    Ok(Protection {
        tls,
        material: Some(watch),
        driver: Some(driver),
        posture,
    })
}
