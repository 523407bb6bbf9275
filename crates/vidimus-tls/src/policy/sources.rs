//! One read of a policy file and of the bundles that it names.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::file::{MAX_BYTES, Raw};
use super::{Policy, PolicyError};
use crate::material::{Content, Links, MAX_CA, MAX_SWAPS, directories_of};

/// The bytes of each file as one read found them. Equal if a second read gave the same.
#[derive(PartialEq)]
pub(super) struct Sources {
    path: PathBuf,
    file: Content,
    bundles: BTreeMap<PathBuf, Content>,
    /// Whether all of them are behind a `..data` link, so that each version is complete when it appears.
    projected: bool,
}

impl Sources {
    /// Reads the file and, if it can be read, the bundles it names; again if `..data` moved on meanwhile.
    pub(super) fn read(path: &Path) -> Self {
        let mut links = Links::of(&directories_of([path]));
        let mut sources = Self::through(&links, path);
        for _ in 0..MAX_SWAPS {
            let now = Links::of(&sources.directories());
            if links == now {
                break;
            }
            links = now;
            sources = Self::through(&links, path);
        }
        sources
    }

    fn through(links: &Links, path: &Path) -> Self {
        let mut projected = true;
        let mut read = |path: &Path, max| {
            let (place, is_projected) = links.place_of(path);
            projected &= is_projected;
            Content::read(&place, max)
        };
        let file = read(path, MAX_BYTES as u64);
        let raw = file.bytes().ok().and_then(|bytes| Raw::parse(bytes).ok());
        let named = raw.iter().flat_map(Raw::bundles);
        let named: Vec<PathBuf> = named.map(|name| beside(path, name)).collect();
        let bundles = named
            .into_iter()
            .map(|path| {
                let content = read(&path, MAX_CA);
                (path, content)
            })
            .collect();
        Self {
            path: path.to_path_buf(),
            file,
            bundles,
            projected,
        }
    }

    pub(super) fn is_projected(&self) -> bool {
        self.projected
    }

    fn directories(&self) -> Vec<PathBuf> {
        directories_of(self.paths())
    }

    /// The file and the bundles.
    pub(super) fn paths(&self) -> impl Iterator<Item = &Path> {
        let bundles = self.bundles.keys().map(PathBuf::as_path);
        std::iter::once(self.path.as_path()).chain(bundles)
    }

    /// The policy of this read, checked.
    pub(super) fn policy(&self) -> Result<Policy, PolicyError> {
        let bytes = self.file.bytes().map_err(|source| PolicyError::Read {
            path: self.path.clone(),
            source,
        })?;
        let problems = |problems| PolicyError::Problems {
            path: self.path.clone(),
            problems,
        };
        let raw = Raw::parse(bytes).map_err(|problem| problems(vec![problem]))?;
        let bundle = |name: &str| match self.bundles.get(&beside(&self.path, name)) {
            Some(content) => content.bytes().map_err(|error| error.to_string()),
            None => Err("nothing".to_owned()),
        };
        raw.check(bundle).map_err(problems)
    }
}

/// `name` as a path, relative ones from the policy file's folder.
fn beside(path: &Path, name: &str) -> PathBuf {
    path.parent()
        .map_or_else(|| PathBuf::from(name), |folder| folder.join(name))
}

impl std::fmt::Debug for Sources {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sources")
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
}
