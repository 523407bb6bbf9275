//! `vidimus ca`: issuing, and what was issued.

use std::{
    net::IpAddr,
    path::{Path, PathBuf},
};

use anyhow::Context as _;
use clap::{Args, Subcommand};
use serde::Serialize;
use vidimus_fs::{
    durable::{self, Mode},
    read,
};
use vidimus_proto::node::v1 as proto;
use vidimus_x509::csr::MAX_CSR;

use crate::{
    cli::{NodeArgs, OutputArgs},
    endpoint, output, time,
};

/// The subcommands of `vidimus ca`.
#[derive(Debug, Subcommand)]
pub(crate) enum CaCommand {
    /// Shows one issued certificate with its chain.
    GetIssued(GetIssuedArgs),
    /// Has a leaf certified from a certificate request.
    IssueLeaf(IssueLeafArgs),
    /// Lists what the node issued, oldest first.
    ListIssued(ListIssuedArgs),
    /// Has a CA certified from its certificate request.
    SignSubordinate(SignSubordinateArgs),
}

impl CaCommand {
    pub(crate) async fn run(self) -> anyhow::Result<()> {
        match self {
            Self::GetIssued(args) => args.run().await,
            Self::IssueLeaf(args) => args.run().await,
            Self::ListIssued(args) => args.run().await,
            Self::SignSubordinate(args) => args.run().await,
        }
    }
}

/// Arguments of `vidimus ca issue-leaf`.
#[derive(Args, Debug)]
#[command(
    after_help = "Example:\n  openssl req -new -newkey ec -pkeyopt ec_paramgen_curve:P-384 -nodes \\\n    \
    -keyout tls.key -subj /CN=web -out web.csr\n  \
    vidimus ca issue-leaf --csr web.csr --profile leaf-server --dns web.example.org \\\n    \
    --socket /var/lib/vidimus/node.sock > tls.crt\n\n\
    The chain goes to stdout in PEM, leaf first and without the root; warnings go to stderr."
)]
pub(crate) struct IssueLeafArgs {
    /// The certificate request, PEM or DER.
    #[arg(long, value_name = "FILE")]
    csr: PathBuf,

    /// The profile that decides everything but subject, key and names.
    #[arg(long, value_name = "NAME")]
    profile: String,

    /// A DNS name beside those in the request; the profile must allow it. May be given again.
    #[arg(long = "dns", value_name = "NAME")]
    dns_names: Vec<String>,

    /// An IP address beside those in the request; the profile must allow it. May be given again.
    #[arg(long = "ip", value_name = "ADDRESS")]
    ip_addresses: Vec<IpAddr>,

    #[command(flatten)]
    write: WriteArgs,

    #[command(flatten)]
    node: NodeArgs,
}

impl IssueLeafArgs {
    async fn run(self) -> anyhow::Result<()> {
        let csr = read_csr(&self.csr)?;
        let client = endpoint::connect(&self.node).await?;
        let request = proto::IssueLeafRequest {
            csr,
            profile: self.profile,
            dns_names: self.dns_names,
            ip_addresses: self.ip_addresses.iter().map(ToString::to_string).collect(),
        };
        let answer = client.issue_leaf(request).await?;
        self.write
            .deliver(&answer.chain_pem, &answer.serial_hex, &answer.warnings)
    }
}

/// Arguments of `vidimus ca sign-subordinate`.
#[derive(Args, Debug)]
#[command(
    after_help = "Example:\n  vidimus ca sign-subordinate --csr issuing.csr --profile sub-ca \\\n    \
    --data-dir /media/root-ca --unlock-file /media/root-ca.unlock > issuing-chain.pem\n\n\
    The chain goes to stdout in PEM, the subordinate first and without the root; warnings go to stderr."
)]
pub(crate) struct SignSubordinateArgs {
    /// The certificate request, PEM or DER.
    #[arg(long, value_name = "FILE")]
    csr: PathBuf,

    /// A profile with `basic_constraints.is_ca: true`.
    #[arg(long, value_name = "NAME")]
    profile: String,

    #[command(flatten)]
    write: WriteArgs,

    #[command(flatten)]
    node: NodeArgs,
}

impl SignSubordinateArgs {
    async fn run(self) -> anyhow::Result<()> {
        let csr = read_csr(&self.csr)?;
        let client = endpoint::connect(&self.node).await?;
        let request = proto::SignSubordinateCsrRequest {
            csr,
            profile: self.profile,
        };
        let answer = client.sign_subordinate(request).await?;
        self.write
            .deliver(&answer.chain_pem, &answer.serial_hex, &answer.warnings)
    }
}

/// Where a chain goes.
#[derive(Args, Debug)]
struct WriteArgs {
    /// Writes the chain into this file instead of stdout.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

impl WriteArgs {
    fn deliver(&self, chain_pem: &str, serial: &str, warnings: &[String]) -> anyhow::Result<()> {
        for warning in warnings {
            output::note(&format!("warning: {warning}"));
        }
        match &self.out {
            None => output::bytes(chain_pem.as_bytes()),
            Some(file) => {
                durable::write(file, chain_pem.as_bytes(), Mode::Public)?;
                output::note(&format!("serial {serial}, chain in {}", file.display()));
                Ok(())
            }
        }
    }
}

/// Arguments of `vidimus ca list-issued`.
#[derive(Args, Debug)]
#[command(
    after_help = "Example:\n  vidimus ca list-issued --profile leaf-server -o json --socket /var/lib/vidimus/node.sock"
)]
pub(crate) struct ListIssuedArgs {
    /// Only certificates of this profile.
    #[arg(long, value_name = "NAME")]
    profile: Option<String>,

