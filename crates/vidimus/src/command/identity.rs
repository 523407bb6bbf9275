//! `vidimus identity`: the node's own CA certificate.

use std::time::SystemTime;

use anyhow::Context as _;
use clap::{Args, Subcommand};
use serde::Serialize;
use vidimus_daemon::clock::{Clock as _, SystemClock};
use vidimus_x509::{cert::Certificate, chain, pem};

use crate::{
    cli::{NodeArgs, OutputArgs},
    endpoint,
    exit::Stop,
    output, time,
};

/// The subcommands of `vidimus identity`.
#[derive(Debug, Subcommand)]
pub(crate) enum IdentityCommand {
    /// Prints the node's CA certificate and the chain above it.
    Show(ShowArgs),
    /// Checks that the chain leads to the node's root, is made of CA certificates, and is within its dates.
    Validate(ValidateArgs),
}

impl IdentityCommand {
    pub(crate) async fn run(self) -> anyhow::Result<()> {
        match self {
            Self::Show(args) => args.run().await,
            Self::Validate(args) => args.run().await,
        }
    }
}

/// Arguments of `vidimus identity show`.
#[derive(Args, Debug)]
#[command(
    after_help = "Example:\n  vidimus identity show --pem --socket /var/lib/vidimus/node.sock > ca-chain.pem"
)]
pub(crate) struct ShowArgs {
    /// Prints the chain in PEM instead of the details.
    #[arg(long)]
    pem: bool,

    /// Prints the root in PEM: what goes into a `ca.crt`.
    #[arg(long, conflicts_with = "pem")]
    anchor: bool,

    #[command(flatten)]
    node: NodeArgs,

    #[command(flatten)]
    output: OutputArgs,
}

/// Arguments of `vidimus identity validate`.
#[derive(Args, Debug)]
#[command(
    after_help = "Example:\n  vidimus identity validate --node 127.0.0.1:9550 --identity ./admin"
)]
pub(crate) struct ValidateArgs {
    #[command(flatten)]
    node: NodeArgs,

    #[command(flatten)]
    output: OutputArgs,
}

#[derive(Serialize)]
struct Shown {
    subject: String,
    issuer: String,
    serial: String,
    not_before: String,
    not_after: String,
    path_len: Option<u32>,
    sha256: String,
}

impl Shown {
    fn of(certificate: &Certificate) -> Self {
        Self {
            subject: certificate.subject_text().to_owned(),
            issuer: certificate.issuer_text().to_owned(),
            serial: certificate.serial_hex().to_owned(),
            not_before: time::of_system(certificate.not_before()),
            not_after: time::of_system(certificate.not_after()),
            path_len: certificate.path_len(),
            sha256: data_encoding::HEXLOWER.encode(&certificate.fingerprint_sha256()),
        }
    }
}

#[derive(Serialize)]
#[serde(transparent)]
struct Chain(Vec<Shown>);

impl output::Tabular for Chain {
    fn columns(&self) -> Vec<&'static str> {
        vec![
            "subject",
            "issuer",
            "serial",
            "not after",
            "path len",
            "sha256",
        ]
    }

    fn rows(&self) -> Vec<Vec<String>> {
        let row = |shown: &Shown| {
            vec![
                shown.subject.clone(),
                shown.issuer.clone(),
                shown.serial.clone(),
                shown.not_after.clone(),
                shown
                    .path_len
                    .map_or_else(|| "none".to_owned(), |length| length.to_string()),
                shown.sha256.clone(),
            ]
        };
        self.0.iter().map(row).collect()
    }
}

impl ShowArgs {
    async fn run(self) -> anyhow::Result<()> {
        let identity = endpoint::connect(&self.node).await?.identity().await?;
        if self.pem {
            return output::bytes(identity.chain_pem.as_bytes());
        }
        if self.anchor {
            return output::bytes(identity.anchor_pem.as_bytes());
        }
        let certificates = parsed(&identity.chain_der)?;
        output::print(
            self.output.format,
            &Chain(certificates.iter().map(Shown::of).collect()),
        )
    }
}

#[derive(Serialize)]
struct Verdict {
    valid: bool,
    reason: Option<String>,
    until: Option<String>,
    anchor: String,
}

impl ValidateArgs {
    async fn run(self) -> anyhow::Result<()> {
        let identity = endpoint::connect(&self.node).await?.identity().await?;
        let anchor = pem::decode("CERTIFICATE", identity.anchor_pem.as_bytes())
            .context("read the root that the node gave")?;
        let root = Certificate::parse(&anchor).context("read the root that the node gave")?;
        let certificates = parsed(&identity.chain_der)?;
        let ders: Vec<&[u8]> = identity.chain_der.iter().map(Vec::as_slice).collect();
        let checked = chain::verify_ca_chain(&ders, &anchor, SystemClock.now());
        let until = certificates
            .iter()
            .map(Certificate::not_after)
            .chain([root.not_after()])
            .min();
        let verdict = Verdict {
            valid: checked.is_ok(),
            reason: checked
                .as_ref()
                .err()
                .map(|error| vidimus_daemon::telemetry::chain(error).to_string()),
            until: until.map(|until: SystemTime| time::of_system(until)),
            anchor: root.subject_text().to_owned(),
        };
        let fields = [
            (
                "result",
                if verdict.valid { "valid" } else { "NOT VALID" }.to_owned(),
            ),
            ("root", verdict.anchor.clone()),
            ("until", verdict.until.clone().unwrap_or_default()),
        ];
        output::print_fields(self.output.format, &verdict, &fields)?;
        match verdict.reason {
            None => Ok(()),
            Some(reason) => Err(Stop::failure(format!(
                "the node's chain does not hold: {reason}"
            ))),
        }
    }
}

fn parsed(chain: &[Vec<u8>]) -> anyhow::Result<Vec<Certificate>> {
    let parse = |(index, der): (usize, &Vec<u8>)| {
        Certificate::parse(der).with_context(|| {
            format!(
                "read certificate {} of the node's chain",
                index.saturating_add(1)
            )
        })
    };
    chain.iter().enumerate().map(parse).collect()
}
