//! `vidimus provider validate`: a provider as a manager would meet it.

use std::{path::PathBuf, time::Duration};

use anyhow::Context as _;
use clap::Args;
use serde::Serialize;
use tonic_health::pb::{HealthCheckRequest, health_client::HealthClient};
use vidimus_daemon::clock::{Clock as _, SystemClock};
use vidimus_proto::provider::v1::{self as pb, provider_client::ProviderClient};
use vidimus_provider::manager::ProviderName;
use vidimus_tls::{
    channel::{Channel, ClientTls},
    danger::InsecureServerVerification,
    material::{Material, MaterialFiles, Usage},
    watch::MaterialWatch,
};

use crate::{
    cli::OutputArgs,
    exit::{Exit, Stop},
    output, time,
};

/// Arguments of `vidimus provider validate`.
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  \
    vidimus provider validate 10.0.0.7:9443 --provider virtrigaud-system/vsphere-prod --tls /etc/virtrigaud/tls\n  \
    vidimus provider validate 127.0.0.1:9443 --server-name provider.example --tls ./tls --no-certificate\n\n\
    Exit code 0: it answered and is well; 1: it answered that it isn't; 3: no connection, or the connection was \
    refused; 4: it refused the call.")]
pub(crate) struct ValidateArgs {
    /// `host:port`.
    #[arg(value_name = "ENDPOINT")]
    endpoint: String,

    /// The folder with `tls.crt`, `tls.key` and `ca.crt`.
    #[arg(long, value_name = "DIR", required_unless_present = "plaintext")]
    tls: Option<PathBuf>,

    /// The name that the provider's certificate must carry; the endpoint's host if absent.
    #[arg(long, value_name = "NAME")]
    server_name: Option<String>,

    /// The Provider whose Service name the certificate must carry, as a VirtRigaud manager asks for it.
    #[arg(long, value_name = "NAMESPACE/NAME", conflicts_with = "server_name")]
    provider: Option<String>,

    /// Presents no certificate, to see that it is refused.
    #[arg(long, conflicts_with_all = ["plaintext", "insecure_skip_verify"])]
    no_certificate: bool,

    /// Believes whoever answers to be the provider; the client certificate is still presented.
    #[arg(long)]
    insecure_skip_verify: bool,

    /// Connects without TLS, for a provider that opted out.
    #[arg(long, conflicts_with_all = ["tls", "insecure_skip_verify"])]
    plaintext: bool,

    /// How long everything may take, in seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 10)]
    timeout: u64,

    #[command(flatten)]
    output: OutputArgs,
}

#[derive(Serialize)]
struct Answer {
    endpoint: String,
    server_name: String,
    certificate: Option<ServerCertificate>,
    ok: bool,
    message: String,
    health: String,
    capabilities: Vec<&'static str>,
    disk_types: Vec<String>,
    network_types: Vec<String>,
}

#[derive(Serialize)]
struct ServerCertificate {
    subject: String,
    names: Vec<String>,
    not_after: String,
    sha256: String,
    root_sha256: Option<String>,
}

impl ValidateArgs {
    pub(super) async fn run(self) -> anyhow::Result<()> {
        let server_name = self.name()?;
        let limit = Duration::from_secs(self.timeout);
        let channel = Channel::builder(&self.endpoint, &server_name, self.protection()?)
            .connect_timeout(limit)
            .build()
            .with_context(|| format!("set up the channel to {}", self.endpoint))?;
        let answer = tokio::time::timeout(limit, self.ask(&channel, server_name));
        let answer = answer.await.map_err(|_| Stop {
            exit: Exit::Unreachable,
            message: format!(
                "{} did not answer everything within {} s",
                self.endpoint, self.timeout
            ),
        })??;
        output::print_fields(self.output.format, &answer, &answer.fields())?;
        if answer.ok {
            Ok(())
        } else {
            Err(Stop::failure(format!(
                "the provider says that it is not well: {}",
                answer.message
            )))
        }
    }

    fn name(&self) -> anyhow::Result<String> {
        if let Some(provider) = &self.provider {
            let (namespace, name) = provider
                .split_once('/')
                .ok_or_else(|| Stop::usage(format!("{provider:?} is not NAMESPACE/NAME")))?;
            return Ok(ProviderName::new(namespace, name)?.server_name());
        }
        if let Some(name) = &self.server_name {
            return Ok(name.clone());
        }
        let host = self
            .endpoint
            .rsplit_once(':')
            .map_or(self.endpoint.as_str(), |(host, _)| host);
        Ok(host.trim_matches(['[', ']']).to_owned())
    }

