//! What a user can type. Arguments only: what they do is in `command/`.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::command;

/// Mutual TLS for control planes.
#[derive(Debug, Parser)]
#[command(
    name = "vidimus",
    version,
    about,
    long_about = "Mutual TLS for control planes: a private CA that issues, a runtime that enforces, \
                  and the programs between which both ends vouch for each other on every connection.",
    after_help = "Example:\n  vidimus quickstart --once",
    propagate_version = true
)]
pub(crate) struct Cli {
    /// How log lines on stderr look.
    #[arg(
        long,
        global = true,
        value_enum,
        default_value_t,
        env = "VIDIMUS_LOG_FORMAT"
    )]
    pub(crate) log_format: LogFormat,

    /// Which log lines to show, as `level` or `target=level,...`.
    #[arg(long, global = true, env = "VIDIMUS_LOG", value_name = "FILTER")]
    pub(crate) log: Option<String>,

    #[command(subcommand)]
    pub(crate) command: Command,
}

/// How log lines look.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, ValueEnum)]
pub(crate) enum LogFormat {
    /// One JSON object a line.
    Json,
    /// For people.
    #[default]
    Text,
}

/// How a listing looks.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, ValueEnum)]
pub(crate) enum Format {
    /// For programs.
    Json,
    /// For people.
    #[default]
    Table,
    /// For programs and people.
    Yaml,
}

/// `-o`, for every command that lists something.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct OutputArgs {
    /// How the answer looks.
    #[arg(
        short = 'o',
        long = "output",
        value_enum,
        default_value_t,
        value_name = "FORMAT"
    )]
    pub(crate) format: Format,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Checks the audit log without a running node.
    #[command(subcommand)]
    Audit(command::audit::AuditCommand),
    /// Issues certificates and reads what was issued.
    #[command(subcommand)]
    Ca(command::ca::CaCommand),
    /// Prints a completion script for a shell.
    Completion(command::generate::CompletionArgs),
    /// Checks and applies machine configs.
    #[command(subcommand)]
    Config(command::config::ConfigCommand),
    /// Shows and checks the node's CA certificate.
    #[command(subcommand)]
    Identity(command::identity::IdentityCommand),
    /// Writes the man pages into a folder.
    Man(command::generate::ManArgs),
    /// Makes and runs a CA node.
    #[command(subcommand)]
    Node(command::node::NodeCommand),
    /// Checks policy files: who may call which method.
    #[command(subcommand)]
    Policy(command::policy::PolicyCommand),
    /// Runs a provider and checks one.
    #[command(subcommand)]
    Provider(command::provider::ProviderCommand),
    /// Makes a CA, runs a node, a provider and a manager, and rotates everything while calls flow.
    Quickstart(command::quickstart::QuickstartArgs),
    /// Shows what a node is and how it is doing.
    Status(command::status::StatusArgs),
    /// Checks the files of a TLS folder, shows who is connected, and changes roots.
    #[command(subcommand)]
    Tls(command::tls::TlsCommand),
}

/// Which node to ask, and how.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Which node")]
pub(crate) struct NodeArgs {
    /// The node's management address, `host:port`, over mutual TLS.
    #[arg(long, value_name = "ADDRESS", requires = "identity")]
    pub(crate) node: Option<String>,

    /// Folder with the administrator's `tls.crt` and `tls.key` and the CA's `ca.crt`.
    #[arg(long, value_name = "DIR")]
    pub(crate) identity: Option<PathBuf>,

    /// The name that the node's certificate must carry; the address's host if absent.
    #[arg(long, value_name = "NAME")]
    pub(crate) server_name: Option<String>,

    /// The node's UNIX socket, for its owner on the same machine.
    #[arg(long, value_name = "PATH", conflicts_with = "node")]
    pub(crate) socket: Option<PathBuf>,

    /// Opens a node's data folder itself; no node may be running on it.
    #[arg(
        long,
        value_name = "DIR",
        conflicts_with_all = ["node", "socket"]
    )]
    pub(crate) data_dir: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) unlock: UnlockArgs,
}

/// What opens the CA's key.
#[derive(Args, Clone, Debug)]
#[group(id = "unlock", multiple = false)]
pub(crate) struct UnlockArgs {
    /// File whose content opens the CA's key; readable by its owner alone.
    #[arg(long, value_name = "FILE")]
    pub(crate) unlock_file: Option<PathBuf>,

    /// File with the passphrase that opens the CA's key, on its first line.
    #[arg(long, value_name = "FILE")]
    pub(crate) passphrase_file: Option<PathBuf>,
}
