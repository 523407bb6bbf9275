//! The UNIX socket for the owner of the process: nobody else can connect at any moment of its life.

use std::{
    fs::{self, DirBuilder, Permissions},
    io,
    os::unix::{
        fs::{DirBuilderExt as _, FileTypeExt as _, PermissionsExt as _},
        net::UnixStream,
    },
    path::{Path, PathBuf},
};

use tokio::net::UnixListener;

/// Why there is no socket.
#[derive(Debug, thiserror::Error)]
pub enum SocketError {
    /// It can't be made.
    #[error("listen at {path}")]
    Bind {
        /// The socket's path.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// A server answers there.
    #[error("another process listens at {path}")]
    InUse {
        /// The socket's path.
        path: PathBuf,
    },
    /// Something else has the name.
    #[error("{path} is there already and is not a socket")]
    Occupied {
        /// The socket's path.
        path: PathBuf,
    },
}

/// Removes the socket's name when it is dropped.
#[derive(Debug)]
pub(crate) struct SocketName(PathBuf);

impl Drop for SocketName {
    fn drop(&mut self) {
        // The process ends; a name that stays is found stale by the next start.
        let _best_effort = fs::remove_file(&self.0);
    }
}

/// Binds a socket of mode 0600 at `path`. The name of a socket that no server answers at is taken over.
///
/// It is bound in a new folder that only the owner can enter, restricted, and renamed: whatever umask and the folder of
/// `path` are, there is no moment at which somebody else could connect.
pub(crate) fn bind(path: &Path) -> Result<(UnixListener, SocketName), SocketError> {
    match fs::symlink_metadata(path) {
        Ok(found) if !found.file_type().is_socket() => {
            return Err(SocketError::Occupied {
                path: path.to_owned(),
            });
        }
        Ok(_) if UnixStream::connect(path).is_ok() => {
            return Err(SocketError::InUse {
                path: path.to_owned(),
            });
        }
        Ok(_) | Err(_) => {}
    }
    match place(path) {
        Ok(listener) => Ok((listener, SocketName(path.to_owned()))),
        Err(source) => Err(SocketError::Bind {
            path: path.to_owned(),
            source,
        }),
    }
}

fn place(path: &Path) -> io::Result<UnixListener> {
    let folder = path.parent().unwrap_or_else(|| Path::new("."));
    let private = folder.join(format!(".s{}", std::process::id()));
    let draft = private.join("s");
    remove(&private, &draft)?;
    DirBuilder::new().mode(0o700).create(&private)?;
    let placed = UnixListener::bind(&draft).and_then(|listener| {
        fs::set_permissions(&draft, Permissions::from_mode(0o600))?;
        fs::rename(&draft, path)?;
        Ok(listener)
    });
    remove(&private, &draft)?;
    placed
}

fn remove(private: &Path, draft: &Path) -> io::Result<()> {
    for result in [fs::remove_file(draft), fs::remove_dir(private)] {
        match result {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            Ok(()) | Err(_) => {}
        }
    }
    Ok(())
}
