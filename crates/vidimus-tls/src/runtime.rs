//! Background work as one future, for the caller to run beside its servers.
//!
//! ```no_run
//! use vidimus_tls::material::{MaterialFiles, Usage};
//! use vidimus_tls::runtime::Runtime;
//! use vidimus_tls::watch::WatchOptions;
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let mut runtime = Runtime::new();
//! let files = MaterialFiles::in_dir("/etc/example/tls");
//! let material = runtime.material(files, Usage::Server, WatchOptions::default()).await?;
//! // `Security::mutual(material)` makes a server of it, `ClientTls::Watch(material)` and `runtime.channel` a channel.
//! runtime.run_while(async { /* serve, or call */ }).await;
//! # Ok(())
//! # }
//! ```

use std::fmt;
use std::future::{Future, poll_fn};
use std::path::PathBuf;
use std::pin::{Pin, pin};
use std::task::Poll;

use tokio_util::sync::CancellationToken;

#[cfg(feature = "tonic")]
use crate::channel::{BuildError, Channel, ChannelBuilder};
use crate::material::{Material, MaterialError, MaterialSource, Usage};
use crate::policy::{PolicyError, PolicyWatch};
use crate::watch::{MaterialPublisher, MaterialWatch, WatchOptions};

/// What follows files for servers and channels, and does what channels do by themselves. Nothing of it is done until
/// [`Runtime::run`] is polled.
#[derive(Default)]
#[must_use = "files are followed, and channels connect, only while the runtime runs"]
pub struct Runtime {
    drivers: Vec<Pin<Box<dyn Future<Output = ()> + Send>>>,
    stop: CancellationToken,
}

impl Runtime {
    /// Nothing to do yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Reads certificate, key and roots, and will follow them: `MaterialFiles`, or a function.
    ///
    /// # Errors
    ///
    /// The first fault of the material: a process starts with good material or not at all.
    pub async fn material(
        &mut self,
        source: impl Into<MaterialSource>,
        usage: Usage,
        options: WatchOptions,
    ) -> Result<MaterialWatch, MaterialError> {
        let (watch, driver) = MaterialWatch::start(source, usage, options).await?;
        self.drive(driver.run(self.stop.clone()));
        Ok(watch)
    }

    /// Material that the program itself replaces, through the publisher: reloads, refusals and what ends with time are logged
    /// and sent to the events of the options, by their clock.
    pub fn memory(
        &mut self,
        material: Material,
        options: WatchOptions,
    ) -> (MaterialWatch, MaterialPublisher) {
        let (watch, publisher) = MaterialWatch::from_memory(material);
        let publisher = publisher.with_events(options.events.clone(), options.clock.clone());
        self.drive(watch.clone().raise_alarms(options, self.stop.clone()));
        (watch, publisher)
    }

    /// Reads a policy file and the bundles it names, and will follow them.
    ///
    /// # Errors
    ///
    /// What is wrong with them: a process starts with a good policy or not at all.
    pub async fn policy(
        &mut self,
        path: impl Into<PathBuf>,
        options: WatchOptions,
    ) -> Result<PolicyWatch, PolicyError> {
        let (watch, driver) = PolicyWatch::start(path, options).await?;
        self.drive(driver.run(self.stop.clone()));
        Ok(watch)
    }

    /// Makes a channel, and will do its work: connect, follow the material, watch over connections.
    ///
    /// Calls fail after the channel's connect timeout if the runtime has not begun to run, and always once it has ended.
    ///
    /// # Errors
    ///
    /// When target, server name and protection don't go together.
    #[cfg(feature = "tonic")]
    pub fn channel(&mut self, builder: ChannelBuilder) -> Result<Channel, BuildError> {
        let (channel, work) = builder.build_driven(self.stop.clone())?;
        self.drive(work);
        Ok(channel)
    }

    /// Does all of it until `work` is done, and returns what came of that: for the future of a server, or of everything
    /// that a program does.
    pub async fn run_while<F: Future>(self, work: F) -> F::Output {
        let done = CancellationToken::new();
        let working = async {
            let output = work.await;
            done.cancel();
            output
        };
        let (output, ()) = tokio::join!(working, self.run(done.clone()));
        output
    }

    /// Does all of it until `shutdown`. The panic of one part is the caller's.
    pub async fn run(self, shutdown: CancellationToken) {
        let mut drivers = self.drivers;
        let all = poll_fn(|cx| {
            drivers.retain_mut(|driver| driver.as_mut().poll(cx).is_pending());
            if drivers.is_empty() {
                Poll::Ready(())
            } else {
                Poll::Pending
            }
        });
        let mut all = pin!(all);
        tokio::select! {
            () = shutdown.cancelled() => self.stop.cancel(),
            () = all.as_mut() => return,
        }
        all.await;
    }

    fn drive(&mut self, driver: impl Future<Output = ()> + Send + 'static) {
        self.drivers.push(Box::pin(driver));
    }
}

impl fmt::Debug for Runtime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Runtime")
            .field("drivers", &self.drivers.len())
            .finish_non_exhaustive()
    }
}
