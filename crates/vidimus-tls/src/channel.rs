//! The client side: a channel for tonic clients that renews its certificate and loses no call when a server drains.
//!
//! ```no_run
//! use vidimus_tls::channel::{Channel, ClientTls};
//! use vidimus_tls::material::{MaterialFiles, Usage};
//! use vidimus_tls::runtime::Runtime;
//! use vidimus_tls::watch::WatchOptions;
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let mut runtime = Runtime::new();
//! let files = MaterialFiles::in_dir("/etc/example/tls");
//! let material = runtime.material(files, Usage::Client, WatchOptions::default()).await?;
//! let builder = Channel::builder("provider.example:9443", "provider.example", ClientTls::Watch(material));
//! let channel = runtime.channel(builder)?;
//! // ProviderClient::new(channel.clone())
//! runtime.run_while(channel.ready()).await?;
//! # Ok(())
//! # }
//! ```
//!
//! **Connections.** One is opened when a call needs it, with the material of that moment. When the material changes, another
//! one is opened in the background, new calls move over, and the old one ends when its last call has. Revocation lists alone
//! are no reason: what a handshake shows and asks for is the same, and open connections are judged by them where they are. A
//! failed attempt is made again after a while that grows, and at once when the material changes. A server that drains
//! (GOAWAY) is left in the same way. A server that limits the calls on a connection (`MAX_CONCURRENT_STREAMS`) gets more
//! connections when the calls need them, up to [`ChannelBuilder::max_connections`]: no call waits behind a long stream
//! while another connection may be opened.
//!
//! **A server that is no longer trusted** is left at once. When roots or CRLs change, the chain of each live connection is
//! judged again: one that no longer holds takes no new calls, and is cut after [`ChannelBuilder::withdrawal_grace`]. A
//! server's certificate that expires ends its connection with a grace of its own
//! ([`ChannelBuilder::expired_servers`]).
//!
//! **A refusal is heard.** A TLS 1.3 client is done before the server has judged its certificate, so a connection counts
//! only once the server's first HTTP/2 frame has arrived. Until then calls are held, and an alert becomes their
//! `UNAVAILABLE`, by its name. The preface is sent first: some servers wait for it.
//!
//! **What is sent again.** Only what the server says it never processed: a request that was not written yet, one whose
//! stream is above the last one named by a GOAWAY (RFC 9113 §6.8), one answered with `REFUSED_STREAM` (§8.7). At most
//! twice, within the call's deadline, and only while no answer has begun. A connection that refuses a call twice is
//! left, if it is older than the shortest wait of [`ChannelBuilder::backoff`]; one refused stream alone, as of a server
//! that sheds load, opens no other. A request of one message is kept for that (up to [`ChannelBuilder::resend_limit`]);
//! a stream of messages is sent again only if none of it was written.
//!
//! **Background work.** [`Runtime::channel`](crate::runtime::Runtime::channel) has it done by the runtime that follows
//! the material, and ends the channel with that: calls wait for [`Runtime::run`](crate::runtime::Runtime::run) to begin
//! no longer than the connect timeout. [`ChannelBuilder::build`] has a task of tokio's do it instead. Either way there
//! is one task for each connection; all of it belongs to the channel and is over when its last clone and its last
//! running call are dropped. [`Channel::close`] ends it in good order.
//!
//! No HTTP/2 pings are sent (grpc-go closes connections that ping often): dead peers are found by TCP keepalive and
//! `TCP_USER_TIMEOUT`.

mod answer;
mod backoff;
mod body;
mod builder;
mod call;
mod connect;
mod connection;
mod core;
mod deadline;
mod dispatch;
mod driver;
mod failure;
mod manager;
mod newest;
mod pool;
mod running;
mod shrink;
mod slots;
mod socket;
mod status;
mod target;
mod wire;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use http::{Request, Response};
use tonic::Status;
use tower::Service;

pub use answer::ResponseBody;
pub use builder::{BuildError, ChannelBuilder};
pub use connect::{ConnectError, ServerRefusal, Step};
pub use connection::ConnectionStatus;
pub use status::{ChannelState, ChannelStatus, Counters};
pub use target::TargetError;

use self::core::Core;
use crate::danger::InsecureServerVerification;
use crate::watch::MaterialWatch;

/// How a channel protects itself.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum ClientTls {
    /// Mutual TLS, but whoever answers is believed to be the server: for development, and logged on every connect.
    Insecure(MaterialWatch, InsecureServerVerification),
    /// None: the target is a UNIX socket, and the kernel says who is at its other end.
    Local,
    /// None: everybody in the path can read and change the calls. Nothing but this word turns it on.
    Plaintext,
    /// Mutual TLS with the material of each moment.
    Watch(MaterialWatch),
    /// TLS without a client certificate: for looking at what a server makes of such a caller.
    WithoutCertificate(MaterialWatch),
}

/// A client for tonic's generated code. Cheap to clone; clones share their connections.
#[derive(Clone, Debug)]
pub struct Channel {
    core: Arc<Core>,
}

impl Channel {
    /// Starts a channel to `target`: `host:port`, several of them with commas between, or `unix:/path`.
    ///
    /// `server_name` is what the server's certificate must be for, and what calls name as their authority.
    pub fn builder(target: &str, server_name: &str, tls: ClientTls) -> ChannelBuilder {
        ChannelBuilder::new(target, server_name, tls)
    }

    /// Opens a connection if there is none.
    ///
    /// # Errors
    ///
    /// `UNAVAILABLE` with the step and the reason.
    pub async fn ready(&self) -> Result<(), Status> {
        self.core
            .connection()
            .await
            .map(drop)
            .map_err(|error| self.core.unavailable(&error))
    }

    /// Opens a new connection with the material of this moment and moves new calls to it; the one before ends with its
    /// last call. For when the server has something new to show, such as a renewed certificate.
    ///
    /// # Errors
    ///
    /// `UNAVAILABLE` with the step and the reason; the connection before goes on serving, and further attempts are made.
    pub async fn reconnect(&self) -> Result<(), Status> {
        self.core
            .reconnect()
            .await
            .map_err(|error| self.core.unavailable(&error))
    }

    /// Connections, their generations and peers, and what has been counted.
    #[must_use]
    pub fn status(&self) -> ChannelStatus {
        self.core.status()
    }

    /// Takes no more calls, lets the running ones finish for at most `grace`, and says goodbye to the server.
    ///
    /// Dropping a channel closes its connections without a word instead.
    pub async fn close(&self, grace: Duration) {
        self.core.close(grace).await;
    }
}

impl Service<Request<tonic::body::Body>> for Channel {
    type Response = Response<ResponseBody>;
    type Error = Status;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Self::Error>> + Send>>;

    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        // Whether there is a connection is found out by the call, which knows its deadline.
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<tonic::body::Body>) -> Self::Future {
        Box::pin(call::run(Arc::clone(&self.core), request))
    }
}