    /// At most this many.
    #[arg(long, value_name = "COUNT", default_value_t = 1000)]
    limit: usize,

    #[command(flatten)]
    node: NodeArgs,

    #[command(flatten)]
    output: OutputArgs,
}

#[derive(Serialize)]
struct Issued {
    serial: String,
    subject: String,
    names: Vec<String>,
    profile: String,
    requester: String,
    not_before: String,
    not_after: String,
    issued_at: String,
    status: &'static str,
}

#[derive(Serialize)]
#[serde(transparent)]
struct IssuedList(Vec<Issued>);

impl From<proto::IssuedCertificate> for Issued {
    fn from(row: proto::IssuedCertificate) -> Self {
        let status = match row.status() {
            proto::CertificateStatus::Valid => "valid",
            proto::CertificateStatus::Expired => "expired",
            proto::CertificateStatus::Unspecified => "unknown",
        };
        Self {
            not_before: time::of_proto(row.not_before),
            not_after: time::of_proto(row.not_after),
            issued_at: time::of_proto(row.issued_at),
            serial: row.serial_hex,
            subject: row.subject,
            names: row.names,
            profile: row.profile,
            requester: row.requester,
            status,
        }
    }
}

impl output::Tabular for IssuedList {
    fn columns(&self) -> Vec<&'static str> {
        vec![
            "serial",
            "subject",
            "names",
            "profile",
            "requester",
            "not after",
            "status",
        ]
    }

    fn rows(&self) -> Vec<Vec<String>> {
        let row = |issued: &Issued| {
            vec![
                issued.serial.clone(),
                issued.subject.clone(),
                issued.names.join(","),
                issued.profile.clone(),
                issued.requester.clone(),
                issued.not_after.clone(),
                issued.status.to_owned(),
            ]
        };
        self.0.iter().map(row).collect()
    }
}

impl ListIssuedArgs {
    async fn run(self) -> anyhow::Result<()> {
        let client = endpoint::connect(&self.node).await?;
        let mut list = Vec::new();
        let mut page_token = String::new();
        loop {
            let missing = self.limit.saturating_sub(list.len());
            let request = proto::ListIssuedRequest {
                page_size: u32::try_from(missing.min(1000)).unwrap_or(1000),
                page_token,
                profile: self.profile.clone().unwrap_or_default(),
            };
            let page = client.list_issued(request).await?;
            list.extend(page.certificates.into_iter().map(Issued::from));
            page_token = page.next_page_token;
            if page_token.is_empty() {
                break;
            }
            if list.len() >= self.limit {
                output::note(&format!(
                    "there are more than these {}; raise --limit",
                    self.limit
                ));
                break;
            }
        }
        output::print(self.output.format, &IssuedList(list))
    }
}

/// Arguments of `vidimus ca get-issued`.
#[derive(Args, Debug)]
#[command(
    after_help = "Example:\n  vidimus ca get-issued --serial 0a:1b:2c --pem --socket /var/lib/vidimus/node.sock"
)]
pub(crate) struct GetIssuedArgs {
    /// The serial number in hex; colons and leading zeros don't matter.
    #[arg(long, value_name = "SERIAL")]
    serial: String,

    /// Prints the chain in PEM instead of the details.
    #[arg(long)]
    pem: bool,

    #[command(flatten)]
    node: NodeArgs,

    #[command(flatten)]
    output: OutputArgs,
}

#[derive(Serialize)]
struct IssuedWithChain {
    #[serde(flatten)]
    certificate: Issued,
    chain_pem: String,
}

impl GetIssuedArgs {
    async fn run(self) -> anyhow::Result<()> {
        let client = endpoint::connect(&self.node).await?;
        let answer = client.issued_certificate(&self.serial).await?;
        if self.pem {
            return output::bytes(answer.chain_pem.as_bytes());
        }
        let certificate = answer
            .certificate
            .context("the node answered without the certificate")?;
        let answer = IssuedWithChain {
            certificate: Issued::from(certificate),
            chain_pem: answer.chain_pem,
        };
        let certificate = &answer.certificate;
        let fields = [
            ("serial", certificate.serial.clone()),
            ("subject", certificate.subject.clone()),
            ("names", certificate.names.join(", ")),
            ("profile", certificate.profile.clone()),
            ("requester", certificate.requester.clone()),
            ("not before", certificate.not_before.clone()),
            ("not after", certificate.not_after.clone()),
            ("issued", certificate.issued_at.clone()),
            ("status", certificate.status.to_owned()),
            ("chain", format!("\n{}", answer.chain_pem.trim_end())),
        ];
        output::print_fields(self.output.format, &answer, &fields)
    }
}

fn read_csr(file: &Path) -> anyhow::Result<Vec<u8>> {
    let limit = u64::try_from(MAX_CSR).unwrap_or(u64::MAX);
    Ok(read::bounded(file, limit)?)
}
