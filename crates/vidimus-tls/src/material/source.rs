//! Where material comes from.

use std::error::Error;
use std::fmt;
use std::sync::Arc;

use super::MaterialFiles;

/// The material of one moment as a program has it, PEM. Goes through the same checks as files do.
#[derive(Clone, Default)]
pub struct MaterialBytes {
    /// The certificate and the intermediates above it.
    pub certificate: Vec<u8>,
    /// The certificate's private key, unencrypted. Wiped once it has been read.
    pub key: Vec<u8>,
    /// The roots that peers are verified against.
    pub ca: Vec<u8>,
    /// Revocation lists, or one in DER; `None` if there are none.
    pub crl: Option<Vec<u8>>,
}

impl fmt::Debug for MaterialBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MaterialBytes")
            .field("certificate", &self.certificate.len())
            .field("key", &"[redacted]")
            .field("ca", &self.ca.len())
            .field("crl", &self.crl.as_ref().map(Vec::len))
            .finish()
    }
}

type Read = dyn Fn() -> Result<MaterialBytes, Box<dyn Error + Send + Sync>> + Send + Sync;

/// Files, or a function that returns what they would have in them.
#[derive(Clone)]
pub struct MaterialSource {
    files: MaterialFiles,
    function: Option<Arc<Read>>,
}

impl MaterialSource {
    /// Asks `read` at the start, at every poll, and whenever [`MaterialWatch::look`](crate::watch::MaterialWatch::look) is
    /// called. It may block; what it returns is one version, complete. An error keeps the last good material, and is shown
    /// with the names that the files in a folder would have.
    pub fn function<F, E>(read: F) -> Self
    where
        F: Fn() -> Result<MaterialBytes, E> + Send + Sync + 'static,
        E: Into<Box<dyn Error + Send + Sync>>,
    {
        Self {
            files: MaterialFiles::in_dir("(function)"),
            function: Some(Arc::new(move || read().map_err(Into::into))),
        }
    }

    /// The files, or the names that stand for them in messages.
    pub(crate) fn files(&self) -> &MaterialFiles {
        &self.files
    }

    pub(super) fn read(&self) -> Option<Result<MaterialBytes, Box<dyn Error + Send + Sync>>> {
        self.function.as_ref().map(|read| read())
    }

    /// Whether there is something to watch.
    pub(crate) fn is_files(&self) -> bool {
        self.function.is_none()
    }
}

impl From<MaterialFiles> for MaterialSource {
    fn from(files: MaterialFiles) -> Self {
        Self {
            files,
            function: None,
        }
    }
}

impl fmt::Debug for MaterialSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.function {
            Some(_) => f.write_str("MaterialSource::function(..)"),
            None => self.files.fmt(f),
        }
    }
}
