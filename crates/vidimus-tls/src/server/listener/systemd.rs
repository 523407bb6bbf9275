//! Sockets that systemd opened before it started this process (`sd_listen_fds(3)`).

use std::os::fd::OwnedFd;
use std::sync::{Mutex, OnceLock, PoisonError};

use rustix::io::FdFlags;

use super::{AdoptError, Listener};

/// Why there is no socket from systemd.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SystemdError {
    /// The socket is not one to listen at.
    #[error("socket {which} from systemd")]
    Adopt {
        /// Which one was asked for.
        which: String,
        /// What it is.
        #[source]
        source: AdoptError,
    },
    /// Several sockets have the name, as those of one `.socket` unit do unless `FileDescriptorName=` tells them apart.
    #[error("{count} sockets from systemd are named {name:?}; accepted: one, or choosing by index")]
    Ambiguous {
        /// The name.
        name: String,
        /// How many have it.
        count: usize,
    },
    /// `LISTEN_FDS` or `LISTEN_PID` is not a number.
    #[error("LISTEN_FDS or LISTEN_PID in the environment is not a number")]
    Malformed,
    /// systemd passed no sockets to this process.
    #[error(
        "systemd passed no sockets to this process: LISTEN_FDS is not set, or LISTEN_PID names another process"
    )]
    NotActivated,
    /// The socket was taken before.
    #[error("socket {which} from systemd has been taken already")]
    Taken {
        /// Which one was asked for.
        which: String,
    },
    /// There is no such socket.
    #[error("systemd passed no socket {which}; passed: {}", passed.join(", "))]
    Unknown {
        /// Which one was asked for.
        which: String,
        /// The names of those that are there, in their order.
        passed: Vec<String>,
    },
}

impl Listener {
    /// The socket that systemd passed to this process under this name: the `FileDescriptorName=` of its `.socket` unit, or
    /// the unit's own name. It can be taken once.
    ///
    /// # Errors
    ///
    /// [`SystemdError::NotActivated`] if this process was started in another way, which a program that can also bind by
    /// itself will want to tell apart; [`SystemdError::Adopt`] for a datagram socket or one that doesn't listen
    /// (`Accept=yes`).
    ///
    /// # Panics
    ///
    /// Outside of a tokio runtime with I/O enabled, as tokio's own listeners.
    pub fn from_systemd(name: &str) -> Result<Self, SystemdError> {
        let mut sockets = Passed::lock()?;
        let named = sockets
            .0
            .iter()
            .enumerate()
            .filter(|(_, socket)| socket.name == name);
        let indices: Vec<usize> = named.map(|(index, _)| index).collect();
        match indices.as_slice() {
            [] => Err(SystemdError::Unknown {
                which: format!("{name:?}"),
                passed: sockets.names(),
            }),
            [index] => sockets.take(*index, format!("{name:?}")),
            several => Err(SystemdError::Ambiguous {
                name: name.to_owned(),
                count: several.len(),
            }),
        }
    }

    /// The socket that systemd passed to this process at this place, counted from 0 in the order of the unit's lines.
    ///
    /// # Errors
    ///
    /// As [`Listener::from_systemd`].
    ///
    /// # Panics
    ///
    /// As [`Listener::from_systemd`].
    pub fn from_systemd_index(index: usize) -> Result<Self, SystemdError> {
        Passed::lock()?.take(index, index.to_string())
    }
}

/// What systemd passed. There is one for the process: descriptors are numbers, and two owners of one number would close
/// each other's sockets.
struct Passed(Vec<Socket>);

struct Socket {
    name: String,
    /// `None` once it was taken.
    descriptor: Option<OwnedFd>,
}

impl Passed {
    fn lock() -> Result<std::sync::MutexGuard<'static, Self>, SystemdError> {
        static PASSED: OnceLock<Option<Mutex<Passed>>> = OnceLock::new();
        let passed = PASSED.get_or_init(|| Self::read().map(Mutex::new));
        let passed = passed.as_ref().ok_or(SystemdError::Malformed)?;
        let passed = passed.lock().unwrap_or_else(PoisonError::into_inner);
        if passed.0.is_empty() {
            return Err(SystemdError::NotActivated);
        }
        Ok(passed)
    }

    fn read() -> Option<Self> {
        let passed = sd_listen_fds::get().ok()?;
        let sockets = passed.into_iter().map(|(name, descriptor)| {
            let descriptor = descriptor.into_std();
            // systemd passes them open for all programs that this one will start, also those that nobody takes here.
            let _not_open = rustix::io::fcntl_setfd(&descriptor, FdFlags::CLOEXEC);
            Socket {
                // What systemd itself calls one without a name.
                name: name.unwrap_or_else(|| "unknown".to_owned()),
                descriptor: Some(descriptor),
            }
        });
        Some(Self(sockets.collect()))
    }

    fn names(&self) -> Vec<String> {
        let names = self.0.iter().map(|socket| format!("{:?}", socket.name));
        names.collect()
    }

    fn take(&mut self, index: usize, which: String) -> Result<Listener, SystemdError> {
        let passed = self.names();
        let Some(socket) = self.0.get_mut(index) else {
            return Err(SystemdError::Unknown { which, passed });
        };
        match socket.descriptor.take() {
            Some(descriptor) => Listener::try_from(descriptor)
                .map_err(|source| SystemdError::Adopt { which, source }),
            None => Err(SystemdError::Taken { which }),
        }
    }
}
