//! `vidimus provider run`: the in-memory provider behind the server kit.

use std::{
    net::{IpAddr, Ipv4Addr, SocketAddr},
    path::PathBuf,
    time::Duration,
};

use clap::{Args, ValueEnum};
use vidimus_daemon::telemetry;
use vidimus_provider::{
    posture,
    server::{self, Config, GRPC_PORT, HEALTH_PORT},
};
use vidimus_tls::{
    material::{RevocationCheck, RevocationGap, RevocationOptions},
    server::{ExpiredPeers, Limits},
    watch::WatchOptions,
};

use crate::shutdown::StopArgs;

/// Arguments of `vidimus provider run`.
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  \
    VIRTRIGAUD_PROVIDER_ALLOWED_SANS=manager.example vidimus provider run --tls-dir ./tls\n\n\
    Variables: VIRTRIGAUD_PROVIDER_ALLOWED_SANS, who may call, entries with commas between; not together with --policy; \
    VIRTRIGAUD_PROVIDER_INSECURE=true, plaintext where there are no TLS files. Without TLS files and without that word \
    it does not start.")]
pub(crate) struct RunArgs {
    /// The port of `provider.v1`; 0 takes a free one.
    #[arg(long, value_name = "PORT", default_value_t = GRPC_PORT)]
    port: u16,

    /// The port of the health pages; 0 takes a free one.
    #[arg(long, value_name = "PORT", default_value_t = HEALTH_PORT)]
    health_port: u16,

    /// The address of both.
    #[arg(long, value_name = "ADDRESS", default_value_t = IpAddr::V4(Ipv4Addr::UNSPECIFIED))]
    bind: IpAddr,

    /// The folder with `tls.crt`, `tls.key` and `ca.crt`.
    #[arg(long, value_name = "DIR", default_value = posture::TLS_DIRECTORY)]
    tls_dir: PathBuf,

    /// A policy file: who may call which method. Followed while the provider runs.
    #[arg(long, value_name = "FILE")]
    policy: Option<PathBuf>,

    /// Serves status pages on this UNIX socket.
    #[arg(long, value_name = "PATH")]
    admin_socket: Option<PathBuf>,

    /// Serves metrics for Prometheus at this address, without TLS; they name no peer. Port 0 takes a free one.
    #[arg(long, value_name = "ADDRESS")]
    metrics: Option<SocketAddr>,

    /// After how many seconds a connection is asked to end, give or take a tenth; 0: never. Calls go on for up to 35
    /// minutes after that.
    #[arg(long, value_name = "SECONDS", default_value_t = 7200)]
    max_connection_age: u64,

    /// What becomes of a connection whose peer's certificate expires while it is open.
    #[arg(long, value_enum, default_value_t, value_name = "WHAT")]
    expired_peers: ExpiredPeersArg,

    /// Which certificates of a peer are looked up in the revocation lists of `crl.pem`. By default the peer's own if
    /// `crl.pem` is there at the start, else none.
    #[arg(long, value_enum, value_name = "WHICH")]
    crl: Option<CrlArg>,

    /// What becomes of a certificate whose issuer's list is past its end and doesn't have it.
    #[arg(long, value_enum, default_value_t, value_name = "WHAT")]
    crl_stale: GapArg,

    /// What becomes of a certificate of whose issuer there is no list. With `refuse`, `--crl leaf` and `--crl chain` want a
    /// `crl.pem` at the start.
    #[arg(long, value_enum, default_value_t, value_name = "WHAT")]
    crl_missing: GapArg,

    #[command(flatten)]
    stop: StopArgs,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum CrlArg {
    /// The peer's own and every CA's above it.
    Chain,
    /// The peer's own.
    Leaf,
    /// None.
    Off,
}

#[derive(Clone, Copy, Debug, Default, ValueEnum)]
enum GapArg {
    /// Its connection is refused: nobody gains by holding a list back.
    #[default]
    Refuse,
    /// It is accepted.
    Accept,
}

impl From<GapArg> for RevocationGap {
    fn from(gap: GapArg) -> Self {
        match gap {
            GapArg::Refuse => Self::Refuse,
            GapArg::Accept => Self::Accept,
        }
    }
}

#[derive(Clone, Copy, Debug, Default, ValueEnum)]
enum ExpiredPeersArg {
    /// It gets no further call and is asked to end; the calls that run may finish.
    #[default]
    Drain,
    /// It goes on.
    Ignore,
}

impl RunArgs {
    pub(super) async fn run(self) -> anyhow::Result<()> {
        let defaults = Config::from_variables(|name| std::env::var_os(name))?;
        let age = Duration::from_secs(self.max_connection_age);
        let config = Config {
            metrics: Some(telemetry::init_metrics()?),
            metrics_address: self.metrics,
            limits: Limits {
                max_connection_age: (!age.is_zero()).then_some(age),
                expired_peers: match self.expired_peers {
                    ExpiredPeersArg::Drain => ExpiredPeers::Drain,
                    ExpiredPeersArg::Ignore => ExpiredPeers::Ignore,
                },
                ..defaults.limits.clone()
            },
            watch: WatchOptions {
                revocation: RevocationOptions {
                    check: self.crl.map(|which| match which {
                        CrlArg::Chain => RevocationCheck::Chain,
                        CrlArg::Leaf => RevocationCheck::Leaf,
                        CrlArg::Off => RevocationCheck::Off,
                    }),
                    stale: self.crl_stale.into(),
                    missing: self.crl_missing.into(),
                },
                ..defaults.watch.clone()
            },
            tls_directory: self.tls_dir,
            grpc: SocketAddr::new(self.bind, self.port),
            health: SocketAddr::new(self.bind, self.health_port),
            admin: self.admin_socket,
            policy: self.policy,
            ..defaults
        };
        Ok(server::run(config, self.stop.token()?).await?)
    }
}
