//! A UNIX socket with a name: nobody can connect before its mode is right, and a live server's name is never taken.

use std::fs;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, FileType, Gid, Mode, OFlags};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use tokio::net::UnixListener;

use super::lock::{Lock, Untaken};

/// The longest path of a UNIX socket in bytes, for which the kernel has 108 with the zero at the end.
const MAX_PATH: usize = 107;
/// Connections that wait to be accepted; the system's own bound (`net.core.somaxconn`) may be lower.
const BACKLOG: i32 = 1024;

/// Who the file system lets connect to a UNIX socket.
///
/// By default the owner alone. It is the first of two gates: the server's [`crate::server::LocalPeers`] is the second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnixOptions {
    /// The socket's mode, such as `0o600`. Connecting takes the right to write. Exactly this, whatever the umask is.
    pub mode: u32,
    /// The socket's group, by its number. `None`: the one that a new file in that folder gets.
    pub group: Option<u32>,
}

impl Default for UnixOptions {
    fn default() -> Self {
        Self {
            mode: 0o600,
            group: None,
        }
    }
}

/// Why there is no UNIX socket.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BindUnixError {
    /// It can't be made.
    #[error("listen at {}", path.display())]
    Bind {
        /// The socket's path.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// A server is alive there.
    #[error("another server listens at {}{}", path.display(), Holder(*holder))]
    InUse {
        /// The socket's path.
        path: PathBuf,
        /// The process id that the server wrote beside the socket, if it did.
        holder: Option<u32>,
    },
    /// The lock beside the path can't be had, so nobody knows whether a server is alive there.
    #[error("lock {}.lock", path.display())]
    Lock {
        /// The socket's path.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// Something else has the name.
    #[error("{} is there already and is not a socket", path.display())]
    Occupied {
        /// The socket's path.
        path: PathBuf,
    },
    /// The kernel's limit for names of sockets.
    #[error("the path of a UNIX socket has at most {MAX_PATH} bytes, and {} has {length}", path.display())]
    TooLong {
        /// The path.
        path: PathBuf,
        /// Its length in bytes.
        length: usize,
    },
    /// Whether the socket that is there has a server cannot be found out, so it is left alone.
    #[error("cannot tell whether a server listens at {}", path.display())]
    Unknown {
        /// The socket's path.
        path: PathBuf,
        /// What connecting to it said.
        #[source]
        source: io::Error,
    },
}

/// A bound UNIX socket. When it is dropped its name goes, if it is still this socket's.
#[derive(Debug)]
pub struct UnixSocket {
    // Dropped first: the open socket keeps its inode's number from being used again.
    name: UnixSocketName,
    listener: UnixListener,
}

/// A UNIX socket's place in the file system. When it is dropped the name goes, if it is still the socket's, and then the
/// lock. It has to be dropped before the socket, whose inode's number could be another file's otherwise.
#[derive(Debug)]
pub struct UnixSocketName {
    path: PathBuf,
    device: u64,
    inode: u64,
    _lock: Lock,
}

impl UnixSocket {
    /// Binds a socket at `path`.
    ///
    /// The lock `<path>.lock` decides whether a server is alive there. The lock file stays when the server ends. A socket
    /// without a server is replaced; one that a server without such a lock answers at is not, nor is anything that isn't
    /// a socket.
    ///
    /// The folder has to be one in which only trusted users can rename: whoever can put another socket in the place of
    /// this one will be taken for this server. The peers' credentials are checked when they connect, not by the mode
    /// alone.
    ///
    /// # Errors
    ///
    /// [`BindUnixError::InUse`] if another server is alive, in this process or another; the other variants say what was
    /// found instead of a free name.
    ///
    /// # Panics
    ///
    /// Outside of a tokio runtime with I/O enabled, as tokio's own listeners.
    pub fn bind(path: impl AsRef<Path>, options: UnixOptions) -> Result<Self, BindUnixError> {
        let path = path.as_ref().to_owned();
        let length = path.as_os_str().as_bytes().len();
        if length > MAX_PATH {
            return Err(BindUnixError::TooLong { path, length });
        }
        let lock = match Lock::take(&path) {
            Ok(lock) => lock,
            Err(Untaken::Held(holder)) => return Err(BindUnixError::InUse { path, holder }),
            Err(Untaken::Failed(source)) => return Err(BindUnixError::Lock { path, source }),
        };
        clear(&path)?;
        match place(&path, options, lock) {
            Ok((name, listener)) => Ok(Self { name, listener }),
            Err(source) => Err(BindUnixError::Bind { path, source }),
        }
    }

    /// The next connection.
    ///
    /// # Errors
    ///
    /// What the system says.
    pub async fn accept(&self) -> io::Result<tokio::net::UnixStream> {
        self.listener.accept().await.map(|(stream, _)| stream)
    }

    /// The socket and its name, for servers that accept by themselves. They have to judge their peers' credentials, too.
    #[must_use]
    pub fn into_parts(self) -> (UnixListener, UnixSocketName) {
        (self.listener, self.name)
    }

    pub(super) fn listener(&self) -> &UnixListener {
        &self.listener
    }
}

/// Removes what a dead server left.
fn clear(path: &Path) -> Result<(), BindUnixError> {
    let bind_error = |source| BindUnixError::Bind {
        path: path.to_owned(),
        source,
    };
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(bind_error(error)),
        Ok(found) if !found.file_type().is_socket() => {
            return Err(BindUnixError::Occupied {
                path: path.to_owned(),
            });
        }
        Ok(_) => {}
    }
    match answers(path) {
        Ok(true) => Err(BindUnixError::InUse {
            path: path.to_owned(),
            holder: None,
        }),
        Ok(false) => match fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(bind_error(error)),
            Ok(()) | Err(_) => Ok(()),
        },
        Err(source) => Err(BindUnixError::Unknown {
            path: path.to_owned(),
            source: source.into(),
        }),
    }
}

