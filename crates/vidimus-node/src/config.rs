//! The machine config: YAML in, a checked [`Config`] out, or everything that is wrong with it at once.
//!
//! Pure: no file, no clock, no network. Three stages: `tree` (YAML with places), `reader` (fields, unknown ones
//! refused), and the rules of each block, which go on after a problem. Text that passes here may be stored.

mod api;
mod canonical;
mod header;
mod name;
mod pki;
mod problem;
mod profile;
mod reader;
mod template;
mod tree;

use std::sync::Arc;

pub use api::{AdminListen, Api, DEFAULT_LISTEN};
pub use header::{AdminPin, Role};
pub use pki::{Parent, Pki, ROOT_LEAF_ACKNOWLEDGEMENT};
pub use problem::{ConfigErrors, Place, Problem};
pub use template::{Template, template};

use problem::Problems;
use reader::Fields;

/// The longest machine config, in bytes.
pub const MAX_BYTES: usize = 1 << 20;

/// A machine config that passed every rule.
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    /// `metadata.name`; may be empty, decides nothing.
    pub name: String,
    /// `role.kind`.
    pub role: Role,
    /// `bootstrap`: whose client certificate administers this node; without it, the one that `init` makes.
    pub bootstrap: Option<AdminPin>,
    /// `api`: where the management API listens.
    pub api: Api,
    /// `pki`: what this CA is and what it issues.
    pub pki: Pki,
    yaml: Arc<str>,
    digest: String,
}

impl Config {
    /// The text this was read from.
    #[must_use]
    pub fn yaml(&self) -> &str {
        &self.yaml
    }

    /// SHA-256 of the config's meaning in lower-case hex: comments, order of fields and white space don't change it.
    #[must_use]
    pub fn digest_sha256(&self) -> &str {
        &self.digest
    }

    /// Whether a node that was started with `self` would have to start anew to follow `next`.
    ///
    /// Profiles, `pki.root_leaf_issuance` and `pki.parent` are read per request; everything else at the start.
    #[must_use]
    pub fn requires_reboot_for(&self, next: &Self) -> bool {
        canonical::boot_part(self) != canonical::boot_part(next)
    }
}

/// Reads a machine config. `name` is what errors call the file.
///
/// # Errors
/// Every problem of the file at once, each with line, column and field path; a syntax error stands alone.
pub fn parse(name: &str, text: &str) -> Result<Config, ConfigErrors> {
    let fail = |problems: Vec<Problem>| ConfigErrors::new(name, text, problems);
    if text.len() > MAX_BYTES {
        let found = format!("{} bytes", text.len());
        let accepted = format!("a file of at most {MAX_BYTES} bytes");
        return Err(ConfigErrors::new(
            name,
            "",
            vec![Problem::new(Place::START, "", found, accepted)],
        ));
    }
    let root = tree::parse(text).map_err(|problem| fail(vec![problem]))?;
    let problems = Problems::default();
    let config = Fields::open(&root, String::new(), &problems)
        .and_then(|fields| read(fields, Arc::from(text)));
    let problems = problems.into_inner();
    match config {
        Some(config) if problems.is_empty() => Ok(config),
        Some(_) | None => Err(fail(problems)),
    }
}

fn read(mut fields: Fields<'_>, yaml: Arc<str>) -> Option<Config> {
    let name = header::read(&mut fields);
    let role = header::role(&mut fields);
    let bootstrap = header::bootstrap(&mut fields);
    let api = api::read(&mut fields);
    let pki = fields.block("pki").and_then(|block| pki::read(block, role));
    if fields.lacks("pki") {
        fields.missing("pki", "a mapping with what this CA is and issues");
    }
    fields.finish();
    let mut config = Config {
        name,
        role: role?,
        bootstrap,
        api,
        pki: pki?,
        yaml,
        digest: String::new(),
    };
    config.digest = canonical::digest(&config);
    Some(config)
}
