//! What a provider is told at its start.

use std::{
    ffi::OsString,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    path::PathBuf,
    time::Duration,
};

use vidimus_daemon::telemetry::PrometheusHandle;
use vidimus_tls::{
    policy::{AllowList, AllowListError},
    server::Limits,
    watch::WatchOptions,
};

use crate::{memory::MemoryConfig, posture};

/// VirtRigaud's port for `provider.v1`.
pub const GRPC_PORT: u16 = 9443;
/// VirtRigaud's port for the health pages.
pub const HEALTH_PORT: u16 = 8080;

const CONNECTION_AGE: Duration = Duration::from_secs(2 * 3_600);
const CONNECTION_IDLE: Duration = Duration::from_secs(15 * 60);

/// A provider's settings.
#[derive(Clone, Debug)]
pub struct Config {
    /// Where `tls.crt`, `tls.key` and `ca.crt` are.
    pub tls_directory: PathBuf,
    /// The value of [`posture::INSECURE_VARIABLE`], if it is set.
    pub insecure: Option<OsString>,
    /// Who may call.
    pub allowed_sans: AllowList,
    /// A policy file, followed while the provider runs, in place of `allowed_sans`.
    pub policy: Option<PathBuf>,
    /// Where `provider.v1` listens; port 0 takes a free one.
    pub grpc: SocketAddr,
    /// Where the health pages listen, without TLS; port 0 takes a free one.
    pub health: SocketAddr,
    /// The UNIX socket of the admin pages; none if absent.
    pub admin: Option<PathBuf>,
    /// The process's metrics, for the admin pages and [`Self::metrics_address`].
    pub metrics: Option<PrometheusHandle>,
    /// Where `/metrics` is served without TLS; it names no peer. Port 0 takes a free one.
    pub metrics_address: Option<SocketAddr>,
    /// Bounds and times of the connections.
    pub limits: Limits,
    /// A connection without a call for this long is ended.
    pub max_connection_idle: Duration,
    /// How the files are watched.
    pub watch: WatchOptions,
    /// How the in-memory provider behaves.
    pub memory: MemoryConfig,
}

impl Default for Config {
    fn default() -> Self {
        let every = |port| SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), port);
        Self {
            tls_directory: PathBuf::from(posture::TLS_DIRECTORY),
            insecure: None,
            allowed_sans: AllowList::default(),
            policy: None,
            grpc: every(GRPC_PORT),
            health: every(HEALTH_PORT),
            admin: None,
            metrics: None,
            metrics_address: None,
            limits: limits(),
            max_connection_idle: CONNECTION_IDLE,
            watch: WatchOptions::default(),
            memory: MemoryConfig::default(),
        }
    }
}

impl Config {
    /// The defaults, with VirtRigaud's two variables as `variable` finds them.
    ///
    /// `std::env::var_os` in a program, a map in a test.
    ///
    /// # Errors
    ///
    /// A typed entry of the allow-list that is malformed.
    pub fn from_variables(
        variable: impl Fn(&str) -> Option<OsString>,
    ) -> Result<Self, AllowListError> {
        let allowed = variable(posture::ALLOWED_SANS_VARIABLE).unwrap_or_default();
        Ok(Self {
            insecure: variable(posture::INSECURE_VARIABLE),
            // an entry that is no text can match no name, and stays in the list as one that doesn't
            allowed_sans: AllowList::parse(&allowed.to_string_lossy())?,
            ..Self::default()
        })
    }
}

/// VirtRigaud's keepalive: a ping every 30 seconds with 10 to answer, connections of two hours and
/// a tenth more or less. Its grace of five minutes would cut the transfers that may take thirty, so
/// the grace is that of the transport: longer than any call's deadline.
fn limits() -> Limits {
    Limits {
        max_connection_age: Some(CONNECTION_AGE),
        ..Limits::default()
    }
}