/// Whether somebody listens at `path`: a server of another kind, or one whose lock file was cleaned away.
fn answers(path: &Path) -> Result<bool, Errno> {
    let probe = socket()?;
    match rustix::net::connect(&probe, &SocketAddrUnix::new(path)?) {
        // Its backlog is full, so it has one.
        Ok(()) | Err(Errno::AGAIN) => Ok(true),
        Err(Errno::CONNREFUSED | Errno::NOENT) => Ok(false),
        Err(error) => Err(error),
    }
}

fn socket() -> Result<OwnedFd, Errno> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)
}

/// Binds, restricts and only then listens: until then, connecting is refused.
fn place(
    path: &Path,
    options: UnixOptions,
    lock: Lock,
) -> io::Result<(UnixSocketName, UnixListener)> {
    let socket = socket()?;
    let mode = Mode::from_raw_mode(options.mode & 0o777);
    // Linux makes the name with the mode of the unbound socket, less the umask. So it is never more open than it will be,
    // and closed to the group until that is the right one.
    rustix::fs::fchmod(&socket, mode & Mode::RWXU)?;
    rustix::net::bind(&socket, &SocketAddrUnix::new(path)?)?;
    let (name, node) = UnixSocketName::open(path, lock)?;
    if let Some(group) = options.group {
        let group = Some(Gid::from_raw(group));
        rustix::fs::chownat(&node, "", None, group, AtFlags::EMPTY_PATH)?;
    }
    // By the open inode: by its path, the mode of another file could be changed if somebody swapped it meanwhile.
    let descriptor = format!("/proc/self/fd/{}", node.as_fd().as_raw_fd());
    rustix::fs::chmod(descriptor, mode)?;
    rustix::net::listen(&socket, BACKLOG)?;
    Ok((name, UnixListener::from_std(socket.into())?))
}

impl UnixSocketName {
    /// The name of the socket that was just bound at `path`, and its open inode.
    fn open(path: &Path, lock: Lock) -> io::Result<(Self, OwnedFd)> {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let node = rustix::fs::openat(CWD, path, flags, Mode::empty())?;
        let found = rustix::fs::fstat(&node)?;
        if FileType::from_raw_mode(found.st_mode) != FileType::Socket {
            return Err(io::Error::other(
                "the new socket was replaced by another file",
            ));
        }
        let name = Self {
            path: path.to_owned(),
            device: found.st_dev,
            inode: found.st_ino,
            _lock: lock,
        };
        Ok((name, node))
    }
}

impl Drop for UnixSocketName {
    fn drop(&mut self) {
        let found = fs::symlink_metadata(&self.path);
        if found.is_ok_and(|found| (found.dev(), found.ino()) == (self.device, self.inode)) {
            // A name that stays is found stale by the next start.
            let _best_effort = fs::remove_file(&self.path);
        }
    }
}

struct Holder(Option<u32>);

impl std::fmt::Display for Holder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            Some(pid) if pid == std::process::id() => write!(f, ": this process ({pid})"),
            Some(pid) => write!(f, ": process {pid}"),
            None => Ok(()),
        }
    }
}