    fn protection(&self) -> anyhow::Result<ClientTls> {
        let Some(folder) = &self.tls else {
            return Ok(ClientTls::Plaintext);
        };
        let files = MaterialFiles::in_dir(folder);
        let now = SystemClock.now();
        let material = Material::load(&files, Usage::Client, now)?;
        let watch = MaterialWatch::fixed(material);
        Ok(if self.no_certificate {
            ClientTls::WithoutCertificate(watch)
        } else if self.insecure_skip_verify {
            ClientTls::Insecure(
                watch,
                InsecureServerVerification::accept_any_server_certificate(),
            )
        } else {
            ClientTls::Watch(watch)
        })
    }

    async fn ask(&self, channel: &Channel, server_name: String) -> anyhow::Result<Answer> {
        let mut client = ProviderClient::new(channel.clone());
        let well = client.validate(pb::ValidateRequest {}).await?.into_inner();
        let capabilities = client.get_capabilities(pb::GetCapabilitiesRequest {}).await;
        let capabilities = match capabilities {
            Ok(answer) => answer.into_inner(),
            // A provider may leave the call out.
            Err(status) if status.code() == tonic::Code::Unimplemented => {
                pb::GetCapabilitiesResponse::default()
            }
            Err(status) => return Err(status.into()),
        };
        let health = HealthClient::new(channel.clone())
            .check(HealthCheckRequest::default())
            .await;
        let health = match health {
            Ok(answer) => answer.into_inner().status().as_str_name().to_owned(),
            Err(status) => format!("{:?}", status.code()),
        };
        let connection = channel.status().connections.into_iter().next();
        let certificate = connection.and_then(|connection| {
            let server = connection.server?;
            Some(ServerCertificate {
                subject: server.subject().to_owned(),
                names: server.dns_names().to_vec(),
                not_after: time::of_system(server.not_after()),
                sha256: server.fingerprint().to_string(),
                root_sha256: connection.anchor.map(|anchor| anchor.to_string()),
            })
        });
        Ok(Answer {
            endpoint: self.endpoint.clone(),
            server_name,
            certificate,
            ok: well.ok,
            message: well.message,
            health,
            capabilities: supported(&capabilities),
            disk_types: capabilities.supported_disk_types,
            network_types: capabilities.supported_network_types,
        })
    }
}

impl Answer {
    fn fields(&self) -> Vec<(&'static str, String)> {
        let mut fields = vec![
            ("result", if self.ok { "ok" } else { "NOT OK" }.to_owned()),
            ("message", self.message.clone()),
            ("health", self.health.clone()),
        ];
        match &self.certificate {
            None => fields.push((
                "certificate",
                "none: the connection is in plaintext".to_owned(),
            )),
            Some(certificate) => {
                fields.push(("certificate", certificate.subject.clone()));
                fields.push(("names", certificate.names.join(", ")));
                fields.push(("valid until", certificate.not_after.clone()));
                let root = certificate.root_sha256.as_deref();
                fields.push((
                    "verified under",
                    root.unwrap_or("NOTHING: not verified").to_owned(),
                ));
            }
        }
        fields.push(("capabilities", self.capabilities.join(", ")));
        fields.push(("disk types", self.disk_types.join(", ")));
        fields.push(("network types", self.network_types.join(", ")));
        fields
    }
}

fn supported(answer: &pb::GetCapabilitiesResponse) -> Vec<&'static str> {
    let all = [
        ("reconfigure online", answer.supports_reconfigure_online),
        (
            "disk expansion online",
            answer.supports_disk_expansion_online,
        ),
        ("snapshots", answer.supports_snapshots),
        ("memory snapshots", answer.supports_memory_snapshots),
        ("linked clones", answer.supports_linked_clones),
        ("image import", answer.supports_image_import),
        ("disk export", answer.supports_disk_export),
        ("disk import", answer.supports_disk_import),
        ("export compression", answer.supports_export_compression),
    ];
    all.into_iter()
        .filter_map(|(name, can)| can.then_some(name))
        .collect()
}
