//! Looking at a set of files before a process uses them: what is right, what is wrong, and until when.
//!
//! The same reading and the same verifiers as in a running process, so that the answer is the one that a peer will give.

use std::error::Error;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::time::{Duration, SystemTime};

use rustls_pki_types::{ServerName, UnixTime};
use serde::Serialize;

use crate::clock::{rfc3339, serialize_optional_time};
use crate::identity::{CertificateIdentity, Fingerprint};
use crate::material::{
    Identity, IdentityError, MaterialFiles, Snapshot, Trust, TrustContext, Usage,
};
use crate::verify::{self, Purpose};

/// A certificate with less than this left is worth a word.
const SOON: Duration = Duration::from_secs(14 * 24 * 60 * 60);

/// How one finding bears on whether the files can be used.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// As it should be.
    Right,
    /// Usable, but worth a look.
    Warning,
    /// A process would refuse the files, or its peers would refuse it.
    Wrong,
}

/// One thing that was looked at.
#[derive(Clone, Debug, Serialize)]
pub struct Finding {
    /// How it bears on the whole.
    pub level: Level,
    /// What was looked at: `certificate`, `key`, `roots`, `crl`, `chain`, `server`, `client`, `name`.
    pub about: &'static str,
    /// What was found, in plain words.
    pub text: String,
}

/// Everything that was found about a set of files.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// Whether nothing is wrong.
    pub usable: bool,
    /// When the first of the certificates in use ends, where one could be read.
    #[serde(serialize_with = "serialize_optional_time")]
    pub until: Option<SystemTime>,
    /// In the order in which a person would look.
    pub findings: Vec<Finding>,
}

/// What the files are meant for.
#[derive(Clone, Debug, Default)]
pub struct Expectation {
    /// What the process does with them; `None` wants at least one of serving and connecting to work.
    pub usage: Option<Usage>,
    /// The name that clients will ask the server for.
    pub server_name: Option<String>,
}

/// Reads the files once and judges them at `now`.
#[must_use]
pub fn files(files: &MaterialFiles, expected: &Expectation, now: SystemTime) -> Report {
    let snapshot = Snapshot::read(files);
    let mut report = Report {
        usable: true,
        until: None,
        findings: Vec::new(),
    };
    let as_server = snapshot.identity(files, Usage::Server, now);
    let as_client = snapshot.identity(files, Usage::Client, now);
    let own = as_server.as_ref().or(as_client.as_ref());
    let context = TrustContext {
        own: own.map_or(&[], Identity::chain),
        ..TrustContext::default()
    };
    let trust = snapshot.trust(files, context, now);

    match as_server.as_ref().or(as_client.as_ref()) {
        Ok(identity) => report.identity(identity, now),
        Err(error) => report.identity_fault(error),
    }
    report.key_mode(files);
    match &trust {
        Ok(trust) => {
            report.roots(trust, now);
            report.lists(trust, now);
        }
        Err(error) => report.add(Level::Wrong, "roots", chain_of(error)),
    }
    let sides = [(Purpose::Server, &as_server), (Purpose::Client, &as_client)];
    let verdicts =
        sides.map(|(purpose, identity)| (purpose, verdict(purpose, identity, &trust, now)));
    report.purposes(&verdicts, expected.usage);
    if let (Some(name), Ok(identity)) = (&expected.server_name, &as_server) {
        report.name(identity, name);
    }
    report.usable = report
        .findings
        .iter()
        .all(|finding| finding.level != Level::Wrong);
    report
}

/// The root that the folder's own certificate leads to under `trust`, as a server's or as a client's; `None` if there is
/// none, or no certificate that can be used.
#[must_use]
pub fn own_root(files: &MaterialFiles, trust: &Trust, now: SystemTime) -> Option<Fingerprint> {
    let snapshot = Snapshot::read(files);
    let since_epoch = now
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default();
    let at = UnixTime::since_unix_epoch(since_epoch);
    let sides = [
        (Purpose::Server, Usage::Server),
        (Purpose::Client, Usage::Client),
    ];
    sides.into_iter().find_map(|(purpose, usage)| {
        let identity = snapshot.identity(files, usage, now).ok()?;
        let (leaf, intermediates) = identity.chain().split_first()?;
        let verified = verify::path_to_root(trust, leaf, intermediates, at, purpose);
        verified.ok()?.anchor()
    })
}

