//! `vidimus policy`: what a policy file means, and whom it lets call.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::Context as _;
use clap::{Args, Subcommand};
use serde::Serialize;
use vidimus_daemon::clock::{Clock as _, SystemClock};
use vidimus_tls::{
    identity::PeerIdentity,
    policy::{MethodRule, Mode, Policy},
    verify,
};

use crate::{cli::OutputArgs, exit::Stop, output};

/// The subcommands of `vidimus policy`.
#[derive(Debug, Subcommand)]
pub(crate) enum PolicyCommand {
    /// Reads a policy file, says what it means, and whether a certificate would be let through.
    Check(CheckArgs),
}

impl PolicyCommand {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        match self {
            Self::Check(args) => args.run(),
        }
    }
}

/// Arguments of `vidimus policy check`.
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  \
    vidimus policy check policy.yaml\n  \
    vidimus policy check policy.yaml --peer manager.crt --ca ca.crt --method /provider.v1.Provider/Delete\n\n\
    Exit code 0: the file is good and lets the peer call; 1: the file is not good, or the peer is refused.")]
pub(crate) struct CheckArgs {
    /// The policy file.
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// A client's certificate with the intermediates above it, PEM: whether it would be let through.
    #[arg(long, value_name = "FILE", requires = "ca")]
    peer: Option<PathBuf>,

    /// The roots that the server verifies clients against, PEM.
    #[arg(long, value_name = "FILE", requires = "peer")]
    ca: Option<PathBuf>,

    /// The call that the peer makes, `/package.Service/Method`; any call at all if absent.
    #[arg(long, value_name = "PATH", requires = "peer")]
    method: Option<String>,

    #[command(flatten)]
    output: OutputArgs,
}

#[derive(Serialize)]
struct Answer {
    mode: Mode,
    /// `null` is every verified peer.
    allow: Option<Vec<String>>,
    /// `null` is whoever may call at all, for every method.
    methods: Option<Vec<Rule>>,
    peer: Option<Peer>,
}

#[derive(Serialize)]
struct Rule {
    #[serde(rename = "match")]
    pattern: String,
    /// `null` is whoever may call at all.
    allow: Option<Vec<String>>,
}

#[derive(Serialize)]
struct Peer {
    subject: String,
    spiffe_id: Option<String>,
    method: Option<String>,
    permitted: bool,
    /// What the peer would be told.
    refusal: Option<String>,
}

impl CheckArgs {
    fn run(self) -> anyhow::Result<()> {
        let policy = Policy::load(&self.file)?;
        let peer = match (&self.peer, &self.ca) {
            (Some(peer), Some(ca)) => Some(self.judge(&policy, peer, ca)?),
            _ => None,
        };
        let answer = Answer::of(&policy, peer);
        output::print_fields(self.output.format, &answer, &answer.fields())?;
        match answer.peer.and_then(|peer| peer.refusal) {
            Some(refusal) if policy.mode() == Mode::Report => {
                output::note(&format!(
                    "the policy only reports; enforced, it would refuse: {refusal}"
                ));
                Ok(())
            }
            Some(refusal) => Err(Stop::failure(refusal)),
            None => Ok(()),
        }
    }

    fn judge(&self, policy: &Policy, peer: &Path, ca: &Path) -> anyhow::Result<Peer> {
        let read = |path: &Path| {
            fs::read(path).with_context(|| format!("read certificates from {}", path.display()))
        };
        let identity = verify::judge_client_pem(&read(ca)?, &read(peer)?, SystemClock.now())
            .with_context(|| format!("verify {} as a server would", peer.display()))?;
        let certificate = PeerIdentity::Certificate(identity.clone());
        let outcome = match &self.method {
            Some(method) => policy.check(Some(&certificate), method),
            None => policy.allow_list().check(Some(&certificate)),
        };
        Ok(Peer {
            subject: identity.subject().to_owned(),
            spiffe_id: identity.spiffe_id().map(ToString::to_string),
            method: self.method.clone(),
            permitted: outcome.is_ok(),
            refusal: outcome.err().map(|refusal| refusal.to_string()),
        })
    }
}

impl Answer {
    fn of(policy: &Policy, peer: Option<Peer>) -> Self {
        let allow = policy.allow_list();
        let rule = |rule: &MethodRule| Rule {
            pattern: rule.pattern().to_owned(),
            allow: rule
                .callers()
                .map(|callers| callers.entries().map(str::to_owned).collect()),
        };
        Self {
            mode: policy.mode(),
            allow: (!allow.is_permissive()).then(|| allow.entries().map(str::to_owned).collect()),
            methods: policy
                .methods()
                .map(|rules| rules.iter().map(rule).collect()),
            peer,
        }
    }

    fn fields(&self) -> Vec<(&'static str, String)> {
        let everybody = |entries: &Option<Vec<String>>, all: &str| match entries.as_deref() {
            None => all.to_owned(),
            Some([]) => "nobody".to_owned(),
            Some(entries) => entries.join(", "),
        };
        let mode = match self.mode {
            Mode::Enforce => "enforce",
            Mode::Report => "REPORT: nothing is refused",
        };
        let mut fields = vec![
            ("mode", mode.to_owned()),
            ("may call", everybody(&self.allow, "every verified peer")),
        ];
        match &self.methods {
            None => fields.push(("methods", "all of them".to_owned())),
            Some(rules) => {
                for rule in rules {
                    let callers = everybody(&rule.allow, "whoever may call");
                    fields.push(("method", format!("{}: {callers}", rule.pattern)));
                }
                fields.push(("others", "nobody".to_owned()));
            }
        }
        if let Some(peer) = &self.peer {
            fields.push(("peer", peer.subject.clone()));
            if let Some(id) = &peer.spiffe_id {
                fields.push(("spiffe id", id.clone()));
            }
            let call = peer.method.as_deref().unwrap_or("any call");
            let told = if peer.permitted {
                "permitted"
            } else {
                "REFUSED"
            };
            fields.push(("result", format!("{call}: {told}")));
        }
        fields
    }
}