/// Whether a peer with the same roots would accept the certificate; `None` if it can't be said.
fn verdict(
    purpose: Purpose,
    identity: &Result<Identity, IdentityError>,
    trust: &Result<Trust, crate::material::TrustError>,
    now: SystemTime,
) -> Option<Result<String, String>> {
    let identity = match identity {
        Ok(identity) => identity,
        Err(error @ IdentityError::ExtendedKeyUsage { .. }) => return Some(Err(error.to_string())),
        // Whatever else is wrong has been said about the certificate or the key.
        Err(_) => return None,
    };
    let (leaf, intermediates) = identity.chain().split_first()?;
    let since_epoch = now
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default();
    let at = UnixTime::since_unix_epoch(since_epoch);
    let verified = verify::path_to_root(trust.as_ref().ok()?, leaf, intermediates, at, purpose);
    Some(match verified {
        Ok(chain) => Ok(chain.anchor_subject().unwrap_or_default().to_owned()),
        Err(refusal) => Err(refusal.to_string()),
    })
}

impl Report {
    fn add(&mut self, level: Level, about: &'static str, text: impl Into<String>) {
        self.findings.push(Finding {
            level,
            about,
            text: text.into(),
        });
    }

    fn identity(&mut self, identity: &Identity, now: SystemTime) {
        let names = identity.names();
        let count = identity.chain().len().saturating_sub(1);
        let text = format!(
            "{:?}, issued by {:?}, {} above it; names: {}",
            names.subject(),
            names.issuer(),
            plural(count, "intermediate"),
            listed(names),
        );
        self.add(Level::Right, "certificate", text);
        self.ends("certificate", "the certificate", names.not_after(), now);
        self.add(Level::Right, "key", "fits the certificate");
    }

    fn identity_fault(&mut self, error: &IdentityError) {
        let about = match error {
            IdentityError::KeyPem { .. }
            | IdentityError::KeyUnusable { .. }
            | IdentityError::KeyMismatch { .. } => "key",
            _ => "certificate",
        };
        self.add(Level::Wrong, about, chain_of(error));
    }

    /// Says until when something is valid, and remembers the earliest end.
    fn ends(&mut self, about: &'static str, what: &str, not_after: SystemTime, now: SystemTime) {
        self.until = Some(self.until.map_or(not_after, |until| until.min(not_after)));
        let left = not_after.duration_since(now).unwrap_or_default();
        let level = if left < SOON {
            Level::Warning
        } else {
            Level::Right
        };
        let days = left.as_secs().checked_div(86_400).unwrap_or_default();
        let end = rfc3339(not_after);
        self.add(
            level,
            about,
            format!(
                "{what} is valid until {end} ({} left)",
                plural_u64(days, "day")
            ),
        );
    }

    /// A key that others on the machine can read is a warning: in a pod the mount's mode is not the file's owner's choice.
    fn key_mode(&mut self, files: &MaterialFiles) {
        let Ok(metadata) = fs::metadata(&files.key) else {
            return;
        };
        let mode = metadata.permissions().mode() & 0o777;
        if mode & 0o077 != 0 {
            let text = format!("can be read by others on this machine (mode {mode:04o}); use 0600");
            self.add(Level::Warning, "key", text);
        }
    }

    fn roots(&mut self, trust: &Trust, now: SystemTime) {
        let usable =
            |root: &&crate::material::Root| root.fault().is_none() && root.is_valid_at(now);
        if !trust.roots().iter().any(|root| usable(&root)) {
            self.add(
                Level::Wrong,
                "roots",
                "no root is a CA certificate within its dates: nobody can be verified",
            );
        }
        for root in trust.roots() {
            let subject = root.subject();
            if let Some(fault) = root.fault() {
                self.add(
                    Level::Warning,
                    "roots",
                    format!("{subject:?} verifies nobody: {fault}"),
                );
            } else if !root.is_valid_at(now) {
                let (from, to) = (rfc3339(root.not_before()), rfc3339(root.not_after()));
                let text = format!(
                    "{subject:?} is outside its dates ({from} to {to}) and verifies nobody"
                );
                self.add(Level::Warning, "roots", text);
            } else {
                self.ends("roots", &format!("root {subject:?}"), root.not_after(), now);
            }
        }
    }

    fn lists(&mut self, trust: &Trust, now: SystemTime) {
        for list in trust.revocation_lists() {
            let (issuer, end) = (&list.issuer, list.next_update);
            self.until = Some(self.until.map_or(end, |until| until.min(end)));
            // Lists are short-lived by nature: that one ends within days is no reason for a warning.
            let (level, verb, effect) = if now > end {
                (Level::Warning, "ended at", ": whom it is about is refused")
            } else {
                (Level::Right, "is valid until", "")
            };
            let (entries, end) = (plural(list.entries, "certificate"), rfc3339(end));
            let text = format!(
                "the revocation list of {issuer:?}, which names {entries}, {verb} {end}{effect}"
            );
            self.add(level, "crl", text);
            if !list.signed_by_known {
                let text = format!(
                    "no CA in these files has signed the revocation list of {issuer:?}; it counts for peers that \
                     present the CA which has"
                );
                self.add(Level::Warning, "crl", text);
            }
        }
    }

    fn purposes(
        &mut self,
        verdicts: &[(Purpose, Option<Result<String, String>>)],
        usage: Option<Usage>,
    ) {
        let works = |verdict: &Option<Result<String, String>>| matches!(verdict, Some(Ok(_)));
        let none_works = !verdicts.iter().any(|(_, verdict)| works(verdict));
        for (purpose, verdict) in verdicts {
            let about = match purpose {
                Purpose::Client => "client",
                Purpose::Server => "server",
            };
            let wanted = match usage {
                Some(Usage::Both) => true,
                Some(Usage::Client) => *purpose == Purpose::Client,
                Some(Usage::Server) => *purpose == Purpose::Server,
                None => none_works,
            };
            match verdict {
                Some(Ok(root)) => {
                    self.add(
                        Level::Right,
                        about,
                        format!("accepted as a {about}: the chain leads to {root:?}"),
                    );
                }
                Some(Err(reason)) if wanted => self.add(Level::Wrong, about, reason.clone()),
                Some(Err(reason)) => {
                    self.add(
                        Level::Right,
                        about,
                        format!("not for use as a {about}: {reason}"),
                    );
                }
                None => {}
            }
        }
    }

    fn name(&mut self, identity: &Identity, name: &str) {
        let Some(leaf) = identity.chain().first() else {
            return;
        };
        let checked = match ServerName::try_from(name) {
            Ok(server_name) => verify::name(leaf, identity.names(), &server_name)
                .map_err(|error| error.to_string()),
            Err(_) => Err(format!("{name:?} is not a DNS name or IP address")),
        };
        match checked {
            Ok(()) => self.add(
                Level::Right,
                "name",
                format!("the certificate is for {name:?}"),
            ),
            Err(reason) => self.add(Level::Wrong, "name", reason),
        }
    }
}

fn listed(names: &CertificateIdentity) -> String {
    let addresses = names.ip_addresses().iter().map(ToString::to_string);
    let all: Vec<String> = names
        .dns_names()
        .iter()
        .chain(names.uri_names())
        .cloned()
        .chain(addresses)
        .collect();
    if all.is_empty() {
        "none".to_owned()
    } else {
        all.join(", ")
    }
}

fn plural(count: usize, what: &str) -> String {
    plural_u64(count.try_into().unwrap_or(u64::MAX), what)
}

fn plural_u64(count: u64, what: &str) -> String {
    if count == 1 {
        format!("1 {what}")
    } else {
        format!("{count} {what}s")
    }
}

/// An error with its causes on one line.
fn chain_of(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}
